package readmodel

import "strings"

// cell is what the owner knows of one entry id of a list: its row, its view total, or both.
// Views are kept whether the entry is listed or not (API contract, events).
type cell struct {
	row   *Row  // nil while not listed
	views int64 // -1 while none was counted
}

func (c cell) total() int64 { return max(c.views, 0) }

// catalogue is one list on the owner's side.
type catalogue struct {
	cells  map[string]cell
	orders *orders
	totals paged[int64] // view totals by slot
	free   []uint32     // slots given back
	next   uint32       // the first slot never used

	entries Digest // of the entries, shown or not
	views   Digest // of the view totals, of listed entries or not
	changed bool   // since the last publish
}

func newCatalogue() *catalogue {
	return &catalogue{cells: map[string]cell{}, orders: newOrders(), changed: true}
}

// put sets or removes the row of an entry and says what that changed. In bulk the orders are left
// alone: reload makes them.
func (c *catalogue) put(id string, row *Row, bulk bool) change {
	cl, known := c.cells[id]
	if !known {
		cl.views = -1
	}
	ch := change{cl.row, row, cl.total(), cl.total()}
	if ch.old == nil && row == nil {
		return change{} // a tombstone of nothing
	}
	c.changed = true
	c.number(ch)
	if bulk {
		c.orders.place(ch)
	} else {
		c.orders.apply(ch)
	}
	if row != nil {
		c.totals.set(row.slot, cl.total())
	}
	cl.row = row
	c.keep(id, cl, known)
	return ch
}

// number gives the new row the slot of the one it replaces, or a free one, and keeps the digest.
func (c *catalogue) number(ch change) {
	if ch.old != nil {
		c.entries.sub(ch.old.digest)
	}
	if ch.row == nil {
		c.free = append(c.free, ch.old.slot)
		return
	}
	c.entries.add(ch.row.digest)
	switch n := len(c.free); {
	case ch.old != nil:
		ch.row.slot = ch.old.slot
	case n > 0:
		ch.row.slot = c.free[n-1]
		c.free = c.free[:n-1]
	default:
		ch.row.slot = c.next
		c.next++
	}
}

func (c *catalogue) keep(id string, cl cell, known bool) {
	switch {
	case cl.row == nil && cl.views < 0:
		delete(c.cells, id)
	case known:
		c.cells[id] = cl
	default:
		c.cells[strings.Clone(id)] = cl // id may be part of something larger
	}
}

// count sets the view total of an entry id, listed or not.
func (c *catalogue) count(k Key, views int64, digest Digest, bulk bool) {
	cl, known := c.cells[k.ID]
	if !known {
		cl.views = -1
	}
	if cl.views == views {
		return
	}
	c.changed = true
	if cl.views >= 0 {
		c.views.sub(viewsDigest(k, cl.views))
	}
	c.views.add(digest)
	ch := change{cl.row, cl.row, cl.total(), views}
	if cl.row != nil {
		c.totals.set(cl.row.slot, views)
		if !bulk {
			c.orders.apply(ch)
		}
	}
	cl.views = views
	c.keep(k.ID, cl, known)
}

// reload sorts the rows for one order: what put left undone in bulk. Orders may be reloaded at
// the same time.
func (c *catalogue) reload(o order) {
	items := make([]item, 0, len(c.cells))
	for _, cl := range c.cells {
		if cl.row != nil {
			items = append(items, item{o.key(cl.row, cl.total()), cl.row.slot})
		}
	}
	c.orders.load(o, items)
}
