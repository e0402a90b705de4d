package events

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

const (
	maxBatch      = 1000    // messages, the broker's limit for an atomic batch
	minBatch      = 8       // messages: a batch costs the broker about as much as 8 syncs
	maxBatchBytes = 4 << 20 // payload of one batch, far below what the broker buffers
)

// Summary counts what PublishAll has done. Sent and Duplicates together are the messages of
// the slice that are certain to be in the stream.
type Summary struct {
	Sent         int    // stored: new to the stream, or once more because it had them in another order
	Duplicates   int    // already there, by event id, within the last two minutes
	LastSequence uint64 // the highest acknowledged, 0 for none
}

// MessageError says which message of PublishAll failed: the first of which it is not certain
// that it is stored.
type MessageError struct {
	Index int // in the slice
	Err   error
}

// Error is "message <index>: <reason>".
func (e *MessageError) Error() string { return fmt.Sprintf("message %d: %v", e.Index, e.Err) }

// Unwrap is the reason.
func (e *MessageError) Unwrap() error { return e.Err }

// PublishAll publishes messages as a Run of their own: see Run.PublishAll. Publishing the same
// messages again, all of them, is safe.
func (p *Publisher) PublishAll(ctx context.Context, messages []Message) (Summary, error) {
	return p.NewRun().PublishAll(ctx, messages)
}

// cut takes the messages of the next batch. In an atomic batch a roll-up must be the first
// message of its subject, so a tombstone of a subject already in the batch begins a new one.
func (p *Publisher) cut(messages []Message) ([]*nats.Msg, error) {
	var (
		most     = min(len(messages), p.cfg.BatchSize)
		out      = make([]*nats.Msg, 0, most)
		subjects = make(map[string]struct{}, most)
		size     int
	)
	for i := range messages[:most] {
		msg, err := p.message(&messages[i])
		if err != nil {
			return nil, err
		}
		_, there := subjects[msg.Subject]
		size += len(msg.Data)
		if i > 0 && (size > maxBatchBytes || (there && messages[i].Event.Type.Tombstone())) {
			break
		}
		subjects[msg.Subject] = struct{}{}
		out = append(out, msg)
	}
	return out, nil
}

// bulk is one call of PublishAll.
type bulk struct {
	p     *Publisher
	nc    *nats.Conn
	acks  *window // made at the first message sent singly
	order order   // the run's
	sum   Summary
}

func (b *bulk) close() {
	if b.acks != nil {
		b.acks.close()
	}
}

// send stores one batch, in one of two ways. It returns the index of what failed.
func (b *bulk) send(ctx context.Context, msgs []*nats.Msg) (int, error) {
	if ctx.Err() != nil { // begin no batch that would be left half sent in the broker
		return 0, ctx.Err()
	}
	if len(msgs) >= minBatch && !b.p.noAtomic.Load() {
		done, err := b.atomic(ctx, msgs)
		if done || err != nil {
			return 0, err
		}
	}
	return b.singly(ctx, msgs)
}

// count adds one acknowledgement, of one message or of a batch.
func (b *bulk) count(a ack, msgs ...*nats.Msg) {
	if a.Duplicate {
		b.sum.Duplicates += len(msgs)
	} else {
		b.sum.Sent += len(msgs)
	}
	b.sum.LastSequence = max(b.sum.LastSequence, a.Sequence)
	for _, msg := range msgs {
		b.order.add(msg.Subject, a)
	}
}
