package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
)

// Summary counts the results of PublishAll.
type Summary struct {
	Sent         int    // stored
	Known        int    // not sent: the stream has the state, or one of its revision that shows the same
	Older        int    // not sent: the stream has a greater revision
	Corrected    []int  // indices of messages sent though the stream has another state in their revision
	LastSequence uint64 // the highest of what was sent and of what the stream had, or 0 for none
}

// Done returns how many messages were dealt with.
func (s Summary) Done() int { return s.Sent + s.Known + s.Older }

// MessageError is the error of the first message of PublishAll that is not certainly dealt with.
type MessageError struct {
	Index int // in the slice
	Err   error
}

// Error returns "message <index>: <reason>".
func (e *MessageError) Error() string { return fmt.Sprintf("message %d: %v", e.Index, e.Err) }

// Unwrap returns the reason.
func (e *MessageError) Unwrap() error { return e.Err }

// PublishAll sends those messages that are greater than what the stream has on their subjects
// (events.Compare), and returns when all are stored, so publishing anything again, in any order and in
// any pieces, is harmless. If one violates the contract, nothing is sent. A message is an error,
// an *events.Error, if the stream or an earlier message has another state in the same revision and
// that one is true, or if its revision is more than a day ahead of the clock and not known. The error
// is a *MessageError; the messages before it, and those that the summary counts, are dealt with.
//
// It sends atomic batches. The broker syncs once for each. If the stream refuses a batch (it knows
// a message's id already, or accepts no batches) or does not acknowledge it, PublishAll sends its
// messages singly with the same ids, many at a time.
func (p *Publisher) PublishAll(ctx context.Context, messages []Message) (Summary, error) {
	for i := range messages {
		if err := p.Check(&messages[i]); err != nil {
			return Summary{}, &MessageError{i, err}
		}
	}
	var sum Summary
	stream, err := p.streamName(ctx)
	if err != nil {
		return sum, &MessageError{0, err}
	}
	for next := 0; next < len(messages); {
		n := p.batch(messages[next:])
		at, err := p.publish(ctx, stream, messages[next:next+n], next, &sum)
		if err != nil {
			return sum, &MessageError{next + at, err}
		}
		next += n
		if p.cfg.Progress != nil {
			p.cfg.Progress(sum)
		}
	}
	return sum, nil
}

// publish deals with one batch, whose first message has the index first. It returns the index in the
// batch of the message that failed.
func (p *Publisher) publish(ctx context.Context, stream string, batch []Message, first int, sum *Summary) (int, error) {
	if ctx.Err() != nil { // begin no batch that would stay half sent in the broker
		return 0, ctx.Err()
	}
	subjects := make([]string, len(batch))
	for i := range batch {
		subjects[i] = batch[i].Event.Data.Subject().String()
	}
	states, err := p.lastStates(ctx, stream, slices.Compact(slices.Sorted(slices.Values(subjects))))
	if err != nil {
		return 0, err
	}
	var (
		msgs  []*nats.Msg
		index []int // of msgs, in the batch
		wrong error
		end   = len(batch)
	)
	for i := range batch {
		send, err := decide(batch[i].Event.Data, states[subjects[i]], first+i, sum)
		if err != nil {
			wrong, end = err, i
			break
		}
		if !send {
			continue
		}
		states[subjects[i]] = known{data: batch[i].Event.Data}
		msg, err := p.message(&batch[i])
		if err != nil {
			return i, err
		}
		msgs, index = append(msgs, msg), append(index, i)
	}
	s := sender{p: p, nc: p.js.Conn(), sum: sum}
	if failed, err := s.send(ctx, msgs); err != nil {
		return index[failed], err
	}
	for _, d := range s.duplicates {
		if err := p.checkDuplicate(ctx, stream, d, sum); err != nil {
			return index[slices.Index(msgs, d.msg)], err
		}
	}
	return end, wrong
}

// decide reports whether the message with an index, which carries d, is to be sent where k is known,
// and counts it if it is not.
func decide(d events.Data, k known, index int, sum *Summary) (send bool, err error) {
	if err := events.CheckRevision(d, k.revision(), time.Now()); err != nil {
		return false, err
	}
	if k.data == nil {
		return true, nil
	}
	order, same := events.Compare(d, k.data), events.Revision(d) == k.revision()
	switch {
	case same && (order == 0 || order < 0 && events.LooksEqual(d, k.data)):
		sum.Known++
	case same && order < 0:
		return false, &events.Error{Field: "data.revision", Problem: fmt.Sprintf("revision %d has another state, which is true", k.revision())}
	case order < 0:
		sum.Older++
	default:
		if same && !events.LooksEqual(d, k.data) {
			sum.Corrected = append(sum.Corrected, index)
		}
		return true, nil
	}
	sum.LastSequence = max(sum.LastSequence, k.sequence)
	return false, nil
}

// checkDuplicate looks up the message that the broker did not store because the stream has had its id. It
// returns an *events.Error if that was another event.
func (p *Publisher) checkDuplicate(ctx context.Context, stream string, d duplicate, sum *Summary) error {
	m, err := leader.Stream{JS: p.js, Name: stream}.Message(ctx, d.sequence)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("message %d of %s: %w", d.sequence, stream, natserr.PermissionError(p.js.Conn(), err, ""))
	}
	if err == nil && m.Subject == d.msg.Subject {
		have, err := m.Event()
		mine, mineErr := events.DecodeMessage(d.msg.Subject, d.msg.Data)
		if err == nil && mineErr == nil && events.Compare(have.Data, mine.Data) == 0 {
			sum.Known++
			return nil
		}
	}
	return &events.Error{Field: "id", Problem: "not stored: within two minutes the stream has had another event of this id"}
}
