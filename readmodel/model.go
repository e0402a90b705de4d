package readmodel

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"example.org/registry/events"
)

// Model is the writer's side of the read model: the state that it changes, and the published view. One
// goroutine at a time owns it and calls its methods; any goroutine may call View, Await and Close.
type Model struct {
	// Used by the owner.
	state
	lackingSubjects map[events.Subject]struct{} // subjects with a state that the stream may lack
	bulk            bool                        // between BeginBulk and EndBulk

	// Shared. The owner and the indexer's goroutine hold writing while they change state or view.
	writing sync.Mutex
	indexer indexer
	view    atomic.Pointer[View]
}

// New makes an empty model. Its view has sequence 0.
func New() *Model {
	m := &Model{state: newState(), lackingSubjects: map[events.Subject]struct{}{}, indexer: newIndexer()}
	m.view.Store(&View{next: make(chan struct{})}) // publishView needs a view before
	m.publishView()
	return m
}

// View returns the newest published state. It is never nil, and costs one atomic load.
func (m *Model) View() *View { return m.view.Load() }

// Loss is a record without effect: a greater state of its subject is known (events/CONTRACT.md#revisions).
type Loss struct {
	Record *Record // one of the applied records
	Known  int64   // revision of the known state
	// Conflict says that the known state has the same revision.
	Conflict bool
	// Unheeded says that the record is a removal, and that its subject is still shown in a greater revision.
	Unheeded bool
}

// Apply updates the state with records, moves the checkpoint, and publishes and returns the next view.
// The greatest state of a subject wins, whatever the order of the records (events.Compare); lost has
// the records that did not win. Apply only reads records, so a store may read them at the same time.
//
// A record of sequence 0 was not read from the stream: Model.Lacking has its subject until a message with the
// state comes. Apply ignores a checkpoint before the model's. Between BeginBulk and EndBulk, Apply publishes
// nothing and returns the old view.
func (m *Model) Apply(records []Record, checkpoint uint64) (v *View, lost []Loss) {
	m.writing.Lock()
	defer m.writing.Unlock()

	for i := range records {
		r := &records[i]
		if winner := m.applyRecord(r); winner != nil {
			lost = append(lost, Loss{
				Record:   r,
				Known:    winner.Revision,
				Conflict: winner.Revision == r.Revision,
				Unheeded: winner.Revision > r.Revision && winner.shown && r.Removed,
			})
			continue
		}

		// The stream holds the state if this record, or an earlier record of the same state, has a sequence.
		if r.Sequence > 0 {
			delete(m.lackingSubjects, r.Subject)
		} else if m.knownState(r.Subject).sequence == 0 {
			m.addLacking(r.Subject)
		}
	}

	m.sequence = max(m.sequence, checkpoint)
	if m.bulk {
		return m.View(), lost
	}
	return m.publishView(), lost
}

// Load applies the records of a store, between BeginBulk and EndBulk. A record whose sequence is after the
// store's checkpoint is from before a Rewind. Another message may have the sequence now, so Load sets it to 0.
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

// EndBulk publishes the changes since BeginBulk.
func (m *Model) EndBulk() *View {
	m.writing.Lock()
	defer m.writing.Unlock()

	m.bulk = false
	return m.publishView()
}

// publishView makes the next view and wakes all goroutines waiting for one. The caller holds m.writing.
func (m *Model) publishView() *View {
	m.numLacking = len(m.lackingSubjects)
	last := m.View()
	v := &View{state: m.copyForView(&last.state), next: make(chan struct{})}

	m.view.Store(v)
	close(last.next)
	m.startIndexing()
	return v
}

// Await returns the first view it sees whose sequence has reached seq, or ctx's error.
func (m *Model) Await(ctx context.Context, seq uint64) (*View, error) {
	for {
		v := m.View()
		if v.sequence >= seq {
			return v, nil
		}

		select {
		case <-v.next:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Digest returns the digest of everything applied, published or not.
func (m *Model) Digest() Digest { return m.digest }

// Known returns the revision of a subject's known state, or 0 if no state is known. Goroutines other than the
// owner's may call Known only while nothing is applied.
func (m *Model) Known(k events.Subject) int64 { return m.knownState(k).Revision }

// Lacking returns the subjects with a known state that the stream may lack, in no particular order: the
// stream was rewound or lost messages, or the state came from elsewhere. The sequence of these states is 0.
// Goroutines other than the owner's may call Lacking only while nothing is applied.
func (m *Model) Lacking() []events.Subject { return slices.Collect(maps.Keys(m.lackingSubjects)) }

func (m *Model) addLacking(k events.Subject) {
	k.ID = strings.Clone(k.ID) // the id may be a part of a message, which would stay in memory
	m.lackingSubjects[k] = struct{}{}
}

// Rewind sets the checkpoint back to a sequence after which the stream has other messages than the model has read.
// All states stay. A state that was read after the checkpoint counts as lacking in the stream: Lacking returns its
// subject until a message has the state again. Until NameFeed is called, there is no feed. Only the owner may call
// Rewind, and not between BeginBulk and EndBulk.
func (m *Model) Rewind(checkpoint uint64) {
	m.writing.Lock()
	defer m.writing.Unlock()

	m.sequence = checkpoint
	m.epoch = ""
	for _, k := range m.subjectsAfter(checkpoint) {
		m.addLacking(k)
		m.setSequence(k, 0)
	}
	m.publishView()
}

// NameFeed gives the feed the name of the stream that the model's sequences belong to, and publishes a view.
// An empty name means that there is no feed. Only the owner may call NameFeed.
func (m *Model) NameFeed(epoch string) {
	m.writing.Lock()
	defer m.writing.Unlock()

	if epoch == m.epoch {
		return
	}
	m.epoch = epoch

	if !m.bulk {
		m.publishView()
	}
}
