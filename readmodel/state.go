package readmodel

import (
	"strings"

	"github.com/tidwall/btree"

	"example.org/registry/events"
	"example.org/registry/readmodel/textblock"
)

// state is the registry at one sequence. A view has a state that never changes; a model has one that its owner
// changes. copyForView makes the former from the latter. It takes little time, since the copy shares nodes of trees
// and chunks of slices with the original. The original copies a shared node or chunk before changing it.
type state struct {
	lists     [events.NumLists]*list // in the order of events.Lists
	donations *btree.Map[string, donation]
	chats     Ranges                   // shown rows by their chat id
	names     names                    // shown rows by their names
	feed      *btree.Map[uint64, *Row] // rows of all entries by entry.sequence, except for sequence 0

	digest     Digest // of all states
	feedDigest Digest // of all shown rows (Row.feedDigest)
	checkTag   string
	subjects   int // number of subjects with a state
	numLacking int // number of subjects with a state that the stream is not known to hold

	sequence uint64
	epoch    string // the name of the feed
}

// list is one list: its entries by id, and the shown ones in every order. It stores a view total whether
// or not the entry is listed (events/CONTRACT.md#data).
type list struct {
	entries    *btree.Map[string, entry]
	tombstones int // number of removed entries

	// The next fields are of the shown rows. Each of them has a slot: a small number of its own in the list.
	orders  [numOrders]*tree
	counts  filterCounts
	rows    cowSlice[*Row]       // by slot, like filters and views
	filters cowSlice[filterBits] // zero in a free slot
	views   cowSlice[int64]
	texts   textBlocks

	shownDigest     Digest // of the shown rows, without revisions
	viewsDigest     Digest // of all view totals, without revisions
	tag, popularTag string

	// Used by the owner only.
	freeSlots []uint32 // slots that were given back
	numSlots  uint32   // all slots, used or free
	changed   bool     // since the last publish
}

// entry has all that is known about one entry id of a list. An entry never changes: another one replaces it.
type entry struct {
	row      *Row   // the latest state; a removal is a row that is not shown; nil if only a total is known
	sequence uint64 // of the last message with the state; 0 if the stream is not known to hold it
	total    total
}

// total is a view total. The zero value means that no total is known; clients then see 0 views.
type total struct {
	views, revision int64
	sequence        uint64 // of the last message with the total, as entry.sequence
}

// donation is the state of a donation, or its removal.
type donation struct {
	state    *events.Donation // nil if the donation was removed
	rank     events.Rank
	sequence uint64
}

func newState() state {
	s := state{
		donations: &btree.Map[string, donation]{},
		chats:     newRanges(), names: newNames(), feed: &btree.Map[uint64, *Row]{},
	}
	for i := range s.lists {
		l := &list{entries: &btree.Map[string, entry]{}, texts: textBlocks{size: textblock.Len}, changed: true}
		l.orders = [numOrders]*tree{byTime: newTree(isLessByKey), byViews: newTree(isLessByKey), byName: newTree(isLessByCollation)}
		s.lists[i] = l
	}
	return s
}

func (s *state) list(l events.List) *list { return s.lists[listIndex(l)] }

// known has the parts of a subject's known state that matter when another state comes. The zero value means
// that no state is known, since revisions start at 1.
type known struct {
	events.Rank
	sequence uint64 // of the last message with the state, as entry.sequence
	shown    bool   // clients see the subject
}

func (s *state) knownState(k events.Subject) known {
	if k.Kind == events.KindDonation {
		d, _ := s.donations.Get(k.ID)
		return known{Rank: d.rank, sequence: d.sequence, shown: d.state != nil}
	}

	e, _ := s.list(k.List).entries.Get(k.ID)
	if k.Kind == events.KindEntry {
		if e.row == nil {
			return known{}
		}
		return known{Rank: e.row.stateRank(), sequence: e.sequence, shown: e.row.isShown()}
	}

	if e.total.revision == 0 {
		return known{}
	}
	data := events.Views{List: k.List, EntryID: k.ID, Revision: e.total.revision, Views: e.total.views}
	return known{Rank: events.RankOf(data), sequence: e.total.sequence, shown: true}
}

// applyRecord makes r the state of its subject. If the known state is greater than r, applyRecord changes
// nothing and returns the known state.
func (s *state) applyRecord(r *Record) (winner *known) {
	current := s.knownState(r.Subject)
	order := r.stateRank().Compare(current.Rank)
	if order < 0 {
		return &current
	}

	if order == 0 { // r repeats the known state, perhaps in a later message
		if r.Sequence > current.sequence {
			s.setSequence(r.Subject, r.Sequence)
		}
		return nil
	}

	// The digest is a sum with a part for each subject: replace the part of this subject.
	if current.Revision > 0 {
		s.digest.sub(newDigest(current.Hash))
	} else {
		s.subjects++
	}
	s.digest.Add(r.Digest())

	switch r.Subject.Kind {
	case events.KindEntry:
		s.setEntry(r)
	case events.KindViews:
		s.setTotal(r)
	default:
		s.donations.Set(strings.Clone(r.Subject.ID), donation{state: r.donation, rank: r.stateRank(), sequence: r.Sequence})
	}
	return nil
}

// setEntry makes r the state of its entry, or its tombstone.
func (s *state) setEntry(r *Record) {
	l := s.list(r.Subject.List)
	old, _ := l.entries.Get(r.Subject.ID)
	row := *r.row // a copy, since link gives it a slot of this model
	updated := entry{row: &row, sequence: r.Sequence, total: old.total}

	// Unlink first: link takes the slot that unlink has freed, so an entry that stays shown keeps its slot.
	s.unlink(l, old)
	s.link(l, updated)
	l.putEntry(r.Subject.ID, updated)
}

// link adds the state of an entry to everything that is derived from states: orders, counts, digests, texts,
// ranges, names and the feed. unlink takes the state out again. Only link and unlink know all derived data.
func (s *state) link(l *list, e entry) {
	r := e.row
	l.changed = true
	if e.sequence > 0 {
		s.feed.Set(e.sequence, r)
	}

	if r.removed {
		l.tombstones++
	}
	if !r.isShown() {
		return
	}

	// Give the row a slot, by which searches read it.
	r.slot = l.takeSlot()
	l.rows.set(r.slot, r)
	l.filters.set(r.slot, r.filter)
	l.views.set(r.slot, e.total.views)
	l.texts.addFresh(r.slot)

	// Add the row to every order, to the counts and to the digests.
	for o, t := range l.orders {
		t.Set(itemOf(order(o).sortKey(r, e.total.views), r))
	}
	l.counts[r.filter]++
	l.shownDigest.Add(r.digest)
	s.feedDigest.Add(r.feedDigest())

	// Let queries find the row by its names and its chat id.
	s.names.add(r)
	s.chats.add(r)
}

// unlink takes the state of an entry out of everything to which link has added it. If only a view total is
// known of the entry, there is nothing to take out.
func (s *state) unlink(l *list, e entry) {
	r := e.row
	if r == nil {
		return
	}

	l.changed = true
	s.feed.Delete(e.sequence) // 0 is not in the feed
	if r.removed {
		l.tombstones--
	}
	if !r.isShown() {
		return
	}

	s.chats.remove(r)
	s.names.remove(r)

	s.feedDigest.sub(r.feedDigest())
	l.shownDigest.sub(r.digest)
	l.counts[r.filter]--
	for o, t := range l.orders {
		t.Delete(itemOf(order(o).sortKey(r, e.total.views), r))
	}

	// Free the slot. Its view total stays in l.views: no query reads it, and link sets it anew.
	l.rows.set(r.slot, nil)
	l.filters.set(r.slot, 0)
	l.freeSlots = append(l.freeSlots, r.slot)
}

// setTotal sets the view total of an entry, which need not be listed.
func (s *state) setTotal(r *Record) {
	k := r.Subject
	l := s.list(k.List)
	e, _ := l.entries.Get(k.ID)
	old := e.total
	e.total = total{views: r.views, revision: r.Revision, sequence: r.Sequence}

	// The tag of a list by views depends on every total, also of an entry that is not shown.
	l.changed = true
	if old.revision > 0 {
		l.viewsDigest.sub(viewsDigest(k, old.views))
	}
	l.viewsDigest.Add(r.digest) // viewsDigest(k, r.views), as Render has made it

	if e.row != nil && e.row.isShown() {
		l.orders[byViews].Delete(itemOf(byViews.sortKey(e.row, old.views), e.row))
		l.orders[byViews].Set(itemOf(byViews.sortKey(e.row, r.views), e.row))
		l.views.set(e.row.slot, r.views)
	}
	l.putEntry(k.ID, e)
}

// putEntry stores e. id may be a part of a message, which the key of the map must not keep in memory.
func (l *list) putEntry(id string, e entry) {
	if e.row != nil {
		id = e.row.id
	} else {
		id = strings.Clone(id)
	}
	l.entries.Set(id, e)
}

// setSequence stores that the last message with a subject's known state has this sequence. The state must exist.
func (s *state) setSequence(k events.Subject, sequence uint64) {
	if k.Kind == events.KindDonation {
		d, _ := s.donations.Get(k.ID)
		d.sequence = sequence
		s.donations.Set(strings.Clone(k.ID), d)
		return
	}

	l := s.list(k.List)
	l.changed = true
	e, _ := l.entries.Get(k.ID)
	if k.Kind == events.KindViews {
		e.total.sequence = sequence
	} else {
		s.feed.Delete(e.sequence)
		if sequence > 0 {
			s.feed.Set(sequence, e.row)
		}
		e.sequence = sequence
	}
	l.putEntry(k.ID, e)
}

// subjectsAfter returns each subject whose known state was in a message after a sequence.
func (s *state) subjectsAfter(sequence uint64) (all []events.Subject) {
	add := func(kind events.Kind, list events.List, id string, last uint64) {
		if last > sequence {
			all = append(all, events.Subject{Kind: kind, List: list, ID: id})
		}
	}

	for i, name := range events.Lists() {
		s.lists[i].entries.Scan(func(id string, e entry) bool {
			add(events.KindEntry, name, id, e.sequence)
			add(events.KindViews, name, id, e.total.sequence)
			return true
		})
	}
	s.donations.Scan(func(id string, d donation) bool {
		add(events.KindDonation, "", id, d.sequence)
		return true
	})
	return all
}

// copyForView returns a copy for a view. A list that has not changed is taken from last, the view before.
func (s *state) copyForView(last *state) state {
	copied := *s
	var shown [events.NumLists]Digest
	for i, l := range s.lists {
		shown[i] = l.shownDigest
		copied.lists[i] = last.lists[i]
		if l.changed {
			copied.lists[i] = l.copyForView(string(events.Lists()[i]))
			l.changed = false
		}
	}
	copied.checkTag = contentTag("check", shown[:]...)

	copied.donations = s.donations.Copy()
	copied.chats = s.chats.copyForView()
	copied.names.rows = s.names.rows.copyForView()
	copied.feed = s.feed.Copy()
	return copied
}

func (l *list) copyForView(name string) *list {
	copied := *l
	copied.entries = l.entries.Copy()
	for o, t := range l.orders {
		copied.orders[o] = t.Copy()
	}

	copied.rows = l.rows.copyForView()
	copied.filters = l.filters.copyForView()
	copied.views = l.views.copyForView()
	copied.texts = l.texts.copyForView()

	copied.tag = contentTag(name, l.shownDigest)
	copied.popularTag = contentTag(name+" by views", l.shownDigest, l.viewsDigest)
	copied.freeSlots = nil
	return &copied
}

// takeSlot returns the slot that was given back last, or else the lowest that was never used.
func (l *list) takeSlot() uint32 {
	last := len(l.freeSlots) - 1
	if last < 0 {
		l.numSlots++
		return l.numSlots - 1
	}

	slot := l.freeSlots[last]
	l.freeSlots = l.freeSlots[:last]
	return slot
}
