//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// backend publishes, each event until it is acknowledged, and knows what must be shown because of that.
type backend struct {
	nc        *nats.Conn
	js        jetstream.JetStream
	publisher *events.Publisher
	content   *content
	poisons   []poison
	report    *report

	// calm is held for reading by whoever causes traffic, one request or batch at a time, and for writing at a
	// quiet point. It guards content and twin, too.
	calm  sync.RWMutex
	twin  *eventstest.Twin
	last  atomic.Uint64 // highest sequence acknowledged
	acked atomic.Int64  // events
}

func newBackend(addr string, cfg config, r *report) (*backend, error) {
	poisons, err := readPoisons()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect("nats://"+addr, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond), nats.PingInterval(time.Second),
		nats.MaxPingsOutstanding(2), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // what matters comes back as an error
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &backend{nc: nc, js: js, publisher: events.NewPublisher(js, events.PublisherConfig{Stream: events.DefaultStream, Timeout: 2 * time.Second}),
		content: newContent(cfg.entries, cfg.seed), poisons: poisons, report: r, twin: eventstest.NewTwin()}, nil
}

// maxBatch is how many events are published at once at most, beside what belongs together.
const maxBatch = 20

// run publishes so many events a second until ctx ends.
func (b *backend) run(ctx context.Context, rate int) error {
	for ctx.Err() == nil {
		began := time.Now()
		n := b.turn(ctx)
		pause(ctx, time.Duration(n)*time.Second/time.Duration(rate)-time.Since(began))
	}
	return nil
}

// turn publishes some events and returns how many.
func (b *backend) turn(ctx context.Context) int {
	b.calm.RLock()
	defer b.calm.RUnlock()
	var batch []events.Event
	switch size := b.content.rng.IntN(2 * maxBatch); {
	case size == 0:
		batch = b.spoil(ctx)
	case size < maxBatch:
		batch = b.content.next()
	default:
		for len(batch) < size-maxBatch {
			batch = append(batch, b.content.next()...)
		}
	}
	b.publish(ctx, batch)
	return max(len(batch), 1)
}

// publish returns when all are acknowledged, or with ctx. Those are known from then on.
func (b *backend) publish(ctx context.Context, batch []events.Event) {
	for len(batch) > 0 {
		last, err := b.send(ctx, batch)
		if err == nil {
			b.know(batch, last)
			return
		}
		b.report.count("publishing repeated")
		if !pause(ctx, 50*time.Millisecond) {
			return
		}
	}
}

// send publishes one event alone and several as a run.
func (b *backend) send(ctx context.Context, batch []events.Event) (last uint64, err error) {
	if len(batch) == 1 {
		ack, err := b.publisher.Publish(ctx, batch[0])
		return ack.Sequence, err
	}
	messages := make([]events.Message, len(batch))
	for i, e := range batch {
		messages[i].Event = e
	}
	sum, err := b.publisher.PublishAll(ctx, messages)
	return sum.LastSequence, err
}

func (b *backend) know(batch []events.Event, last uint64) {
	for _, e := range batch {
		b.twin.Apply(e.Data)
	}
	b.last.Store(max(b.last.Load(), last))
	b.acked.Add(int64(len(batch)))
}

// seed publishes the first content, and the first poison.
func (b *backend) seed(ctx context.Context) error {
	b.publish(ctx, b.content.all())
	b.publish(ctx, b.spoil(ctx))
	if ctx.Err() != nil {
		return fmt.Errorf("publish the first content: %w", ctx.Err())
	}
	return nil
}
