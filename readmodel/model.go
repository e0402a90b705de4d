package readmodel

import (
	"context"
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"

	"example.org/registry/events"
	"github.com/tidwall/btree"
	"golang.org/x/sync/errgroup"
)

// Model is the writer's side of the read model. One goroutine at a time owns it and calls Apply,
// BeginBulk, EndBulk and Digest; any goroutine may call View and Await.
type Model struct {
	// Owned by the applier.
	lists            [numLists]*catalogue
	chats            chats
	likes            likes
	donations        *btree.BTreeG[*donation]
	digest           Digest // of the donations; the lists keep their own
	donationsChanged bool   // since the last publish
	changes          changeLog
	checkpoint       uint64
	bulk             bool

	accelerator *accelerator // fixed after New; shared with the views

	// Shared.
	view    atomic.Pointer[View]
	waiting atomic.Int64
	mu      sync.Mutex
	next    chan struct{} // closed when a view is published; guarded by mu
}

type donation struct {
	events.Donation
	digest Digest
}

// New makes an empty model whose view has sequence 0.
func New() *Model {
	m := &Model{
		next: make(chan struct{}), chats: chats{seed: maphash.MakeSeed()}, likes: newLikes(),
		donations: newDonations(), donationsChanged: true, accelerator: newAccelerator(),
	}
	first := &View{accelerator: m.accelerator}
	for i := range m.lists {
		m.lists[i], first.lists[i] = newCatalogue(), &listView{}
	}
	m.view.Store(first)
	m.publish()
	return m
}

func newDonations() *btree.BTreeG[*donation] {
	less := func(a, b *donation) bool { return a.DonationID < b.DonationID }
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// View is the newest published state. It is never nil, and costs one atomic load.
func (m *Model) View() *View { return m.view.Load() }

// Apply takes what the stream said up to sequence checkpoint and publishes the next view, which it
// returns. Records are in stream order; the last one of a subject decides. A checkpoint never goes
// back (promise 3). In bulk nothing is published and the view returned is the old one.
func (m *Model) Apply(records []Record, checkpoint uint64) *View {
	for i := range records {
		m.apply(&records[i])
	}
	m.checkpoint = max(m.checkpoint, checkpoint)
	if m.bulk {
		return m.View()
	}
	return m.publish()
}

func (m *Model) apply(r *Record) {
	switch r.Key.Kind {
	case KindEntry:
		ch := m.lists[listIndex(r.Key.List)].put(r.Key.ID, r.row, m.bulk)
		if !m.bulk && ch != (change{}) {
			m.chats.apply(ch)
			m.likes.apply(ch)
			m.changes.add(r.Sequence, listIndex(r.Key.List), &ch)
		}
	case KindViews:
		m.lists[listIndex(r.Key.List)].count(r.Key, r.views, r.digest, m.bulk)
	case KindDonation:
		m.donate(r)
	}
}

func (m *Model) donate(r *Record) {
	m.donationsChanged = true
	var old *donation
	if r.Removed {
		old, _ = m.donations.Delete(&donation{Donation: events.Donation{DonationID: r.Key.ID}})
	} else {
		old, _ = m.donations.Set(&donation{*r.donation, r.digest})
		m.digest.add(r.digest)
	}
	if old != nil {
		m.digest.sub(old.digest)
	}
}

// BeginBulk starts loading: until EndBulk, Apply fills the catalogue and the digest but neither
// keeps the orders nor publishes. For a start from a store, or a long replay.
func (m *Model) BeginBulk() { m.bulk = true }

// EndBulk sorts everything once, on all processors, and publishes the result.
func (m *Model) EndBulk() *View {
	m.bulk = false
	m.changes = changeLog{floor: m.checkpoint} // nobody has heard of anything
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, c := range m.lists {
		c.changed = true
		for o := byTime; o < numOrders; o++ {
			g.Go(func() error { c.reload(o); return nil })
		}
	}
	g.Go(func() error { m.chats.reload(&m.lists); return nil })
	g.Go(func() error { m.likes.reload(&m.lists); return nil })
	_ = g.Wait()
	return m.publish()
}

// Digest is that of everything applied, also in bulk.
func (m *Model) Digest() Digest {
	d := m.digest
	for _, c := range m.lists {
		d.add(c.entries)
		d.add(c.views)
	}
	return d
}

// publish makes the next view out of the last one and what has changed, and wakes who waits.
func (m *Model) publish() *View {
	v := m.nextView()
	m.view.Store(v)
	if m.waiting.Load() > 0 {
		m.mu.Lock()
		close(m.next)
		m.next = make(chan struct{})
		m.mu.Unlock()
	}
	return v
}

// Await returns the first view it sees whose sequence has reached seq, or ctx's error.
func (m *Model) Await(ctx context.Context, seq uint64) (*View, error) {
	m.waiting.Add(1)
	defer m.waiting.Add(-1)
	for {
		m.mu.Lock()
		next := m.next
		m.mu.Unlock()
		if v := m.View(); v.sequence >= seq {
			return v, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
