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

// errNoAnswer says that the acknowledgement did not come in time.
var errNoAnswer = errors.New("no acknowledgement from the broker in time")

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
