package publish

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
)

// Run publishes messages in any number of calls of PublishAll, such as a file in pieces. It sends only
// what is greater than what the stream has (events.Compare), so publishing anything again, in any
// order, is harmless.
//
// Of a stream that was empty when it began, it remembers the subjects that it has published, 10 to 20
// bytes for each, and needs no closing. One goroutine at a time may use it.
type Run struct {
	p      *Publisher
	stream string // once it has begun
	empty  bool   // the stream was, so it has at most what this run has sent
	sent   map[uint64]struct{}
	seed   maphash.Seed
}

// NewRun begins a run.
func (p *Publisher) NewRun() *Run {
	return &Run{p: p, sent: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
}

// PublishAll publishes messages as a separate Run (see Run.PublishAll).
func (p *Publisher) PublishAll(ctx context.Context, messages []Message) (Summary, error) {
	return p.NewRun().PublishAll(ctx, messages)
}

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

// PublishAll sends those messages that are greater than what the stream has on their subjects, and
// returns when all are stored. If one violates the contract, nothing is sent. A message is an error,
// an *events.Error, if the stream or an earlier message has another state in the same revision and
// that one is true, or if its revision is more than a day ahead of the clock and not known. The error
// is a *MessageError; the messages before it, and those that the summary counts, are dealt with.
//
// It sends atomic batches. The broker syncs once for each. If the stream refuses a batch (it knows
// a message's id already, or accepts no batches) or does not acknowledge it, PublishAll sends its
// messages singly with the same ids, many at a time.
func (r *Run) PublishAll(ctx context.Context, messages []Message) (Summary, error) {
	for i := range messages {
		if err := r.p.Check(&messages[i]); err != nil {
			return Summary{}, &MessageError{i, err}
		}
	}
	var sum Summary
	if err := r.begin(ctx); err != nil {
		return sum, &MessageError{0, err}
	}
	for next := 0; next < len(messages); {
		n := r.p.batch(messages[next:])
		at, err := r.publish(ctx, messages[next:next+n], next, &sum)
		if err != nil {
			return sum, &MessageError{next + at, err}
		}
		next += n
		if r.p.cfg.Progress != nil {
			r.p.cfg.Progress(sum)
		}
	}
	return sum, nil
}

// begin finds the stream, and whether it is empty.
func (r *Run) begin(ctx context.Context) error {
	if r.stream != "" {
		return nil
	}
	name, err := r.p.streamName(ctx)
	if err != nil {
		return err
	}
	info, err := leader.Stream{JS: r.p.js, Name: name}.Info(ctx)
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	r.stream, r.empty = name, info.State.Msgs == 0
	return nil
}

// publish deals with one batch, whose first message has the index first. It returns the index in the
// batch of the message that failed.
func (r *Run) publish(ctx context.Context, batch []Message, first int, sum *Summary) (int, error) {
	if ctx.Err() != nil { // begin no batch that would stay half sent in the broker
		return 0, ctx.Err()
	}
	subjects := make([]string, len(batch))
	for i := range batch {
		subjects[i] = batch[i].Event.Data.Subject().String()
	}
	states, err := r.p.lastStates(ctx, r.stream, r.toAsk(batch, subjects))
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
		if r.empty {
			r.sent[maphash.String(r.seed, subjects[i])] = struct{}{}
		}
		msg, err := r.p.message(&batch[i])
		if err != nil {
			return i, err
		}
		msgs, index = append(msgs, msg), append(index, i)
	}
	s := sender{p: r.p, nc: r.p.js.Conn(), sum: sum}
	if failed, err := s.send(ctx, msgs); err != nil {
		return index[failed], err
	}
	for _, d := range s.duplicates {
		if err := r.checkDuplicate(ctx, d, sum); err != nil {
			return index[slices.Index(msgs, d.msg)], err
		}
	}
	return end, wrong
}

// toAsk returns the subjects that the stream may have, each once.
func (r *Run) toAsk(batch []Message, subjects []string) []string {
	var ask []string
	seen := map[string]struct{}{}
	for i, s := range subjects {
		if r.empty && events.CheckRevision(batch[i].Event.Data, 0, time.Now()) == nil {
			if _, sent := r.sent[maphash.String(r.seed, s)]; !sent {
				continue
			}
		}
		if _, there := seen[s]; !there {
			seen[s] = struct{}{}
			ask = append(ask, s)
		}
	}
	return ask
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

// checkDuplicate returns an *events.Error if what the broker took for a repetition, by the id alone, is
// not in the stream.
func (r *Run) checkDuplicate(ctx context.Context, d duplicate, sum *Summary) error {
	m, err := leader.Stream{JS: r.p.js, Name: r.stream}.Message(ctx, d.sequence)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("message %d of %s: %w", d.sequence, r.stream, natserr.PermissionError(r.p.js.Conn(), err, ""))
	}
	if err == nil && m.Subject == d.msg.Subject {
		have, err := events.DecodeMessage(m.Subject, m.Data)
		mine, mineErr := events.DecodeMessage(d.msg.Subject, d.msg.Data)
		if err == nil && mineErr == nil && events.Compare(have.Data, mine.Data) == 0 {
			sum.Known++
			return nil
		}
	}
	return &events.Error{Field: "id", Problem: "not stored: within two minutes the stream has had another event of this id"}
}
