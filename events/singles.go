package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	maxInFlight  = 500                    // messages sent and not acknowledged
	maxAttempts  = 4                      // for a message that got no answer
	attemptPause = 250 * time.Millisecond // before sending such a message again
)

// errNoAnswer says that the acknowledgement did not come in time.
var errNoAnswer = errors.New("no acknowledgement from the broker in time")

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
	left := make([]int, len(msgs))
	for i := range left {
		left[i] = i
	}
	for attempt := 1; ; attempt++ {
		answers := b.acks.exchange(ctx, msgs, left)
		var again []int
		var first error
		for k, a := range answers {
			switch {
			case a.err == nil:
				b.count(a.ack, 1)
			default:
				if again = append(again, left[k]); first == nil || !transient(a.err) {
					first = a.err
				}
			}
		}
		if len(again) == 0 {
			return 0, nil
		}
		if ctx.Err() != nil {
			return again[0], ctx.Err()
		}
		if attempt == maxAttempts || !transient(first) {
			return again[0], first
		}
		if err := pause(ctx, attemptPause); err != nil {
			return again[0], err
		}
		left = again
	}
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

// window sends many messages and gathers their acknowledgements on one subscription. It has
// one owner. The asynchronous publishing of nats.go would do it too, but its bounds and
// handlers belong to whoever made the JetStream value, and a lost answer hangs there for ever.
type window struct {
	nc      *nats.Conn
	sub     *nats.Subscription
	prefix  string // of the reply subjects: prefix + round + "." + index
	round   int
	timeout time.Duration
}

func newWindow(nc *nats.Conn, timeout time.Duration) (*window, error) {
	prefix := nc.NewInbox() + "."
	sub, err := nc.SubscribeSync(prefix + ">")
	if err != nil {
		return nil, fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	return &window{nc: nc, sub: sub, prefix: prefix, timeout: timeout}, nil
}

func (w *window) close() { _ = w.sub.Unsubscribe() } // fails only when the connection is gone

type answer struct {
	ack
	err error
}

// exchange sends msgs[i] for each i of which and waits for the answers, in that order. All
// that got none by the timeout have errNoAnswer, or why they could not be sent.
func (w *window) exchange(ctx context.Context, msgs []*nats.Msg, which []int) []answer {
	w.round++
	prefix := w.prefix + strconv.Itoa(w.round) + "."
	answers := make([]answer, len(which))
	waiting := 0
	for k, i := range which {
		out := *msgs[i]
		out.Reply = prefix + strconv.Itoa(k)
		answers[k].err = errNoAnswer
		if err := w.nc.PublishMsg(&out); err != nil {
			answers[k].err = err
			continue
		}
		waiting++
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	for waiting > 0 {
		reply, err := w.sub.NextMsgWithContext(ctx)
		if err != nil {
			return answers
		}
		if k, ours := w.index(reply.Subject, prefix, len(answers)); ours && answers[k].err == errNoAnswer {
			answers[k].ack, answers[k].err = parseAck(reply)
			waiting--
		}
	}
	return answers
}

// index reads a reply's number; answers of an earlier round are nobody's any more.
func (w *window) index(subject, prefix string, n int) (int, bool) {
	text, ok := strings.CutPrefix(subject, prefix)
	if !ok {
		return 0, false
	}
	k, err := strconv.Atoi(text)
	return k, err == nil && k >= 0 && k < n
}
