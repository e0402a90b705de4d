package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	pullMessages = 2000    // asked for at once
	maxInFlight  = 8 << 20 // bytes from the broker on their way, and as much again in the queue
	maxQueued    = 4096    // messages
	maxDecoding  = 16      // chunks between the queue and the model

	// heartbeat is the broker's sign of life on an idle pull; two missing ones end the session.
	heartbeat = time.Second
)

// Why a session ended, when the broker gave no reason.
var (
	errGap        = errors.New("a delivery is missing")
	errConnection = errors.New("the connection was lost")
)

// receiver is one consumer and the way of its messages through the workers.
type receiver struct {
	consumer jetstream.Consumer
	pending  uint64 // messages the consumer had to deliver when it was made
	conn     *nats.Conn

	queue   *queue
	ordered chan *job  // in stream order, being decoded or done
	trouble chan error // why the session must end; holds the first

	delivered uint64 // consumer sequence of the last message; owned by the library's goroutine
	broken    bool   // after a gap nothing is taken; owned by the library's goroutine

	stop    context.CancelFunc // of the goroutines
	running sync.WaitGroup
	consume jetstream.ConsumeContext // nil before start
	changes chan nats.Status
}

// start lets messages come.
func (r *receiver) start(ctx context.Context, jobs chan<- *job) (err error) {
	ctx, r.stop = context.WithCancel(ctx)
	r.changes = r.conn.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	r.running.Go(func() {
		select {
		case <-r.changes:
			r.fail(errConnection)
		case <-ctx.Done():
		}
	})
	r.running.Go(func() { r.dispatch(ctx, jobs) })
	r.consume, err = r.consumer.Consume(r.handle,
		jetstream.PullMaxMessagesWithBytesLimit(pullMessages, maxInFlight),
		jetstream.PullHeartbeat(heartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { r.fail(err) }))
	if err != nil {
		return fmt.Errorf("consumer: %w", err)
	}
	return nil
}

// fail ends the session. It never waits: the library calls it with its locks held.
func (r *receiver) fail(err error) {
	select {
	case r.trouble <- err:
	default:
	}
}

// handle takes one message from the library's goroutine. Deliveries are numbered; a gap between two
// means that one was lost on the way, while gaps in stream sequences are legal.
func (r *receiver) handle(msg jetstream.Msg) {
	meta, err := msg.Metadata()
	if err == nil && meta.Sequence.Consumer != r.delivered+1 {
		err = errGap
	}
	if err != nil && !r.broken {
		r.broken = true
		r.fail(err)
	}
	if r.broken {
		return
	}
	r.delivered++
	m := message{
		subject: msg.Subject(),
		data:    msg.Data(),
		id:      msg.Headers().Get(jetstream.MsgIDHeader),
		seq:     meta.Sequence.Stream,
		time:    meta.Timestamp,
	}
	if meta.NumPending == 0 {
		m.last = time.Now()
	}
	r.queue.push(m)
}

// dispatch cuts what has been received into chunks for the workers.
func (r *receiver) dispatch(ctx context.Context, jobs chan<- *job) {
	for {
		rest := r.queue.take()
		if rest == nil {
			return
		}
		for len(rest) > 0 {
			j := &job{done: make(chan struct{})}
			j.messages, rest = cut(rest)
			select {
			case jobs <- j:
			case <-ctx.Done():
				return
			}
			select {
			case r.ordered <- j:
			case <-ctx.Done():
				return
			}
		}
	}
}
