package projector

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

const (
	// consumerLife is how long the broker keeps a consumer that nobody asks.
	consumerLife = time.Minute
	// discardWithin is how long it is asked to forget one at once. A broker in trouble, which is why most sessions
	// end, does not answer, and the next session waits for this one.
	discardWithin = 500 * time.Millisecond
)

// session follows the stream with one consumer until anything is out of order. established says
// that the stream was ours and messages could have come.
func (p *Projector) session(ctx context.Context) (established bool, err error) {
	info, err := p.ensure(ctx)
	if err != nil {
		return false, err
	}
	if err := p.accept(info); err != nil {
		return false, err
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
