package readmodel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"example.org/registry/events"
)

// Model is the writer's side of the read model: the content, the facets derived from it, and the
// published view of both. One goroutine at a time owns it and calls its methods; any goroutine may call
// View, Await and Close.
type Model struct {
	// Owned by the applier.
	content content
	facets  []facet
	epoch   string   // the name of the feed
	own     *ownFeed // nil if that is the history's
	bulk    bool

	memory *searchMemory // fixed after New; shared with the views

	// Shared. Who changes content or view holds writing: the owner, and the goroutine that indexes.
	writing sync.Mutex
	indexer indexer
	view    atomic.Pointer[View]
	waiting atomic.Int64
	mu      sync.Mutex
	next    chan struct{} // closed when a view is published; guarded by mu
}

// New makes an empty model. Its view has sequence 0.
func New() *Model {
	m := &Model{content: newContent(), memory: &searchMemory{}, indexer: newIndexer(), next: make(chan struct{})}
	m.facets = newFacets(&m.content)
	first := &View{memory: m.memory}
	for i := range first.lists {
		first.lists[i] = &listView{}
	}
	m.view.Store(first)
	m.publish()
	return m
}

// View returns the newest published state. It is never nil, and costs one atomic load.
func (m *Model) View() *View { return m.view.Load() }

// Apply updates the content and the facets with records, moves the checkpoint, and publishes and
// returns the next view. The greatest state of a subject wins, whatever the order of the records
// (events.Compare); lost has the records that did not win. Apply does not change records, so a store
// may read them at the same time.
//
// A record of sequence 0 is known from elsewhere: the stream is not known to hold its state, until a
// message with it comes (Lacking).
//
// The checkpoint never goes back (promise 3): Apply ignores an older one. In bulk Apply publishes
// nothing and returns the old view.
func (m *Model) Apply(records []Record, checkpoint uint64) (v *View, lost []Loss) {
	m.writing.Lock()
	defer m.writing.Unlock()
	c := &m.content
	for i := range records {
		r := &records[i]
		var k *known
		switch r.Subject.Kind {
		case events.KindEntry:
			var ch change
			if ch, k = c.setEntry(r, m.bulk); k == nil && !m.bulk { // EndBulk reloads the facets
				for _, f := range m.facets {
					f.apply(ch)
				}
			}
		case events.KindViews:
			k = c.setViews(r, m.bulk)
		case events.KindDonation:
			k = c.setDonation(r)
		}
		if k != nil {
			lost = append(lost, newLoss(r, k))
		}
	}
	c.checkpoint = max(c.checkpoint, checkpoint)
	if m.bulk {
		return m.View(), lost
	}
	return m.publish(), lost
}

// Load is Apply in bulk for the records of a store, which fill an empty model. It looks up no
// entry. So no subject may occur twice, no entry may also have a tombstone, and an entry's view
// total must directly follow it. A sequence after the checkpoint counts as 0. The model keeps the rows
// of the records and sets their slots, so these records must not go to another model. Only Load,
// Digest and EndBulk may be called next.
func (m *Model) Load(records []Record, checkpoint uint64) {
	m.writing.Lock()
	defer m.writing.Unlock()
	c := &m.content
	var last *Row
	for i := range records {
		r := &records[i]
		if r.Sequence > checkpoint {
			r.Sequence = 0
			if r.row != nil {
				r.row.sequence = 0
			}
		}
		c.lacking.found(r)
		switch k := r.Subject; k.Kind {
		case events.KindEntry:
			list := listIndex(k.List)
			if last = r.row; last == nil {
				c.tombstones.apply(list, r, nil, 0)
			} else {
				c.lists[list].load(last)
			}
		case events.KindViews:
			if last != nil && (last.ID() != k.ID || last.List() != k.List) {
				last = nil
			}
			c.lists[listIndex(k.List)].loadViews(k.ID, last, r)
		case events.KindDonation:
			c.setDonation(r)
		}
	}
	c.checkpoint = max(c.checkpoint, checkpoint)
}

// publish makes the next view and wakes all goroutines waiting for one. The caller holds m.writing.
func (m *Model) publish() *View {
	v := m.nextView()
	m.view.Store(v)
	m.startIndexing()
	if m.waiting.Load() > 0 {
		m.mu.Lock()
		close(m.next)
		m.next = make(chan struct{})
		m.mu.Unlock()
	}
	return v
}

// nextView returns the last view with new snapshots of the parts that have changed since.
func (m *Model) nextView() *View {
	v, c := *m.View(), &m.content
	v.sequence, v.digest, v.epoch = c.checkpoint, c.digest(), m.epoch
	v.lacking, v.lackingEntries, v.own = len(c.lacking.subjects), c.lacking.entries, m.own
	v.subjects, v.tombstones, v.gone = c.numSubjects(), c.tombstones.counts(), c.tombstones.snapshot()
	for i, l := range c.lists {
		if l.changed {
			v.lists[i] = l.publish(string(events.Lists()[i]), v.lists[i])
			v.checkTag = c.checkTag()
		}
	}
	if c.donations.changed {
		v.donations, c.donations.changed = c.donations.snapshot(), false
	}
	for _, f := range m.facets {
		f.publish(&v)
	}
	return &v
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

// BeginBulk starts a load from a store or a long replay. Until EndBulk, Apply updates the content
// and its digest, but neither maintains the orders and facets nor publishes.
func (m *Model) BeginBulk() {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.bulk = true
}

// EndBulk reloads all orders and facets once, on all CPUs, and publishes the result.
func (m *Model) EndBulk() *View {
	m.writing.Lock()
	defer m.writing.Unlock()
	return m.endBulk()
}

func (m *Model) endBulk() *View {
	m.bulk = false
	var jobs []func(*scratch)
	for _, f := range m.facets {
		jobs = append(jobs, f.reload)
	}
	for _, l := range m.content.lists {
		l.changed = true
		for o := range numOrders {
			jobs = append(jobs, func(s *scratch) { l.reload(o, s) })
		}
		jobs = append(jobs, l.reloadIDs)
	}
	todo := make(chan func(*scratch), len(jobs))
	for _, job := range jobs {
		todo <- job
	}
	close(todo)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) { // each has scratch memory
		workers.Go(func() {
			var s scratch
			for job := range todo {
				job(&s)
			}
		})
	}
	workers.Wait()
	return m.publish()
}

// Digest returns the digest of everything applied, also in bulk.
func (m *Model) Digest() Digest { return m.content.digest() }
