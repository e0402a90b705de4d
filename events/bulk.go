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
	Sent         int    // new to the stream
	Duplicates   int    // already there, by event id, within the last two minutes
	LastSequence uint64 // the highest acknowledged
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

// PublishAll sends messages in their order and returns when all are stored. When one breaks
// the contract, nothing is sent. Any error is a *MessageError, or the context's; what the
// summary counts is stored nevertheless, and publishing the same messages again is safe.
//
// It sends atomic batches, which the broker syncs once each. A batch that the stream refuses
// (a message known already, no atomic publishing) or does not acknowledge is sent again
// message by message with the same ids, many at a time but never two of one subject. So the
// messages of a subject are stored in order, come what may.
func (p *Publisher) PublishAll(ctx context.Context, messages []Message) (Summary, error) {
	for i := range messages {
		if err := p.check(&messages[i]); err != nil {
			return Summary{}, &MessageError{i, err}
		}
	}
	b := bulk{p: p, nc: p.js.Conn()}
	defer b.close()
	for next := 0; next < len(messages); {
		msgs, err := p.cut(messages[next:])
		if err != nil {
			return b.sum, &MessageError{next, err}
		}
		if failed, err := b.send(ctx, msgs); err != nil {
			return b.sum, &MessageError{next + failed, err}
		}
		next += len(msgs)
		if p.cfg.Progress != nil {
			p.cfg.Progress(b.sum)
		}
	}
	return b.sum, nil
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
	p    *Publisher
	nc   *nats.Conn
	acks *window // made at the first message sent singly
	sum  Summary
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

// count adds one acknowledgement.
func (b *bulk) count(a ack, messages int) {
	if a.Duplicate {
		b.sum.Duplicates += messages
	} else {
		b.sum.Sent += messages
	}
	b.sum.LastSequence = max(b.sum.LastSequence, a.Sequence)
}
