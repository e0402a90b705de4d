package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/events/stream"
)

const (
	maxBatch      = 1000        // messages: the broker's limit
	maxBatchBytes = 4 << 20     // payload, far below the broker's buffer
	maxQuestions  = 64          // for last messages, at the same time
	maxAttempts   = 4           // to send a batch that is not acknowledged
	attemptPause  = time.Second // before sending such a batch again
)

// Summary counts the results of PublishAll.
type Summary struct {
	Sent         int    // stored
	Known        int    // not sent: the stream has them
	Stale        int    // not sent: the stream has a greater revision
	LastSequence uint64 // the highest sequence of the messages sent and found, or 0
}

// Done returns how many messages were dealt with.
func (s Summary) Done() int { return s.Sent + s.Known + s.Stale }

// Add adds the counts of another call.
func (s *Summary) Add(o Summary) {
	s.Sent += o.Sent
	s.Known += o.Known
	s.Stale += o.Stale
	s.LastSequence = max(s.LastSequence, o.LastSequence)
}

// MessageError says at which message PublishAll stopped, and why.
type MessageError struct {
	Index int // in PublishAll's messages
	Err   error
}

// Error returns "message <index>: <reason>".
func (e *MessageError) Error() string { return fmt.Sprintf("message %d: %v", e.Index, e.Err) }

// Unwrap returns the reason.
func (e *MessageError) Unwrap() error { return e.Err }

// PublishAll sends each message that is newer than the stream's last message on its subject, and returns
// when all are stored. If a message violates the contract (Message.Check), nothing is sent. The error is
// a *MessageError. After any other error, the summary counts the messages before the failed message: each
// is stored, known or stale.
//
// It sends atomic batches, because the broker then syncs to disk once for each batch: that is ten times as
// fast as once for each message.
func (p *Publisher) PublishAll(ctx context.Context, messages []Message) (Summary, error) {
	for i := range messages {
		if err := messages[i].Check(); err != nil {
			return Summary{}, &MessageError{i, err}
		}
	}

	var sum Summary
	for from := 0; from < len(messages); {
		batch := nextBatch(messages[from:])
		done, failed := p.publishBatch(ctx, batch)
		sum.Add(done)
		if failed != nil {
			return sum, &MessageError{from + failed.Index, failed.Err}
		}

		from += len(batch)
		if p.cfg.Progress != nil {
			p.cfg.Progress(sum)
		}
	}
	return sum, nil
}

// nextBatch returns as many of the first messages as a batch may have, and at least one.
func nextBatch(messages []Message) []Message {
	size := 0
	for i := range messages {
		size += len(messages[i].Payload)
		if i == maxBatch || i > 0 && size > maxBatchBytes {
			return messages[:i]
		}
	}
	return messages
}

// publishBatch publishes a batch, and tries again if no acknowledgment comes. To try again is safe: the
// second attempt finds the messages that the first has stored. The error's index counts from the batch's
// first message.
func (p *Publisher) publishBatch(ctx context.Context, batch []Message) (Summary, *MessageError) {
	for attempt := 1; ; attempt++ {
		sum, wrong, err := p.tryBatch(ctx, batch)
		if err == nil {
			return sum, wrong
		}

		if ctx.Err() != nil {
			return Summary{}, &MessageError{0, ctx.Err()}
		}
		// The broker would refuse the batch again. Without a reply, only the acknowledgment may have been lost.
		_, isReply := errors.AsType[*jetstream.APIError](err)
		refused := isReply || errors.Is(err, natserr.ErrRefused)
		if refused || attempt == maxAttempts {
			return Summary{}, &MessageError{0, err}
		}
		if !pause.For(ctx, attemptPause) { // ctx has ended
			return Summary{}, &MessageError{0, err}
		}
	}
}

// tryBatch sends the newer messages of a batch, up to the first message that must not be sent: wrong says
// why. err is the error of the whole batch.
func (p *Publisher) tryBatch(ctx context.Context, batch []Message) (sum Summary, wrong *MessageError, err error) {
	last, err := p.lastStates(ctx, batch)
	if err != nil {
		return Summary{}, nil, err
	}

	// Compare each message with the stream's last one, or with the message before it in this batch.
	var send []*nats.Msg
	for i := range batch {
		msg, err := batch[i].encodeMessage()
		if err != nil {
			return Summary{}, nil, err
		}

		found := last[msg.Subject]
		order, err := p.compareStates(batch[i].Event.Data, found.data)
		if err != nil {
			wrong = &MessageError{i, err}
			break
		}

		switch order {
		case newer:
			send = append(send, msg)
			last[msg.Subject] = state{data: batch[i].Event.Data}
		case known:
			sum.Known++
		case stale:
			sum.Stale++
		}
		sum.LastSequence = max(sum.LastSequence, found.sequence)
	}

	sum.Sent = len(send)
	if len(send) == 0 || p.cfg.DryRun {
		return sum, wrong, nil
	}

	sequence, err := p.sendBatch(ctx, send)
	sum.LastSequence = max(sum.LastSequence, sequence)
	return sum, wrong, err
}

// lastStates returns the last states of the batch's subjects, by subject.
func (p *Publisher) lastStates(ctx context.Context, batch []Message) (map[string]state, error) {
	subjects := map[string]struct{}{}
	for i := range batch {
		subjects[batch[i].Event.Data.Subject().String()] = struct{}{}
	}
	if err := p.dropUnsent(ctx, subjects); err != nil {
		return nil, err
	}

	// Ask about many subjects at the same time.
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxQuestions)
	var mu sync.Mutex
	states := map[string]state{}
	for subject := range subjects {
		group.Go(func() error {
			last, err := p.lastState(groupCtx, subject)
			mu.Lock()
			defer mu.Unlock()
			states[subject] = last
			return err
		})
	}
	return states, group.Wait()
}

// dropUnsent removes the subjects that cannot be in the stream, so that a first import asks no questions.
// If the stream was empty before the first batch, these are the subjects that this Publisher has not
// sent; else there are none. A message that somebody else publishes meanwhile is missed. That is
// harmless: the revision decides which state is the latest.
func (p *Publisher) dropUnsent(ctx context.Context, subjects map[string]struct{}) error {
	p.mu.Lock()
	defer p.mu.Unlock()

	// Was the stream empty before the first batch?
	if !p.looked {
		info, err := stream.Stream{JS: p.js, Name: p.cfg.Stream}.Info(ctx)
		if err != nil {
			return err
		}
		p.looked = true
		if info.State.LastSeq == 0 {
			p.sent = map[string]struct{}{}
		}
	}

	if p.sent == nil { // the stream had messages
		return nil
	}

	for subject := range subjects {
		if _, sent := p.sent[subject]; !sent {
			p.sent[subject] = struct{}{} // from now on the stream may have it, even if no acknowledgment comes
			delete(subjects, subject)
		}
	}
	return nil
}
