package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

const (
	pullMessages = 2000    // asked for at once
	maxInFlight  = 8 << 20 // bytes from the broker on their way, and as much again in the queue
	maxQueued    = 4096    // messages
	maxDecoding  = 16      // chunks between the queue and the model

	// consumerLife is how long the broker keeps a consumer that nobody asks.
	consumerLife = time.Minute
	// heartbeat is the broker's sign of life on an idle pull; two missing ones end the session.
	heartbeat = time.Second
	// discardWithin is how long it is asked to forget one at once. A broker in trouble, which is why most sessions
	// end, does not answer, and the next session waits for this one.
	discardWithin = 500 * time.Millisecond
)

// Why a session ended, when the broker gave no reason.
var (
	errGap        = errors.New("a delivery is missing")
	errConnection = errors.New("the connection was lost")
)

// session follows the stream with one consumer until anything is out of order. established says
// that the stream was ours and messages could have come.
func (p *Projector) session(ctx context.Context) (established bool, err error) {
	info, err := p.ensure(ctx)
	if err != nil {
		return false, err
	}
	if !p.accepted {
		if err := p.accept(info); err != nil {
			return false, err
		}
		p.accepted = true
	}
	p.identify(info)
	r, err := p.newReceiver(ctx)
	if err != nil {
		return false, err
	}
	defer p.discard(r)
	// After the consumer exists and before its first message is applied: from here on a stream
	// that is replaced takes the consumer with it.
	if err := p.verify(ctx); err != nil {
		return false, err
	}
	p.mark(ctx, false)
	p.recreated(info)
	p.begin(info, r.pending)
	defer func() {
		if ctx.Err() == nil { // nobody reads a model that is being left: do not sort it
			p.endBulk()
		}
	}()
	if err := r.start(ctx, p.jobs); err != nil {
		return false, err
	}
	p.status.say(troubleSession, "")
	return true, p.apply(ctx, r)
}

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

// newReceiver makes a consumer behind the checkpoint.
func (p *Projector) newReceiver(ctx context.Context) (*receiver, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
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
		return nil, fmt.Errorf("consumer: %w", Reason(events.Refusal(p.cfg.Conn, err, jetstream.DefaultAPIPrefix+"CONSUMER.CREATE."+p.cfg.Stream)))
	}
	return &receiver{
		consumer: c,
		pending:  c.CachedInfo().NumPending,
		conn:     p.cfg.Conn,
		queue:    newQueue(maxQueued, maxInFlight),
		ordered:  make(chan *job, maxDecoding),
		trouble:  make(chan error, 1),
	}, nil
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

// discard ends the consumer and waits for everything that start began. What has not been applied
// is dropped: the next session is sent it again.
func (p *Projector) discard(r *receiver) {
	r.queue.close()
	if r.stop != nil {
		r.stop()
		r.conn.RemoveStatusListener(r.changes)
	}
	if r.consume != nil {
		r.consume.Stop()
		<-r.consume.Closed()
	}
	r.running.Wait()
	if !r.conn.IsConnected() {
		return // the broker forgets it after consumerLife
	}
	ctx, cancel := context.WithTimeout(context.Background(), discardWithin)
	defer cancel()
	name := r.consumer.CachedInfo().Name
	if err := p.js.DeleteConsumer(ctx, p.cfg.Stream, name); err != nil {
		p.log.Debug("consumer left to the broker", "consumer", name, "error", err)
	}
}
