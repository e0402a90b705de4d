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
	maxLookups    = 64          // lookups of last messages at the same time
	maxAttempts   = 4           // to send a batch that is not acknowledged
	attemptPause  = time.Second // before sending such a batch again
)

// Summary counts the results of PublishAll.
type Summary struct {
	Sent         int    // stored
	Known        int    // not sent: the stream has them
	Stale        int    // not sent: the stream has a greater revision
	LastSequence uint64 // the highest sequence of the messages sent, known or stale; 0 if there are none
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
		isFull := i == maxBatch || size > maxBatchBytes
		if isFull && i > 0 {
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
		sum, invalid, err := p.tryBatch(ctx, batch)
		if err == nil {
			return sum, invalid
		}
		if ctx.Err() != nil {
			return Summary{}, &MessageError{0, ctx.Err()}
		}

		// A refusal is final. Without a reply, perhaps only the acknowledgment was lost.
		_, isReply := errors.AsType[*jetstream.APIError](err)
		isRefusal := isReply || errors.Is(err, natserr.ErrRefused)
		if isRefusal || attempt == maxAttempts || !pause.For(ctx, attemptPause) {
			return Summary{}, &MessageError{0, err}
		}
	}
}

// tryBatch sends the newer messages of a batch. invalid is the first message that must not be sent, with the
// reason: only the messages before it are sent and counted. err is an error of the whole batch.
func (p *Publisher) tryBatch(ctx context.Context, batch []Message) (sum Summary, invalid *MessageError, err error) {
	last, err := p.lastStates(ctx, batch)
	if err != nil {
		return Summary{}, nil, err
	}

	send, sum, invalid := p.selectNewer(batch, last)
	if len(send) == 0 || p.cfg.DryRun {
		return sum, invalid, nil
	}

	sequence, err := p.sendBatch(ctx, send)
	sum.LastSequence = max(sum.LastSequence, sequence)
	return sum, invalid, err
}

// selectNewer compares the messages of a batch with the last states, and returns those to send. It stops at the first
// message that must not be sent.
func (p *Publisher) selectNewer(batch []Message, last map[string]state) (send []*nats.Msg, sum Summary, invalid *MessageError) {
	for i := range batch {
		msg, err := batch[i].encodeMessage()
		if err != nil {
			return send, sum, &MessageError{i, err}
		}

		found := last[msg.Subject]
		order, err := p.compareStates(batch[i].Event.Data, found.data)
		if err != nil {
			return send, sum, &MessageError{i, err}
		}

		switch order {
		case newer:
			send = append(send, msg)
			sum.Sent++
			last[msg.Subject] = state{data: batch[i].Event.Data} // for the next message on the subject in this batch
		case known:
			sum.Known++
		case stale:
			sum.Stale++
		}
		sum.LastSequence = max(sum.LastSequence, found.sequence)
	}
	return send, sum, nil
}

// lastStates returns the last states of the batch's subjects, by subject. A subject without a message has none.
func (p *Publisher) lastStates(ctx context.Context, batch []Message) (map[string]state, error) {
	subjects, err := p.subjectsToLookUp(ctx, batch)
	if err != nil {
		return nil, err
	}

	// Look up many subjects at the same time.
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxLookups)
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

// subjectsToLookUp returns the batch's subjects that the stream may have. If the stream was empty before the first
// batch, only subjects that this Publisher has already sent are returned. So a first import looks up no new subject. A
// message that somebody else publishes meanwhile is then missed. That is harmless: the revision decides which state
// is the latest.
func (p *Publisher) subjectsToLookUp(ctx context.Context, batch []Message) (map[string]struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	// Was the stream empty before the first batch?
	if !p.looked {
		info, err := stream.Stream{JS: p.js, Name: p.cfg.Stream}.Info(ctx)
		if err != nil {
			return nil, err
		}
		p.looked = true
		p.beganEmpty = info.State.LastSeq == 0
	}

	subjects := map[string]struct{}{}
	for i := range batch {
		subjects[batch[i].Event.Data.Subject().String()] = struct{}{}
	}
	if !p.beganEmpty {
		return subjects, nil
	}

	for subject := range subjects {
		if !p.sent[subject] {
			p.sent[subject] = true // from now on the stream may have it, even if no acknowledgment comes
			delete(subjects, subject)
		}
	}
	return subjects, nil
}
