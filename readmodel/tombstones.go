package readmodel

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"example.org/registry/events"
)

// Tombstone records that an entry was delisted, and when. It has no name, so it may be retained for
// longer than the entry. An entry that is listed again has none. Its JSON is a line of registry
// tombstones.
type Tombstone struct {
	List     events.List `json:"list"`
	EntryID  string      `json:"entryId"`
	Sequence uint64      `json:"sequence"` // stream sequence of the delisting
	Time     time.Time   `json:"time"`     // of the delisting, UTC, in whole milliseconds; zero when not known

	// Hidden marks an unverified trusted person, whom a later event may verify. Only Withdrawn
	// returns them.
	Hidden bool `json:"hidden,omitempty"`
}

// Subject names the entry.
func (t Tombstone) Subject() events.Subject {
	return events.Subject{Kind: events.KindEntry, List: t.List, ID: t.EntryID}
}

// compareTombstones orders by list and entry id.
func compareTombstones(a, b Tombstone) int {
	i, _ := a.List.Index()
	j, _ := b.List.Index()
	return cmp.Or(cmp.Compare(i, j), strings.Compare(a.EntryID, b.EntryID))
}

// SortTombstones orders all by list and entry id.
func SortTombstones(all []Tombstone) { slices.SortFunc(all, compareTombstones) }

// TombstonePrefix precedes the subject in the name that an [Inventory] gives a tombstone.
const TombstonePrefix = "tombstone of "

// hash returns the hash of the tombstone's record.
func (t Tombstone) hash() Digest {
	b := binary.AppendUvarint(nil, t.Sequence)
	return hashState(TombstonePrefix+t.Subject().String(), binary.AppendUvarint(b, uint64(toMillis(t.Time))))
}

// maxMillis is in the year 10889. A later stored time is damage.
const maxMillis = 1<<48 - 1

// toMillis returns t in milliseconds since 1970, or 0 for the zero time.
func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMilli(), 0)
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// tombstones holds the tombstones of each list. Only the model's owner uses it; views share the
// values, for the feed.
type tombstones [events.NumLists]byID[*delisting]

// delisting is a tombstone as a model stores it.
type delisting struct {
	entryID  string
	sequence uint64
	ms       int64 // see toMillis
}

func (d *delisting) id() string { return d.entryID }

func (d *delisting) tombstone(l events.List) Tombstone {
	return Tombstone{List: l, EntryID: d.entryID, Sequence: d.sequence, Time: fromMillis(d.ms)}
}

func newTombstones() (t tombstones) {
	for list := range t {
		t[list].ids = newIDIndex()
	}
	return t
}

// apply adds or removes the tombstone of r's entry. It returns the tombstone before and now, nil if
// there is none, and its position.
func (t *tombstones) apply(list int, r *Record) (at RowRef, was, is *delisting) {
	if r.Removed {
		id := strings.Clone(r.Subject.ID) // may be part of a longer string
		is = &delisting{id, r.Sequence, toMillis(r.delisted)}
	}
	was, slot := t[list].set(r.Subject.ID, is)
	return NewRowRef(list, slot), was, is
}

// snapshot returns the tombstones by slot.
func (t *tombstones) snapshot() (gone [events.NumLists]cowSlice[*delisting]) {
	for list := range t {
		gone[list] = t[list].values.snapshot()
	}
	return gone
}

// counts returns how many tombstones each list has.
func (t *tombstones) counts() (n [events.NumLists]int) {
	for list := range t {
		n[list] = t[list].count()
	}
	return n
}

// all returns the tombstones, in no particular order.
func (t *tombstones) all() (out []Tombstone) {
	for list, l := range events.Lists() {
		t[list].all(func(d *delisting) { out = append(out, d.tombstone(l)) })
	}
	return out
}

// Tombstones returns every tombstone, in the order of list and entry id. The owner may call it, and
// other goroutines while nothing is applied.
func (m *Model) Tombstones() []Tombstone {
	all := m.content.tombstones.all()
	SortTombstones(all)
	return all
}

// Withdrawn returns the entries that no list may show, in the order of list and entry id: the
// tombstones, and the unverified trusted persons. The time of the latter is not known.
func (v *View) Withdrawn() (all []Tombstone) {
	for list, l := range events.Lists() {
		for _, d := range v.gone[list].all() {
			if d != nil {
				all = append(all, d.tombstone(l))
			}
		}
	}
	v.Rows(func(r *Row) bool {
		if !r.shown() {
			all = append(all, Tombstone{List: r.List(), EntryID: r.ID(), Sequence: r.sequence, Hidden: true})
		}
		return true
	})
	SortTombstones(all)
	return all
}

// Listed returns the stream sequence of an entry's last change, or false if it is not listed. The
// same goroutines as for Tombstones may call it.
func (m *Model) Listed(k events.Subject) (sequence uint64, ok bool) {
	r := m.content.lists[listIndex(k.List)].row(k.ID)
	return r.position(), r != nil
}
