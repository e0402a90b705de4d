package publish

import (
	"context"
	"fmt"
	"hash/maphash"
)

// Run publishes one sequence of messages, in any number of calls of PublishAll, such as a file in
// pieces. Whatever the stream had before, and whichever ids the broker still knows, a subject's
// last message of the run is stored after its earlier ones: no old state comes back.
//
// After an error continue in the same Run, from the message at fault, or repeat the whole sequence
// in a new Run: a Run does not know what another one has stored.
//
// It stores 30 to 40 bytes for each subject, 300 MB for ten million, and needs no closing. One
// goroutine at a time may use it.
type Run struct {
	p     *Publisher
	order ackTracker
}

// NewRun begins a run.
func (p *Publisher) NewRun() *Run { return &Run{p: p, order: newOrder()} }

// PublishAll publishes messages as a separate Run (see Run.PublishAll). Publishing all of the same
// messages again is safe.
func (p *Publisher) PublishAll(ctx context.Context, messages []Message) (Summary, error) {
	return p.NewRun().PublishAll(ctx, messages)
}

// Summary counts the results of PublishAll. Sent plus Duplicates is the number of messages of the
// slice that are certainly in the stream.
type Summary struct {
	Sent         int    // stored: new to the stream, or again because the stream had them in another order
	Duplicates   int    // already there, by event id, within the last two minutes
	LastSequence uint64 // the highest acknowledged, or 0 for none
}

// MessageError is the error of the first message of PublishAll that is not certainly stored.
type MessageError struct {
	Index int // in the slice
	Err   error
}

// Error returns "message <index>: <reason>".
func (e *MessageError) Error() string { return fmt.Sprintf("message %d: %v", e.Index, e.Err) }

// Unwrap returns the reason.
func (e *MessageError) Unwrap() error { return e.Err }

// PublishAll sends messages in their order and returns when all are stored. If one violates the
// contract, nothing is sent. The error is a *MessageError; the messages that the summary counts are
// stored nevertheless.
//
// It sends atomic batches. The broker syncs once for each. If the stream refuses a batch (it knows
// a message already, or accepts no batches) or does not acknowledge it, PublishAll sends its
// messages singly with the same ids, many at a time but never two of one subject. The broker may
// take a message for a duplicate of one stored before the run's earlier messages of its subject.
// Such a message is sent again without its id, so that it is the last one again.
func (r *Run) PublishAll(ctx context.Context, messages []Message) (Summary, error) {
	for i := range messages {
		if err := r.p.Check(&messages[i]); err != nil {
			return Summary{}, &MessageError{i, err}
		}
	}
	s := sender{p: r.p, nc: r.p.js.Conn(), order: r.order}
	for next := 0; next < len(messages); {
		msgs, err := r.p.batch(messages[next:])
		if err != nil {
			return s.sum, &MessageError{next, err}
		}
		if failed, err := s.send(ctx, msgs); err != nil {
			return s.sum, &MessageError{next + failed, err}
		}
		next += len(msgs)
		if r.p.cfg.Progress != nil {
			r.p.cfg.Progress(s.sum)
		}
	}
	return s.sum, nil
}

// ackTracker holds the highest acknowledged sequence for each subject of a run. A duplicate acknowledged
// below it was stored before an earlier message of the run. That happens because the broker does
// not forget ids in the order of their messages: after a restart it knows only the ids of messages
// that it still has, not of purged or displaced ones, and its window may end in the middle of a
// repetition.
//
// Comparing sequences, instead of recording which messages the run has stored as new, also finds
// messages that an earlier, killed run left in the wrong order.
//
// Subjects are stored as 64-bit hashes. A collision, one pair in millions of runs of ten million
// subjects, only stores a known message again.
type ackTracker struct {
	seed    maphash.Seed
	highest map[uint64]uint64 // sequence by hash of the subject
}

func newOrder() ackTracker { return ackTracker{maphash.MakeSeed(), map[uint64]uint64{}} }

// outdated reports whether the acknowledged message is older than another message of the run on its
// subject.
func (o *ackTracker) outdated(subject string, a Ack) bool {
	return a.Duplicate && a.Sequence < o.highest[maphash.String(o.seed, subject)]
}

// add records an acknowledgment. For a batch, the sequences of its messages are at most the
// acknowledged one, and no other message is stored between them.
func (o *ackTracker) add(subject string, a Ack) {
	key := maphash.String(o.seed, subject)
	o.highest[key] = max(o.highest[key], a.Sequence)
}
