package readmodel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"example.org/registry/events"
)

// Model is the writer's side of the read model. One goroutine at a time owns it and calls Apply,
// Load, BeginBulk, EndBulk, Compact, SetEpoch, Digest, Inventory, Tombstones and Listed; any
// goroutine may call View, Await and UseTextIndex.
type Model struct {
	// Owned by the applier.
	lists            [events.NumLists]*catalogue
	chatIDs          chatIDs
	ranges           rangeSums
	similarNames     similarIndex
	donations        byID[*donation]
	donationsDigest  Digest // the lists keep their own
	donationsChanged bool   // since the last publish
	tombstones       tombstones
	feed             feed
	epoch            string // the name of the history
	changes          changeLog
	checkpoint       uint64
	bulk             bool

	text *textSearch // fixed after New; shared with the views

	// Shared.
	view    atomic.Pointer[View]
	waiting atomic.Int64
	mu      sync.Mutex
	next    chan struct{} // closed when a view is published; guarded by mu
}

// New makes an empty model. Its view has sequence 0.
func New() *Model {
	m := &Model{
		chatIDs: newChatIDs(), similarNames: newSimilarIndex(),
		donations: byID[*donation]{ids: newIDIndex()}, donationsChanged: true,
		tombstones: newTombstones(),
		text:       newTextSearch(), next: make(chan struct{}),
	}
	first := &View{text: m.text}
	for i := range m.lists {
		m.lists[i], first.lists[i] = newCatalogue(), &listView{}
	}
	m.view.Store(first)
	m.publish()
	return m
}

// View returns the newest published state. It is never nil, and costs one atomic load.
func (m *Model) View() *View { return m.view.Load() }

// Apply puts records into the catalogue, moves the checkpoint to checkpoint, and publishes and
// returns the next view. Records are in stream order, and the last one of a subject decides. Apply
// does not change them, so a store may read them meanwhile.
//
// The checkpoint never goes back (promise 3): an older one leaves it where it is. In bulk Apply
// publishes nothing and returns the old view.
func (m *Model) Apply(records []Record, checkpoint uint64) *View {
	for i := range records {
		switch r := &records[i]; r.Subject.Kind {
		case events.KindEntry:
			m.applyEntry(r)
		case events.KindViews:
			m.lists[listIndex(r.Subject.List)].count(r.Subject, r.views, r.digest, m.bulk)
		case events.KindDonation:
			m.applyDonation(r)
		}
	}
	m.checkpoint = max(m.checkpoint, checkpoint)
	if m.bulk {
		return m.View()
	}
	return m.publish()
}

// Load is Apply in bulk for the records of a store, which fill an empty model. It looks no
// entry up, so no subject may come twice, no entry may have a tombstone too, and the view total of
// an entry has to follow it at once. The model keeps the records' rows themselves and sets their
// slots: these records must not go to another model. Only Load, Digest and EndBulk may be called
// next.
func (m *Model) Load(records []Record, checkpoint uint64) {
	var last *Row
	for i := range records {
		r := &records[i]
		switch k := r.Subject; k.Kind {
		case events.KindEntry:
			list := listIndex(k.List)
			if last = r.row; last == nil {
				m.tombstones.apply(list, r)
			} else {
				m.lists[list].load(last)
			}
		case events.KindViews:
			c := m.lists[listIndex(k.List)]
			if last != nil && (last.ID() != k.ID || last.List() != k.List) {
				last = nil
			}
			c.views.Add(r.digest)
			c.numCounted++
			c.keep(k.ID, last, r.views)
		case events.KindDonation:
			m.applyDonation(r)
		}
	}
	m.checkpoint = max(m.checkpoint, checkpoint)
}

// applyEntry sets or removes an entry, and tells everything that finds rows by something else than
// their order. In bulk that is left to EndBulk. A delisting leaves a tombstone, which the next
// listing takes away.
func (m *Model) applyEntry(r *Record) {
	list := listIndex(r.Subject.List)
	stone, slot, goneAt := m.tombstones.apply(list, r)
	ch := m.lists[list].put(r.Subject.ID, r.row, m.bulk)
	if m.bulk {
		return
	}
	m.feed.move(NewRowRef(list, slot), stone.position(), goneAt)
	if ch == (rowChange{}) {
		return
	}
	m.feed.apply(ch)
	m.chatIDs.apply(ch)
	m.applyRanges(ch)
	m.similarNames.apply(ch)
	m.changes.add(r.Sequence, &ch)
}

func (m *Model) applyDonation(r *Record) {
	m.donationsChanged = true
	var to *donation
	if !r.Removed {
		to = &donation{*r.donation, r.digest}
		m.donationsDigest.Add(r.digest)
	}
	if old, _ := m.donations.set(r.Subject.ID, to); old != nil {
		m.donationsDigest.sub(old.digest)
	}
}

// publish makes the next view and wakes whoever waits for one.
func (m *Model) publish() *View {
	v := m.nextView()
	entries := 0
	for _, l := range events.Lists() {
		entries += v.NumEntries(l)
	}
	m.text.fit(entries)
	m.view.Store(v)
	if m.waiting.Load() > 0 {
		m.mu.Lock()
		close(m.next)
		m.next = make(chan struct{})
		m.mu.Unlock()
	}
	return v
}

// nextView is the last view with snapshots of what has changed since in place of the old ones.
func (m *Model) nextView() *View {
	v := *m.View()
	v.sequence, v.digest, v.changes = m.checkpoint, m.Digest(), m.changes
	v.epoch, v.feed, v.feedDigest = m.epoch, m.feed.tree.Snapshot(), m.feed.digest
	v.tombstones, v.subjects = m.tombstones.counts(), m.numSubjects()
	v.gone, v.goneMonths = m.tombstones.snapshot()
	v.chatIDs, v.ranges = chatIDs{m.chatIDs.snapshot()}, m.ranges.snapshot()
	v.similarNames = m.similarNames.snapshot()
	for i, c := range m.lists {
		if c.changed {
			v.lists[i] = c.publish(string(events.Lists()[i]), v.lists[i])
			v.checkTag = m.checkTag()
		}
	}
	if m.donationsChanged {
		v.donations, m.donationsChanged = m.donations.snapshot(), false
	}
	return &v
}

// numSubjects returns how many subjects have a state, a tombstone included.
func (m *Model) numSubjects() int {
	n := numRows(&m.lists) + m.donations.count()
	for list, gone := range m.tombstones.counts() {
		n += gone + m.lists[list].numCounted
	}
	return n
}

// checkTag hashes the entries of every list.
func (m *Model) checkTag() string {
	var entries [events.NumLists]Digest
	for i, c := range m.lists {
		entries[i] = c.entries
	}
	return contentTag("check", entries[:]...)
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

// BeginBulk starts loading, from a store or a long replay: until EndBulk, Apply fills the catalogue
// and the digest but neither keeps the orders nor publishes.
func (m *Model) BeginBulk() { m.bulk = true }

// EndBulk sorts everything once, on all processors, and publishes the result.
func (m *Model) EndBulk() *View {
	m.bulk = false
	m.changes = changeLog{floor: m.checkpoint} // the changes in bulk were not logged
	// What takes longest goes first, so that no processor waits for another at the end.
	jobs := []func(*scratch){
		func(s *scratch) { m.similarNames.reload(&m.lists, s) },
		func(s *scratch) { m.reloadChatIDs(s) },
		func(s *scratch) { m.feed.reload(&m.lists, &m.tombstones, s) },
		func(*scratch) { m.feed.redigest(&m.lists) },
	}
	for _, c := range m.lists {
		c.changed = true
		for o := range numOrders {
			jobs = append(jobs, func(s *scratch) { c.reload(o, s) })
		}
		jobs = append(jobs, c.reloadIDs)
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

// compactItems is how many items of a tree one Compact moves, in about half a millisecond.
const compactItems = 100_000

// Compact copies a part of what changes have scattered in memory, so that the memory between can be
// given back, and reports whether there was anything to do; in bulk there is not. No answer changes.
// It takes about half a millisecond: call it until it returns false.
func (m *Model) Compact() bool {
	if m.bulk {
		return false // EndBulk makes the trees anew
	}
	compacted := m.feed.tree.Compact(compactItems) || m.chatIDs.tree.Compact(compactItems) || m.similarNames.tree.Compact(compactItems)
	for _, c := range m.lists {
		compacted = compacted || c.compact()
	}
	if compacted {
		m.publish()
	}
	return compacted
}

// Digest returns the digest of everything applied, also in bulk: of entries, view totals and
// donations. Tombstones are no part of it, since they are of what is not there: two models that
// answer alike have one digest.
func (m *Model) Digest() Digest {
	d := m.donationsDigest
	for _, c := range m.lists {
		d.Add(c.entries)
		d.Add(c.views)
	}
	return d
}
