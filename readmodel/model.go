package readmodel

import (
	"context"
	"sync"
	"sync/atomic"

	"example.org/registry/events"
)

// Model is the writer's side of the read model: the state that it changes, and the published view. One
// goroutine at a time owns it and calls its methods; any goroutine may call View, Await and Close.
type Model struct {
	// Owned by the applier, who holds writing where it changes them.
	state
	unheld map[events.Subject]struct{} // the subjects of Lacking
	bulk   bool

	// Shared. Who changes state or view holds writing: the owner, and the goroutine that indexes.
	writing sync.Mutex
	indexer indexer
	view    atomic.Pointer[View]
	waiting atomic.Int64
	mu      sync.Mutex
	next    chan struct{} // closed when a view is published; guarded by mu
}

// New makes an empty model. Its view has sequence 0.
func New() *Model {
	m := &Model{state: newState(), unheld: map[events.Subject]struct{}{}, indexer: newIndexer(), next: make(chan struct{})}
	m.view.Store(&View{})
	m.publish()
	return m
}

// View returns the newest published state. It is never nil, and costs one atomic load.
func (m *Model) View() *View { return m.view.Load() }

// Loss is a record that is not true, since a known state is greater (events/CONTRACT.md#revisions).
type Loss struct {
	Record *Record // one of those that were applied
	Known  int64   // revision of the known state

	// Conflict: the known state has the same revision.
	Conflict bool
	// Unheeded: the record is a removal of what is shown, and still is.
	Unheeded bool
}

func newLoss(r *Record, k *known) Loss {
	return Loss{
		Record: r, Known: k.Revision,
		Conflict: k.Revision == r.Revision,
		Unheeded: k.Revision > r.Revision && k.shown && r.Removed,
	}
}

// Apply updates the state with records, moves the checkpoint, and publishes and returns the next view.
// The greatest state of a subject wins, whatever the order of the records (events.Compare); lost has
// the records that did not win. Apply does not change records, so a store may read them at the same
// time.
//
// A record of sequence 0 is known from elsewhere: the stream is not known to hold its state, until a
// message with it comes (Lacking).
//
// The checkpoint never goes back (promise 3): Apply ignores an older one. In bulk Apply publishes
// nothing and returns the old view.
func (m *Model) Apply(records []Record, checkpoint uint64) (v *View, lost []Loss) {
	m.writing.Lock()
	defer m.writing.Unlock()
	for i := range records {
		r := &records[i]
		k := m.apply(r)
		switch {
		case k != nil:
			lost = append(lost, newLoss(r, k))
		case r.Sequence > 0:
			delete(m.unheld, r.Subject)
		case m.sequenceOf(r.Subject) == 0:
			m.addLacking(r.Subject)
		}
	}

	m.sequence = max(m.sequence, checkpoint)
	if m.bulk {
		return m.View(), lost
	}
	return m.publish(), lost
}

// Load is Apply in bulk for the records of a store. A sequence after the checkpoint counts as 0.
func (m *Model) Load(records []Record, checkpoint uint64) {
	for i := range records {
		if records[i].Sequence > checkpoint {
			records[i].Sequence = 0
		}
	}
	m.Apply(records, checkpoint)
}

// BeginBulk starts a load from a store or a long replay. Until EndBulk, Apply publishes nothing.
func (m *Model) BeginBulk() {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.bulk = true
}

// EndBulk publishes what was applied since BeginBulk.
func (m *Model) EndBulk() *View {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.bulk = false
	return m.publish()
}

// publish makes the next view and wakes all goroutines waiting for one. The caller holds m.writing.
func (m *Model) publish() *View {
	m.lacking = len(m.unheld)
	v := &View{m.snapshot(&m.View().state)}
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

// Digest returns the digest of everything applied, also in bulk.
func (m *Model) Digest() Digest { return m.digest }

// Known returns the greatest revision that is known of a subject, or 0. The owner may call it, and
// other goroutines while nothing is applied.
func (m *Model) Known(k events.Subject) int64 { return m.revision(k) }
