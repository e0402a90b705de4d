//go:build unix && !race && nightly

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
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
	js        jetstream.JetStream
	publisher *publish.Publisher
	batch     int // events published at once, at most
	content   *content
	poisons   []eventstest.Poison
	report    *report

	// calm is read-locked for each request or batch of traffic, and write-locked
	// while everything is compared. It guards content and twin, too.
	calm  sync.RWMutex
	twin  *eventstest.Twin
	last  atomic.Uint64 // highest sequence acknowledged
	acked atomic.Int64  // events
}

// poisonOften is how many turns there are to one poison event.
const poisonOften = 40

func newBackend(js jetstream.JetStream, entries, batch int, seed uint64, r *report) (*backend, error) {
	poisons, err := readPoisons()
	return &backend{js: js, publisher: publish.New(js, publish.Config{Stream: events.DefaultStream, Timeout: 2 * time.Second}),
		batch: batch, content: newContent(entries, seed), poisons: poisons, report: r, twin: eventstest.NewTwin()}, err
}

// publishing starts a backend of 300 entries that publishes about 100 events a second, one by one.
// It returns when the registry has content. end, which the test must call before it looks at the
// twin, waits for the last acknowledgment.
func publishing(t *testing.T, js jetstream.JetStream) (b *backend, end func()) {
	t.Helper()
	b, err := newBackend(js, 300, 1, 6, newReport(t))
	require.NoError(t, err)
	require.NoError(t, b.seed(t.Context()))
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { b.run(t.Context(), done, 100) })
	end = sync.OnceFunc(func() { close(done); running.Wait() })
	t.Cleanup(end) // by now t's context has ended: nothing is waited for any more
	return b, end
}

// seed publishes the first content and the first poison.
func (b *backend) seed(ctx context.Context) error {
	b.publish(ctx, b.content.all())
	b.publish(ctx, b.spoil(ctx))
	if ctx.Err() != nil {
		return fmt.Errorf("publish the first content: %w", ctx.Err())
	}
	return nil
}

// run publishes rate events a second until done is closed. It waits for acknowledgments until ctx
// ends.
func (b *backend) run(ctx context.Context, done <-chan struct{}, rate int) {
	for ctx.Err() == nil {
		began := time.Now()
		length := time.Duration(b.turn(ctx)) * time.Second / time.Duration(rate)
		select {
		case <-time.After(length - time.Since(began)):
		case <-done:
			return
		case <-ctx.Done():
		}
	}
}

// turn publishes some events and returns how many.
func (b *backend) turn(ctx context.Context) int {
	b.calm.RLock()
	defer b.calm.RUnlock()
	if b.content.rng.IntN(poisonOften) == 0 {
		b.publish(ctx, b.spoil(ctx))
		return 1
	}
	batch := b.content.next()
	if b.batch == 1 {
		for i := range batch {
			b.publish(ctx, batch[i:i+1])
		}
		return len(batch)
	}
	for size := b.content.rng.IntN(b.batch); len(batch) < size; {
		batch = append(batch, b.content.next()...)
	}
	b.publish(ctx, batch)
	return len(batch)
}

// publish publishes a batch until all of it is acknowledged, or ctx ends. From then on the twin has
// it.
func (b *backend) publish(ctx context.Context, batch []events.Event) {
	for len(batch) > 0 {
		last, err := b.send(ctx, batch)
		if err == nil {
			for _, e := range batch {
				b.twin.Apply(e.Data)
			}
			b.last.Store(max(b.last.Load(), last))
			b.acked.Add(int64(len(batch)))
			return
		}
		b.report.count("publishing repeated")
		if !pause.For(ctx, 20*time.Millisecond) {
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
	messages := make([]publish.Message, len(batch))
	for i, e := range batch {
		messages[i].Event = e
	}
	sum, err := b.publisher.PublishAll(ctx, messages)
	return sum.LastSequence, err
}

// readPoisons reads the corpus of the package events, without what is valid in it.
func readPoisons() ([]eventstest.Poison, error) {
	all, err := eventstest.Poisons("../../../events/testdata/poison.txt")
	return slices.DeleteFunc(all, func(p eventstest.Poison) bool { return p.Problem == "" || p.Headers != "" }), err
}

// spoil publishes a poison event: on its own subject, which never has a valid one, or on that of a
// listed entry. There the returned event must follow it, since the stream keeps few events of a
// subject, and one of them must be valid.
func (b *backend) spoil(ctx context.Context) []events.Event {
	p := b.poisons[b.content.rng.IntN(len(b.poisons))]
	var after []events.Event
	if b.content.rng.IntN(2) == 0 {
		next := b.content.amend()
		if _, err := events.DecodeMessage(next.Data.Subject().String(), []byte(p.Payload)); err == nil {
			return []events.Event{next}
		}
		p.Subject, after = next.Data.Subject().String(), []events.Event{next}
	}
	b.content.serial++
	id := fmt.Sprintf("%s-%d", b.content.run, b.content.serial)
	for {
		ack, err := b.publishRaw(ctx, p, id)
		if err == nil {
			b.last.Store(max(b.last.Load(), ack.Sequence))
			b.report.count("poison events")
			return after
		}
		if !pause.For(ctx, 50*time.Millisecond) {
			return nil
		}
	}
}

func (b *backend) publishRaw(ctx context.Context, p eventstest.Poison, id string) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return b.js.PublishMsg(ctx, &nats.Msg{Subject: p.Subject, Data: []byte(p.Payload), Header: nats.Header{jetstream.MsgIDHeader: {id}}})
}

// content draws events that keep the registry's content at one size: texts keep their lengths, and
// the entry that leaves makes room for the longest absent one. One goroutine at a time may use it.
type content struct {
	base      int64 // of revisions
	rng       *rand.Rand
	run       string // makes event ids unique
	serial    int
	entries   []events.Entry // all there are, listed or not
	delisted  []int          // indexes of entries, longest ago first
	listed    []int
	donations []string // that exist
	removed   []string // longest ago first
}

func newContent(n int, seed uint64) *content {
	c := &content{rng: rand.New(rand.NewPCG(seed, 1)), run: fmt.Sprintf("backend-%d", seed), base: time.Now().UnixMilli(), entries: eventstest.Entries(n, seed)}
	for i := range n {
		c.listed = append(c.listed, i)
	}
	for i := range max(n/20, 20) {
		c.donations = append(c.donations, fmt.Sprintf("donation-%d-%06d", seed%1000, i))
	}
	return c
}

func (c *content) event(t events.Type, data events.Data) events.Event {
	c.serial++
	data = events.Revised(data, c.base+int64(c.serial))
	return events.Event{ID: fmt.Sprintf("%s-%d", c.run, c.serial), Source: "urn:registry:test", Type: t, Data: data}
}

// all returns the first content: everything once, some of it removed again.
func (c *content) all() []events.Event {
	var out []events.Event
	for i, e := range c.entries {
		out = append(out, c.event(events.TypeListed, c.state(i)), c.event(events.TypeViewsCounted, c.views(e)))
	}
	for _, id := range c.donations {
		out = append(out, c.event(events.TypeDonationUpdated, c.donation(id)))
	}
	for range len(c.entries) / 20 {
		out = append(out, c.delist())
	}
	for range len(c.donations) / 5 {
		out = append(out, c.remove())
	}
	return out
}

// next returns what happens next, one event or two that belong together.
func (c *content) next() []events.Event {
	switch n := c.rng.IntN(20); {
	case n < 9:
		return []events.Event{c.event(events.TypeViewsCounted, c.views(c.entries[c.rng.IntN(len(c.entries))]))}
	case n < 15:
		return []events.Event{c.amend()}
	case n < 18:
		return []events.Event{c.list(), c.delist()}
	case n < 19:
		id := c.donations[c.rng.IntN(len(c.donations))]
		return []events.Event{c.event(events.TypeDonationUpdated, c.donation(id))}
	}
	id := take(&c.removed, 0)
	c.donations = append(c.donations, id)
	return []events.Event{c.event(events.TypeDonationUpdated, c.donation(id)), c.remove()}
}

// amend changes a listed entry.
func (c *content) amend() events.Event {
	e := c.state(c.listed[c.rng.IntN(len(c.listed))])
	if e.Verified {
		return c.event(events.TypeVerified, e)
	}
	return c.event(events.TypeAmended, e)
}

// state returns an entry with another name of the same length.
func (c *content) state(i int) events.Entry {
	e := c.entries[i]
	e.Name = fmt.Sprintf("%s %05d", e.Name, c.serial%100_000)
	e.Verified = c.rng.IntN(3) > 0
	return e
}

func (c *content) views(e events.Entry) events.Views {
	return events.Views{Revision: 1, List: e.List, EntryID: e.EntryID, Views: 1_000_000 + c.rng.Int64N(1_000_000)}
}

func (c *content) donation(id string) events.Donation {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return events.Donation{Revision: 1, DonationID: id, Status: events.DonationConfirming, Amount: fmt.Sprintf("%d.50", 10+c.rng.IntN(90)), Currency: "PLN",
		Confirmations: c.rng.Int64N(6), RequiredConfirmations: 6, CreatedAt: at, UpdatedAt: at.Add(time.Duration(c.rng.IntN(1_000_000)) * time.Second)}
}

// list lists again who left longest ago.
func (c *content) list() events.Event {
	i := take(&c.delisted, 0)
	c.listed = append(c.listed, i)
	return c.event(events.TypeListed, c.state(i))
}

func (c *content) delist() events.Event {
	i := take(&c.listed, c.rng.IntN(len(c.listed)))
	c.delisted = append(c.delisted, i)
	return c.event(events.TypeDelisted, events.Delisting{Revision: 1, List: c.entries[i].List, EntryID: c.entries[i].EntryID})
}

func (c *content) remove() events.Event {
	id := take(&c.donations, c.rng.IntN(len(c.donations)))
	c.removed = append(c.removed, id)
	return c.event(events.TypeDonationRemoved, events.DonationRemoval{Revision: 1, DonationID: id})
}

// take removes one and returns it. The last takes its place, or, if it was the first, all others
// move up.
func take[T any](from *[]T, i int) T {
	all := *from
	x := all[i]
	if i == 0 {
		*from = append([]T(nil), all[1:]...)
		return x
	}
	all[i] = all[len(all)-1]
	*from = all[:len(all)-1]
	return x
}
