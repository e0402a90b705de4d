package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
)

const (
	pullMessages = 2000                     // requested at once
	maxInFlight  = 8 << 20                  // bytes in flight from the broker, and as many again in the queue
	maxEnvelope  = 64 << 10                 // bytes of subjects that the broker counts as part of a message
	maxQueued    = 4096                     // messages
	maxDecoding  = maxBatch / chunkMessages // chunks between the queue and the model

	// heartbeat is the broker's sign of life on an idle pull; two missing ones end the session.
	heartbeat = time.Second

	// consumerLife is how long the broker keeps an unused consumer.
	consumerLife = time.Minute

	// deleteTimeout bounds the request to delete a consumer. Most sessions end because of a problem
	// with the broker, which then does not answer, and the next session waits for this request.
	deleteTimeout = 500 * time.Millisecond
)

// Reasons for the end of a session without an error of the broker.
var (
	errGap        = errors.New("a delivery is missing")
	errConnection = errors.New("the connection was lost")
)

// message is one message of the stream, as received.
type message struct {
	leader.Message
	atEnd bool // nothing was pending after it when it was sent
}

// receiver is one consumer, and passes its messages to the workers. The library's goroutine puts
// them into the queue; dispatch cuts them into chunks, which it gives to the workers and, in stream
// order, to the session.
type receiver struct {
	js       jetstream.JetStream
	stream   string
	consumer jetstream.Consumer
	pull     int    // messages requested at once
	pending  uint64 // messages that the consumer had to deliver when it was made

	received atomic.Uint64 // stream sequence of the last message received

	queue   *queue
	ordered chan *chunk // in stream order, decoded or being decoded
	trouble chan error  // the reason to end the session; holds the first

	// Owned by the library's goroutine.
	delivered uint64 // consumer sequence of the last message
	broken    bool   // a delivery was missing: no more are accepted

	stop    context.CancelFunc // of the goroutines; nil before start
	running sync.WaitGroup
	consume jetstream.ConsumeContext // nil before start
	changes chan nats.Status
}

// newReceiver makes a consumer that starts after the checkpoint.
func (p *Projector) newReceiver(ctx context.Context) (*receiver, error) {
	ctx, cancel := context.WithTimeout(ctx, leader.RequestTimeout)
	defer cancel()
	c, err := p.js.CreateConsumer(ctx, p.cfg.Stream, jetstream.ConsumerConfig{
		Description:       "registry projector",
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       p.checkpoint().Sequence + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: consumerLife,
	})
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", natserr.Explain(p.js.Conn(), err, jetstream.DefaultAPIPrefix+"CONSUMER.CREATE."+p.cfg.Stream))
	}
	return &receiver{
		js:       p.js,
		stream:   p.cfg.Stream,
		consumer: c,
		pull:     p.cfg.Limits.Pull,
		pending:  c.CachedInfo().NumPending,
		queue:    newQueue(p.cfg.Limits.Queued, maxInFlight),
		ordered:  make(chan *chunk, maxDecoding),
		trouble:  make(chan error, 1),
	}, nil
}

// start starts the delivery of messages.
func (r *receiver) start(ctx context.Context, workers chan<- *chunk) (err error) {
	ctx, r.stop = context.WithCancel(ctx)
	r.changes = r.js.Conn().StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	r.running.Go(func() {
		select {
		case <-r.changes:
			r.fail(errConnection)
		case <-ctx.Done():
		}
	})
	r.running.Go(func() { r.dispatch(ctx, workers) })
	r.consume, err = r.consumer.Consume(r.handle,
		jetstream.PullMaxMessagesWithBytesLimit(r.pull, r.inFlight()),
		jetstream.PullHeartbeat(heartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { r.fail(err) }))
	if err != nil {
		return fmt.Errorf("consumer: %w", err)
	}
	return nil
}

// inFlight returns how many bytes are requested at once. It is at least the broker's maximum
// message size, since the broker never delivers a message that exceeds the request.
func (r *receiver) inFlight() int {
	return max(maxInFlight, int(r.js.Conn().MaxPayload())+maxEnvelope)
}

// fail ends the session. It never blocks: the library calls it with its locks held.
func (r *receiver) fail(err error) {
	select {
	case r.trouble <- err:
	default:
	}
}

// handle queues one message, on the library's goroutine. Deliveries are numbered: a gap between two
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
	m := message{atEnd: meta.NumPending == 0, Message: leader.Message{
		Subject:  msg.Subject(),
		Sequence: meta.Sequence.Stream,
		ID:       msg.Headers().Get(jetstream.MsgIDHeader),
		Binary:   events.IsBinaryMode(msg.Headers()),
		Time:     meta.Timestamp,
		Data:     msg.Data(),
	}}
	r.received.Store(m.Sequence) // first: a check that finds the message in the stream must see that it was received
	r.queue.push(m)
}

// dispatch passes received messages to the workers, in chunks.
func (r *receiver) dispatch(ctx context.Context, workers chan<- *chunk) {
	for {
		rest := r.queue.popAll()
		if rest == nil {
			return
		}
		for len(rest) > 0 {
			c := &chunk{done: make(chan struct{})}
			c.messages, rest = cut(rest)
			for _, to := range []chan<- *chunk{workers, r.ordered} {
				select {
				case to <- c:
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

// close deletes the consumer and waits for all goroutines of start. Messages that have not been
// applied are dropped: the next session receives them again.
func (r *receiver) close(log *slog.Logger) {
	r.queue.close()
	if r.stop != nil {
		r.stop()
		r.js.Conn().RemoveStatusListener(r.changes)
	}
	if r.consume != nil {
		r.consume.Stop()
		<-r.consume.Closed()
	}
	r.running.Wait()
	if !r.js.Conn().IsConnected() {
		return // the broker deletes it after consumerLife
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	name := r.consumer.CachedInfo().Name
	if err := r.js.DeleteConsumer(ctx, r.stream, name); err != nil {
		log.Debug("consumer left to the broker", "consumer", name, "error", err)
	}
}

// queue holds messages between the library's goroutine and dispatch, which takes all of them at
// once. It is bounded in messages and bytes: push waits.
type queue struct {
	maxMessages, maxBytes int

	mu       sync.Mutex
	changed  sync.Cond
	messages []message
	bytes    int
	closed   bool
}

func newQueue(maxMessages, maxBytes int) *queue {
	q := &queue{maxMessages: maxMessages, maxBytes: maxBytes}
	q.changed.L = &q.mu
	return q
}

// push adds m, waiting for room. A closed queue drops it.
func (q *queue) push(m message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && (len(q.messages) >= q.maxMessages || q.bytes >= q.maxBytes) {
		q.changed.Wait()
	}
	if q.closed {
		return
	}
	q.messages = append(q.messages, m)
	q.bytes += len(m.Data)
	q.changed.Broadcast()
}

// popAll waits for messages and returns all of them, in order, or nil once the queue is closed.
func (q *queue) popAll() []message {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && len(q.messages) == 0 {
		q.changed.Wait()
	}
	if q.closed {
		return nil
	}
	all := q.messages
	q.messages, q.bytes = make([]message, 0, len(all)), 0
	q.changed.Broadcast()
	return all
}

// close makes every current and later push and popAll return.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
