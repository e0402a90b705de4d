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
	totals totals
	free   []uint32 // slots given back
	next   uint32   // the first slot never used

	entries Digest // of the entries, shown or not
	views   Digest // of the view totals, of listed entries or not
	changed bool   // since the last publish
}

func newCatalogue() *catalogue {
	return &catalogue{cells: map[string]cell{}, orders: newOrders(), changed: true}
}

// put sets or removes the row of an entry and returns the one it replaces. In bulk the orders
// are left alone: they are loaded afterwards.
func (c *catalogue) put(id string, row *Row, bulk bool) (old *Row) {
	old, cl := c.swap(id, row)
	if bulk {
		return old
	}
	for o := byTime; o < numOrders; o++ {
		if old != nil {
			c.orders.remove(o, old, cl.total())
		}
		if row != nil {
			c.orders.insert(o, row, cl.total())
		}
	}
	return old
}

// swap does what put does but for the orders.
func (c *catalogue) swap(id string, row *Row) (old *Row, cl cell) {
	c.changed = true
	cl, known := c.cells[id]
	if !known {
		cl.views = -1
	}
	old, cl.row = cl.row, row
	if old != nil {
		c.entries.sub(old.digest)
	}
	if row != nil {
		c.entries.add(row.digest)
		c.number(row, old)
		c.totals.set(row.slot, cl.total())
	} else if old != nil {
		c.free = append(c.free, old.slot)
	}
	c.store(id, cl, known)
	return old, cl
}

func (c *catalogue) store(id string, cl cell, known bool) {
	switch {
	case cl.row == nil && cl.views < 0:
		delete(c.cells, id)
	case known:
		c.cells[id] = cl
	default:
		c.cells[strings.Clone(id)] = cl // id may be part of something larger
	}
}

// number gives row the slot of the row that it replaces, or a free one.
func (c *catalogue) number(row, old *Row) {
	switch n := len(c.free); {
	case old != nil:
		row.slot = old.slot
	case n > 0:
		row.slot = c.free[n-1]
		c.free = c.free[:n-1]
	default:
		row.slot = c.next
		c.next++
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
	before := cl.total()
	cl.views = views
	c.store(k.ID, cl, known)
	if cl.row == nil {
		return
	}
	c.totals.set(cl.row.slot, views)
	if !bulk && before != views {
		c.orders.remove(byViews, cl.row, before)
		c.orders.insert(byViews, cl.row, views)
	}
}

// reload sorts the rows for one order: what put left undone in bulk.
func (c *catalogue) reload(o order) {
	items := make([]item, 0, len(c.cells))
	for _, cl := range c.cells {
		if cl.row != nil {
			items = append(items, itemOf(o, cl.row, cl.total()))
		}
	}
	c.orders.load(o, items)
}
