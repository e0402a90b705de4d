//go:build unix && !race && nightly

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/pause"
	"example.org/registry/events/publish"
)

// backend publishes each event until it is acknowledged, and knows what the registry must show
// because of that.
type backend struct {
	publisher *publish.Publisher
	report    *report
	rng       *rand.Rand
	entries   []events.Entry   // all there are, listed or not
	revision  int64            // of the last event
	twin      *eventstest.Twin // has what is acknowledged

	last     atomic.Uint64 // highest sequence acknowledged
	acked    atomic.Int64  // events
	repeated atomic.Int64  // attempts that were not acknowledged
}

// publishing starts a backend of 300 entries that publishes about 100 events a second. It returns when
// the registry has content. end, which the test must call before it looks at the twin, waits for the
// last acknowledgment.
func publishing(t *testing.T, js jetstream.JetStream) (b *backend, end func()) {
	t.Helper()
	b = &backend{publisher: publish.New(js, publish.Config{Stream: events.DefaultStream, Timeout: 2 * time.Second}),
		report: newReport(t), rng: rand.New(rand.NewPCG(6, 1)), entries: eventstest.Entries(300, 6), revision: time.Now().UnixMilli(), twin: eventstest.NewTwin()}
	for _, e := range b.entries {
		b.publish(t.Context(), b.newEvent(events.TypeListed, e))
	}
	require.NoError(t, t.Context().Err(), "publish the first content")

	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { b.run(t.Context(), done) })
	end = sync.OnceFunc(func() { close(done); running.Wait() })
	t.Cleanup(end) // by now t's context has ended: nothing is waited for any more
	return b, end
}

// run publishes events until done is closed. It waits for acknowledgments until ctx ends.
func (b *backend) run(ctx context.Context, done <-chan struct{}) {
	for ctx.Err() == nil {
		b.publish(ctx, b.nextEvent())
		select {
		case <-time.After(10 * time.Millisecond):
		case <-done:
			return
		case <-ctx.Done():
		}
	}
}

// publish publishes an event until it is acknowledged, or ctx ends. From then on the twin has it.
func (b *backend) publish(ctx context.Context, e events.Event) {
	for ctx.Err() == nil {
		ack, err := b.publisher.Publish(ctx, e)
		if err == nil {
			b.twin.Apply(e.Data)
			b.last.Store(max(b.last.Load(), ack.Sequence))
			b.acked.Add(1)
			return
		}
		b.repeated.Add(1)
		pause.For(ctx, 20*time.Millisecond)
	}
}

// nextEvent draws an event: mostly another name or view total, some delistings.
func (b *backend) nextEvent() events.Event {
	entry := b.entries[b.rng.IntN(len(b.entries))]
	n := b.rng.IntN(10)
	if n < 4 {
		return b.newEvent(events.TypeViewsCounted, events.Views{List: entry.List, EntryID: entry.EntryID, Views: b.rng.Int64N(1_000_000)})
	}
	if n == 4 {
		return b.newEvent(events.TypeDelisted, events.Delisting{List: entry.List, EntryID: entry.EntryID})
	}
	entry.Name = fmt.Sprintf("%s %05d", entry.Name, b.rng.IntN(100_000))
	entry.Verified = b.rng.IntN(3) > 0
	return b.newEvent(events.TypeAmended, entry)
}

func (b *backend) newEvent(t events.Type, data events.Data) events.Event {
	b.revision++
	return events.Event{ID: fmt.Sprint("backend-", b.revision), Source: "urn:registry:test", Type: t, Data: events.Revised(data, b.revision)}
}
