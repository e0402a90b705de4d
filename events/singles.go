package events

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	maxInFlight  = 500                    // messages sent and not acknowledged
	maxAttempts  = 4                      // for a message that got no answer
	attemptPause = 250 * time.Millisecond // before sending such a message again
)

// singly sends msgs as messages of their own, in runs that have no subject twice, and
// returns the index of the first that is not stored.
func (b *bulk) singly(ctx context.Context, msgs []*nats.Msg) (int, error) {
	if b.acks == nil {
		w, err := newWindow(b.nc, b.p.cfg.Timeout)
		if err != nil {
			return 0, err
		}
		b.acks = w
	}
	for start := 0; start < len(msgs); {
		run := distinct(msgs[start:])
		if failed, err := b.run(ctx, run); err != nil {
			return start + failed, err
		}
		start += len(run)
	}
	return 0, nil
}

// distinct is the longest beginning of msgs, within bounds, with no subject twice.
func distinct(msgs []*nats.Msg) []*nats.Msg {
	seen := make(map[string]struct{}, min(len(msgs), maxInFlight))
	for i, msg := range msgs {
		if _, there := seen[msg.Subject]; there || i == maxInFlight {
			return msgs[:i]
		}
		seen[msg.Subject] = struct{}{}
	}
	return msgs
}

// run stores messages of different subjects; what got no answer is sent again.
func (b *bulk) run(ctx context.Context, msgs []*nats.Msg) (int, error) {
	left := make([]int, len(msgs)) // indices of what is not stored yet
	for i := range left {
		left[i] = i
	}
	for attempt := 1; ; attempt++ {
		var err error
		if left, err = b.attempt(ctx, msgs, left); len(left) == 0 {
			return 0, nil
		}
		if ctx.Err() != nil {
			return left[0], ctx.Err()
		}
		if attempt == maxAttempts || !transient(err) {
			return left[0], err
		}
		if err := pause(ctx, attemptPause); err != nil {
			return left[0], err
		}
	}
}

// attempt sends msgs[i] for each i of left once. It returns the rest that is not stored, and
// why: a refusal, if there was one, before a missing answer.
func (b *bulk) attempt(ctx context.Context, msgs []*nats.Msg, left []int) ([]int, error) {
	var again []int
	var why error
	for k, a := range b.acks.exchange(ctx, msgs, left) {
		if a.err == nil {
			b.count(a.ack, 1)
			continue
		}
		again = append(again, left[k])
		if why == nil || !transient(a.err) {
			why = a.err
		}
	}
	return again, why
}

// transient errors say nothing about the message: it may be stored or not, and is sent again
// with its id.
func transient(err error) bool {
	var api *ackError
	if errors.As(err, &api) {
		return api.ErrorCode == codeInProcess
	}
	return true
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
