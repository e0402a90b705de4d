package readmodel

import (
	"cmp"
	"slices"
	"strings"

	"example.org/registry/events"
)

// tombstones holds the tombstones of each list: which entry was delisted, with which revision. Only the model's owner uses it; views share the values, for the feed.
type tombstones struct {
	lists  [events.NumLists]byID[*delisting]
	states Digest // of all, with their revisions
}

// delisting is a tombstone as a model stores it. It has no name, so it may be retained for longer
// than the entry. An entry that is listed again has none.
type delisting struct {
	entryID  string
	sequence uint64
	revision int64
}

func (d *delisting) id() string { return d.entryID }

func (d *delisting) rank(l events.List) events.Rank { return events.RankOf(d.data(l)) }

func (d *delisting) data(l events.List) events.Delisting {
	return events.Delisting{List: l, EntryID: d.entryID, Revision: d.revision}
}

func newTombstones() (t tombstones) {
	for list := range t.lists {
		t.lists[list].ids = newIDIndex()
	}
	return t
}

// apply replaces was, the tombstone of r's entry at a slot, which may be nil, by r's, or
// removes it. It returns the position and the new tombstone, nil if there is none.
func (t *tombstones) apply(list int, r *Record, was *delisting, slot uint32) (at RowRef, is *delisting) {
	if was != nil {
		t.states.sub(Digest(was.rank(r.Subject.List).Hash))
	}
	if r.Removed {
		id := strings.Clone(r.Subject.ID) // may be part of a longer string
		is = &delisting{id, r.Sequence, r.Revision}
		t.states.Add(r.Digest())
	}
	return NewRowRef(list, t.lists[list].replace(r.Subject.ID, was, slot, is)), is
}

// snapshot returns the tombstones by slot.
func (t *tombstones) snapshot() (gone [events.NumLists]cowSlice[*delisting]) {
	for list := range t.lists {
		gone[list] = t.lists[list].values.snapshot()
	}
	return gone
}

// counts returns how many tombstones each list has.
func (t *tombstones) counts() (n [events.NumLists]int) {
	for list := range t.lists {
		n[list] = t.lists[list].count()
	}
	return n
}

// all returns the tombstones, in no particular order.
func (t *tombstones) all() (out []State) {
	for list, l := range events.Lists() {
		t.lists[list].all(func(d *delisting) { out = append(out, State{d.sequence, d.data(l)}) })
	}
	return out
}

// State is the state of a subject, and the stream sequence of the last message that had it.
type State struct {
	Sequence uint64
	Data     events.Data
}

// SortStates orders states by subject.
func SortStates(all []State) {
	slices.SortFunc(all, func(a, b State) int { return cmp.Compare(a.Data.Subject().String(), b.Data.Subject().String()) })
}

// Tombstones returns every tombstone of the lists as its Delisting, by subject. The owner may call
// it, and other goroutines while nothing is applied.
func (m *Model) Tombstones() []State {
	all := m.content.tombstones.all()
	SortStates(all)
	return all
}

// Withdrawn returns a removal for each subject that is known and shown nowhere, by subject: the
// tombstones, and the unverified trusted persons with the revision of that state.
func (v *View) Withdrawn() (all []State) {
	for list, l := range events.Lists() {
		for _, d := range v.gone[list].all() {
			if d != nil {
				all = append(all, State{d.sequence, d.data(l)})
			}
		}
	}
	v.Rows(func(r *Row) bool {
		if !r.shown() {
			all = append(all, State{r.sequence, events.Delisting{List: r.List(), EntryID: r.ID(), Revision: r.revision}})
		}
		return true
	})
	v.donations.all(func(d *donation) {
		if d.state == nil {
			all = append(all, State{d.sequence, d.removal()})
		}
	})
	SortStates(all)
	return all
}
