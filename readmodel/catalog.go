package readmodel

import (
	"cmp"
	"slices"
	"strings"

	"example.org/registry/events"
	"example.org/registry/readmodel/btree"
	"example.org/registry/readmodel/textblock"
)

// catalog is one list on the owner's side: its rows, in every order and by entry id, and the view
// totals. It stores a view total whether or not the entry is listed (events/CONTRACT.md#data).
//
// There is no map from entry ids to rows. Next to the tree that views need anyway, a map took 71
// bytes and an object an entry, and its lookups a fifth of a start's CPU time.
type catalog struct {
	orders   *orderTrees
	ids      idIndex          // slots by entry id
	totals   cowSlice[total]  // view totals by slot
	unlisted map[string]total // view totals of entries that are not listed
	slots    slotNumbers
	texts    textBlocks
	inOrder  bool // slots are in the order of entry ids, as after Load

	entries Digest // of all entries, shown or not, without their revisions
	views   Digest // of all view totals, also of unlisted entries, without their revisions
	states  Digest // of both with their revisions
	changed bool   // since the last publish

	numCounted int // number of view totals, also of unlisted entries
}

// total is a view total with its revision, and the sequence of the last message with it. The zero
// value stands for none; clients see 0.
type total struct {
	views, revision int64
	sequence        uint64
}

func (t total) counted() bool { return t.revision > 0 }

// rank returns the rank of a total that the subject has, or the least rank if there is none.
func (t total) rank(k events.Subject) (r events.Rank) {
	if t.counted() {
		r = events.RankOf(events.Views{List: k.List, EntryID: k.ID, Revision: t.revision, Views: t.views})
	}
	return r
}

// rowChange is the change of one row. Either row may be nil; if both are, nothing has changed.
type rowChange struct {
	old, row      *Row
	before, after int64 // view totals
}

// ref returns the RowRef of the row that changed. The change must not be empty.
func (ch *rowChange) ref() RowRef {
	if ch.row != nil {
		return ch.row.Ref()
	}
	return ch.old.Ref()
}

func newCatalog() *catalog {
	return &catalog{orders: newOrderTrees(), ids: newIDIndex(), unlisted: map[string]total{}, texts: textBlocks{size: textblock.Len}, inOrder: true, changed: true}
}

// row returns the row with exactly this entry id, or nil.
func (c *catalog) row(id string) *Row { return c.ids.row(&c.orders.rows, id) }

// counted returns the view total of an entry id. r is the entry's row, or nil.
func (c *catalog) counted(id string, r *Row) total {
	if r != nil {
		return c.totals.get(r.slot)
	}
	return c.unlisted[id]
}

// setTotal sets the view total of an entry id.
func (c *catalog) setTotal(id string, r *Row, t total) {
	switch {
	case r != nil:
		c.totals.set(r.slot, t)
	case t.counted():
		c.unlisted[strings.Clone(id)] = t // id may be a part of a larger string
	}
}

// setRow replaces old, the row of an entry, which may be nil, by row, or removes it if row is nil,
// and returns the change. It stores a copy of row, since the row belongs to a record. In bulk it
// leaves the orders to reload.
func (c *catalog) setRow(id string, old, row *Row, bulk bool) rowChange {
	if old == nil && row == nil {
		return rowChange{} // nothing to remove
	}
	counted := c.counted(id, old)
	ch := rowChange{old, nil, counted.views, counted.views}
	if row != nil {
		own := *row
		ch.row = &own
	}
	c.number(ch)
	c.texts.apply(ch)
	c.inOrder = false
	if bulk {
		c.orders.setRow(ch)
	} else {
		c.orders.apply(ch)
	}
	switch {
	case row == nil:
		c.ids.delete(id, old.slot)
	case old == nil:
		c.ids.insert(id, ch.row.slot)
		delete(c.unlisted, id)
	}
	c.setTotal(id, ch.row, counted)
	return ch
}

// load adds and retains the row of an entry that is not listed. It leaves orders and ids to reload.
func (c *catalog) load(row *Row) {
	ch := rowChange{row: row}
	c.number(ch)
	c.inOrder = c.inOrder && (row.slot == 0 || c.orders.rows.get(row.slot-1).ID() < row.ID())
	c.orders.setRow(ch)
	c.texts.apply(ch)
	c.setTotal(row.ID(), row, total{})
}

// loadViews adds the view total of r, the first of its entry id. row is the entry's row, or nil if
// it is not listed.
func (c *catalog) loadViews(id string, row *Row, r *Record) {
	c.views.Add(r.digest)
	c.states.Add(r.Digest())
	c.numCounted++
	c.setTotal(id, row, total{r.views, r.Revision, r.Sequence})
}

// number gives the new row the slot of the row it replaces, or a free one, and updates the digest.
func (c *catalog) number(ch rowChange) {
	c.changed = true
	if ch.old != nil {
		c.entries.sub(ch.old.digest)
		c.states.sub(Digest(ch.old.hash))
	}
	if ch.row == nil {
		c.slots.giveBack(ch.old.slot)
		return
	}
	c.entries.Add(ch.row.digest)
	c.states.Add(Digest(ch.row.hash))
	if ch.old != nil {
		ch.row.slot = ch.old.slot
	} else {
		ch.row.slot = c.slots.take()
	}
}

// setViews sets the view total of an entry id, listed or not. If the known one wins, it returns that
// and changes nothing.
func (c *content) setViews(rec *Record, bulk bool) (lost *known) {
	k, is, l := rec.Subject, total{rec.views, rec.Revision, rec.Sequence}, c.lists[listIndex(rec.Subject.List)]
	r := l.row(k.ID)
	before := l.counted(k.ID, r)
	was := known{Rank: before.rank(k), sequence: before.sequence, shown: true}
	switch order := rec.rank().Compare(was.Rank); {
	case order < 0:
		return &was
	case order == 0 && was.holds(rec):
		return nil
	}
	c.lacking.found(rec)
	l.setViews(rec, r, before, is, bulk)
	return nil
}

func (c *catalog) setViews(rec *Record, r *Row, before, is total, bulk bool) {
	k := rec.Subject
	c.changed = true
	if before.counted() {
		c.views.sub(viewsDigest(k, before.views))
		c.states.sub(Digest(before.rank(k).Hash))
	} else {
		c.numCounted++
	}
	c.views.Add(rec.digest)
	c.states.Add(rec.Digest())
	c.setTotal(k.ID, r, is)
	if r != nil && !bulk {
		c.orders.apply(rowChange{r, r, before.views, is.views})
	}
}

// scratch is the memory in which a goroutine of EndBulk sorts. It is reused for each tree.
type scratch struct {
	items  []btree.Item
	sorter btree.Sorter
}

// room returns an empty slice for n items.
func (s *scratch) room(n int) []btree.Item {
	s.items = slices.Grow(s.items[:0], n)
	return s.items
}

// reload sorts the rows of one order, which setRow leaves undone in bulk. Several orders may be
// reloaded concurrently.
func (c *catalog) reload(o order, s *scratch) {
	items := s.room(c.slots.taken())
	rows := &c.orders.rows
	for slot, r := range rows.all() {
		if r != nil && r.shown() {
			items = append(items, o.item(r, c.totals.get(slot).views))
		}
	}
	if c.inOrder && o != byName {
		s.sorter.Sort(items, nil, btree.ByKey)
	} else {
		s.sorter.Sort(items, func(slot uint32) string { return o.text(rows.get(slot)) }, c.orders.compare[o])
	}
	c.orders.load(o, items)
}

// reloadIDs is reload for the entry ids.
func (c *catalog) reloadIDs(s *scratch) {
	items := s.room(c.slots.taken())
	for slot, r := range c.orders.rows.all() {
		if r != nil {
			items = append(items, c.ids.item(r.ID(), slot))
		}
	}
	c.ids.load(items, s)
}

// publish returns the list for a new view; last is the list of the view before.
func (c *catalog) publish(name string, last *listView) *listView {
	l := &listView{
		trees:      last.trees,
		rows:       c.orders.rows.snapshot(),
		filters:    c.orders.filters.snapshot(),
		texts:      c.texts.snapshot(),
		ids:        c.ids.snapshot(),
		totals:     c.totals.snapshot(),
		tag:        contentTag(name, c.entries),
		popularTag: contentTag(name+" by views", c.entries, c.views),
	}
	c.orders.publish(&l.trees)
	c.changed = false
	return l
}

// orderTrees holds the rows of one list, by slot, and a tree of the shown rows for every order.
type orderTrees struct {
	rows    cowSlice[*Row]
	filters cowSlice[filterBits] // of the rows; zero for a free slot
	trees   [numOrders]btree.Tree
	dirty   [numOrders]bool // since the last publish
	compare [numOrders]btree.Compare
}

func newOrderTrees() *orderTrees {
	t := &orderTrees{}
	for o := range numOrders {
		t.compare[o] = func(a, b btree.Item) int {
			switch {
			case a.Key != b.Key:
				return cmp.Compare(a.Key, b.Key)
			case a.Slot == b.Slot:
				return 0
			}
			return o.tie(t.rows.get(a.Slot), t.rows.get(b.Slot))
		}
	}
	return t
}

// apply moves the row in every tree that the change affects. Items name rows by slot: the old row
// stays in its slot until no tree holds it, and the new row is stored before a tree gets it.
func (t *orderTrees) apply(ch rowChange) {
	var enters [numOrders]bool
	for o := range numOrders {
		was, is := ch.old != nil && ch.old.shown(), ch.row != nil && ch.row.shown()
		if was && is && ch.stays(o) {
			continue
		}
		if was {
			t.trees[o].Delete(o.item(ch.old, ch.before), t.compare[o])
		}
		enters[o] = is
		t.dirty[o] = t.dirty[o] || was || is
	}
	t.setRow(ch)
	for o, in := range enters {
		if in {
			t.trees[o].Insert(order(o).item(ch.row, ch.after), t.compare[o])
		}
	}
}

// stays reports whether the change leaves the row's position in an order and its class as they are.
func (ch *rowChange) stays(o order) bool {
	return o.item(ch.old, ch.before) == o.item(ch.row, ch.after) &&
		(o != byName || ch.old.collation == ch.row.collation)
}

// setRow puts the row into its slot and touches no tree.
func (t *orderTrees) setRow(ch rowChange) {
	switch {
	case ch.row == ch.old:
	case ch.row != nil:
		t.rows.set(ch.row.slot, ch.row)
		t.filters.set(ch.row.slot, ch.row.filter)
	default:
		t.rows.set(ch.old.slot, nil)
		t.filters.set(ch.old.slot, 0)
	}
}

// load replaces the tree of an order by a tree of items, which are sorted.
func (t *orderTrees) load(o order, items []btree.Item) {
	t.trees[o].Load(items)
	t.dirty[o] = true
}

// publish copies the trees that have changed to a view.
func (t *orderTrees) publish(into *[numOrders]btree.Tree) {
	for o := range t.trees {
		if t.dirty[o] {
			into[o], t.dirty[o] = t.trees[o].Snapshot(), false
		}
	}
}
