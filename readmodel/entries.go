package readmodel

import (
	"strings"

	"github.com/tidwall/btree"

	"example.org/registry/events"
)

// state is the registry at one sequence: what a view has, and what the owner of a model changes. All
// of its parts can be copied without copying what they hold.
type state struct {
	lists     [events.NumLists]*list
	donations *btree.Map[string, donation]
	chats     *refs // shown rows by their chat id
	ranges    ranges
	names     names                    // shown rows by their names
	feed      *btree.Map[uint64, *Row] // all rows by the sequence of their last message, if there is one

	digest     Digest // of all states
	feedDigest Digest // of all shown rows (Row.feedDigest)
	checkTag   string
	subjects   int // number of subjects with a state

	lacking int // number of subjects whose state the stream is not known to hold

	sequence uint64
	epoch    string        // the name of the feed
	memory   *searchMemory // shared by a model and its views
}

// list is one list: its entries by id, and those that it shows in every order. It stores a view total
// whether or not the entry is listed (events/CONTRACT.md#data).
type list struct {
	entries    *btree.Map[string, entry]
	tombstones int // number of removed entries

	// The others are of shown rows. A row has a slot, a small number.
	orders  [numOrders]*tree
	counts  filterCounts
	rows    cowSlice[*Row]       // by slot, as the next two
	filters cowSlice[filterBits] // zero of a free slot
	views   cowSlice[int64]
	texts   textBlocks

	shownDigest, viewsDigest Digest // without revisions
	tag, popularTag          string

	// Used by the owner only.
	slots   slotNumbers
	changed bool // since the last publish
}

// entry is what is known of an entry id of a list. It never changes.
type entry struct {
	row      *Row   // the latest state; a removal is a row that is not shown; nil if only a total is known
	sequence uint64 // of the last message with the state; 0 if the stream is not known to hold it
	total    total
}

// total is a view total with its revision, and the sequence of the last message with it. The zero
// value stands for none; clients see 0.
type total struct {
	views, revision int64
	sequence        uint64
}

func (t total) isCounted() bool { return t.revision > 0 }

// rank returns the rank of a total that the subject has, or the least rank if there is none.
func (t total) rank(k events.Subject) (r events.Rank) {
	if t.isCounted() {
		r = events.RankOf(events.Views{List: k.List, EntryID: k.ID, Revision: t.revision, Views: t.views})
	}
	return r
}

// donation is the state of a donation, or its removal.
type donation struct {
	state    *events.Donation // nil of a removed one
	sequence uint64
	revision int64
	hash     events.Hash
}

func (d *donation) rank() events.Rank {
	return events.Rank{Revision: d.revision, Removal: d.state == nil, Hash: d.hash}
}

func newState() state {
	s := state{
		donations: &btree.Map[string, donation]{},
		chats:     &refs{}, names: newNames(), feed: &btree.Map[uint64, *Row]{},
		memory: &searchMemory{},
	}
	for i := range s.lists {
		l := &list{entries: &btree.Map[string, entry]{}, texts: newTextBlocks(), changed: true}
		l.orders = [numOrders]*tree{byTime: newTree(isLessByID), byViews: newTree(isLessByID), byName: newTree(isLessByName)}
		s.lists[i] = l
	}
	return s
}

// known has what a comparison with another state of the subject needs of the known one.
type known struct {
	events.Rank
	sequence uint64 // as entry.sequence
	shown    bool   // lists, checks or the donation's page show the subject
}

// apply makes r the state of its subject. If the known state wins against r, it returns that and
// changes nothing.
func (s *state) apply(r *Record) (lost *known) {
	switch r.Subject.Kind {
	case events.KindEntry:
		return s.setEntry(r)
	case events.KindViews:
		return s.setTotal(r)
	default:
		return s.setDonation(r)
	}
}

func (s *state) setEntry(r *Record) (lost *known) {
	l := s.lists[listIndex(r.Subject.List)]
	e, _ := l.entries.Get(r.Subject.ID)
	if old := e.row; old != nil {
		order := r.rank().Compare(old.stateRank())
		if order < 0 {
			return &known{old.stateRank(), e.sequence, old.shown()}
		}
		if order == 0 {
			if r.Sequence > e.sequence {
				s.setSequence(r.Subject, r.Sequence)
			}
			return nil
		}
	}

	is := entry{row: r.newRow(), sequence: r.Sequence, total: e.total}
	s.unlink(l, e)
	s.link(l, is)
	l.markText(e.row, is.row)
	l.put(is.row.id, is)
	return nil
}

// link adds the state of an entry to everything that has it: orders, counts, digests, ranges, names and
// the feed. unlink is its inverse; only these two know all of them.
func (s *state) link(l *list, e entry) {
	r := e.row
	l.changed = true
	s.subjects++
	s.digest.Add(Digest(r.hash))
	if e.sequence > 0 {
		s.feed.Set(e.sequence, r)
	}
	if r.removed {
		l.tombstones++
	}
	if !r.shown() {
		return
	}

	r.slot = l.slots.take()
	l.rows.set(r.slot, r)
	l.filters.set(r.slot, r.filter)
	l.views.set(r.slot, e.total.views)
	for o, t := range l.orders {
		t.Set(itemOf(order(o).key(r, e.total.views), r))
	}
	l.counts[r.filter]++
	l.shownDigest.Add(r.digest)
	s.feedDigest.Add(r.feedDigest())

	s.names.link(r)
	if !s.hasChatID(r) {
		s.ranges.add(r.chatKey, 1)
	}
	s.chats.Insert(refOf(r.chatKey, r))
}

func (s *state) unlink(l *list, e entry) {
	r := e.row
	if r == nil {
		return
	}
	l.changed = true
	s.subjects--
	s.digest.sub(Digest(r.hash))
	s.feed.Delete(e.sequence)
	if r.removed {
		l.tombstones--
	}
	if !r.shown() {
		return
	}

	for o, t := range l.orders {
		t.Delete(itemOf(order(o).key(r, e.total.views), r))
	}
	l.counts[r.filter]--
	l.shownDigest.sub(r.digest)
	s.feedDigest.sub(r.feedDigest())

	s.names.unlink(r)
	s.chats.Delete(refOf(r.chatKey, r))
	if !s.hasChatID(r) {
		s.ranges.add(r.chatKey, -1)
	}

	l.rows.set(r.slot, nil)
	l.filters.set(r.slot, 0)
	l.slots.giveBack(r.slot)
}

// markText has searches look at the slot of a row that has changed, unless its text has not. The old
// row is unlinked, and the new one linked.
func (l *list) markText(old, is *Row) {
	wasShown, isShown := old != nil && old.shown(), is.shown()
	if wasShown && isShown && old.slot == is.slot && old.text == is.text && old.keys == is.keys {
		return
	}
	if wasShown {
		l.texts.mark(old.slot)
	}
	if isShown {
		l.texts.mark(is.slot)
	}
}

func (s *state) setTotal(r *Record) (lost *known) {
	k, l := r.Subject, s.lists[listIndex(r.Subject.List)]
	e, _ := l.entries.Get(k.ID)
	was := known{Rank: e.total.rank(k), sequence: e.total.sequence, shown: true}
	switch order := r.rank().Compare(was.Rank); {
	case order < 0:
		return &was
	case order == 0 && r.Sequence <= was.sequence:
		return nil
	}

	l.changed = true
	if e.total.isCounted() {
		l.viewsDigest.sub(viewsDigest(k, e.total.views))
		s.digest.sub(Digest(was.Hash))
	} else {
		s.subjects++
	}
	l.viewsDigest.Add(r.digest)
	s.digest.Add(r.Digest())

	before := e.total.views
	e.total = total{r.views, r.Revision, r.Sequence}
	if e.row != nil && e.row.shown() {
		l.orders[byViews].Delete(itemOf(byViews.key(e.row, before), e.row))
		l.orders[byViews].Set(itemOf(byViews.key(e.row, r.views), e.row))
		l.views.set(e.row.slot, r.views)
	}
	l.put(k.ID, e)
	return nil
}

// put stores what is known of an entry id, which may be a part of a larger string.
func (l *list) put(id string, e entry) {
	if e.row != nil {
		id = e.row.id
	} else {
		id = strings.Clone(id)
	}
	l.entries.Set(id, e)
}

func (s *state) setDonation(r *Record) (lost *known) {
	if old, isKnown := s.donations.Get(r.Subject.ID); isKnown {
		order := r.rank().Compare(old.rank())
		switch {
		case order < 0:
			return &known{old.rank(), old.sequence, old.state != nil}
		case order == 0 && r.Sequence <= old.sequence:
			return nil
		}
		s.digest.sub(Digest(old.hash))
	} else {
		s.subjects++
	}
	s.digest.Add(r.Digest())
	s.donations.Set(strings.Clone(r.Subject.ID), donation{r.donation, r.Sequence, r.Revision, r.hash})
	return nil
}

// setSequence sets the sequence of the last message with the known state of a subject.
func (s *state) setSequence(k events.Subject, sequence uint64) {
	if k.Kind == events.KindDonation {
		if d, isKnown := s.donations.Get(k.ID); isKnown {
			d.sequence = sequence
			s.donations.Set(strings.Clone(k.ID), d)
		}
		return
	}

	l := s.lists[listIndex(k.List)]
	e, _ := l.entries.Get(k.ID)
	l.changed = true
	switch {
	case k.Kind == events.KindViews:
		e.total.sequence = sequence
	case e.row != nil:
		s.feed.Delete(e.sequence)
		if e.sequence = sequence; sequence > 0 {
			s.feed.Set(sequence, e.row)
		}
	}
	l.put(k.ID, e)
}

// sequenceOf returns the sequence of the last message with the known state of a subject.
func (s *state) sequenceOf(k events.Subject) uint64 {
	if k.Kind == events.KindDonation {
		d, _ := s.donations.Get(k.ID)
		return d.sequence
	}
	e, _ := s.lists[listIndex(k.List)].entries.Get(k.ID)
	if k.Kind == events.KindViews {
		return e.total.sequence
	}
	return e.sequence
}

// revision returns the greatest revision that is known of a subject, or 0.
func (s *state) revision(k events.Subject) int64 {
	if k.Kind == events.KindDonation {
		d, _ := s.donations.Get(k.ID)
		return d.revision
	}
	e, _ := s.lists[listIndex(k.List)].entries.Get(k.ID)
	switch {
	case k.Kind == events.KindViews:
		return e.total.revision
	case e.row != nil:
		return e.row.revision
	default:
		return 0
	}
}

// snapshot returns a copy for a view. last is the view before: it has the lists that have not changed since.
func (s *state) snapshot(last *state) state {
	is := *s
	for i, l := range s.lists {
		if l.changed {
			is.lists[i] = l.snapshot(string(events.Lists()[i]))
			l.changed = false
		} else {
			is.lists[i] = last.lists[i]
		}
	}
	var shown [events.NumLists]Digest
	for i, l := range s.lists {
		shown[i] = l.shownDigest
	}
	is.checkTag = contentTag("check", shown[:]...)
	is.donations = s.donations.Copy()
	is.chats, is.feed, is.names.refs = s.chats.Copy(), s.feed.Copy(), s.names.refs.Copy()
	is.ranges = s.ranges.snapshot()
	return is
}

func (l *list) snapshot(name string) *list {
	is := *l
	is.entries = l.entries.Copy()
	for o, t := range l.orders {
		is.orders[o] = t.Copy()
	}
	is.rows, is.filters, is.views = l.rows.snapshot(), l.filters.snapshot(), l.views.snapshot()
	is.texts = l.texts.snapshot()
	is.tag = contentTag(name, l.shownDigest)
	is.popularTag = contentTag(name+" by views", l.shownDigest, l.viewsDigest)
	is.slots = slotNumbers{}
	return &is
}

// slotNumbers allocates the lowest free numbers.
type slotNumbers struct {
	free []uint32 // released numbers
	next uint32   // the lowest number never used
}

func (s *slotNumbers) take() uint32 {
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot
	}
	s.next++
	return s.next - 1
}

func (s *slotNumbers) giveBack(slot uint32) { s.free = append(s.free, slot) }
