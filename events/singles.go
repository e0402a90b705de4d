package events

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	maxInFlight  = 500                    // messages sent and not acknowledged
	maxAttempts  = 4                      // for a message that got no answer
	attemptPause = 250 * time.Millisecond // before sending such a message again
)

// singly sends msgs as messages of their own, in groups that have no subject twice, and
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
		group := distinct(msgs[start:])
		if failed, err := b.group(ctx, group); err != nil {
			return start + failed, err
		}
		start += len(group)
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

// group stores messages of different subjects; what got no answer is sent again, and so,
// without its id, is what the stream has in another order than the run.
func (b *bulk) group(ctx context.Context, msgs []*nats.Msg) (int, error) {
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
		if err == nil { // all that is left has just lost its id, which happens to a message once
			attempt = 0
			continue
		}
		if refusal := Refusal(b.nc, err, msgs[left[len(left)-1]].Subject); refusal != err { // of the last one sent, the broker has spoken last
			return left[0], refusal
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
// why: a refusal, if there was one, before a missing answer. Outdated duplicates are of the
// rest, without an error, and have no id any more.
func (b *bulk) attempt(ctx context.Context, msgs []*nats.Msg, left []int) ([]int, error) {
	var again []int
	var why error
	for k, a := range b.acks.exchange(ctx, msgs, left) {
		i := left[k]
		switch {
		case a.err != nil:
			again = append(again, i)
			if why == nil || !transient(a.err) {
				why = a.err
			}
		case b.order.outdated(msgs[i].Subject, a.ack):
			again = append(again, i)
			msgs[i] = withoutID(msgs[i])
		default:
			b.count(a.ack, msgs[i])
		}
	}
	return again, why
}

// withoutID is msg as the broker stores it whatever it knows (API contract, events: the header
// may be missing). An id made up for it would say that there is another event. Without one, a
// repetition after a lost acknowledgement is stored twice, which changes nothing.
func withoutID(msg *nats.Msg) *nats.Msg {
	header := maps.Clone(msg.Header)
	header.Del(jetstream.MsgIDHeader)
	return &nats.Msg{Subject: msg.Subject, Header: header, Data: msg.Data}
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
