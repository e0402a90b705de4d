package readmodel

import "slices"

// tree is a counted B-tree, copied on write. Only its owner changes it; what share returned is
// never written again and may be read by anybody. The zero value is empty.
type tree struct {
	root       *node
	count      int
	generation uint64
}

// share returns the tree as it is now; t goes on in copies of the nodes it changes.
func (t *tree) share() tree {
	t.generation++
	return tree{root: t.root, count: t.count}
}

// own is n if it belongs to t alone, else a copy of it that does.
func (t *tree) own(n *node) *node {
	if n.generation == t.generation {
		return n
	}
	c := &node{generation: t.generation, items: append(make([]item, 0, maxItems), n.items...)}
	if n.kids != nil {
		c.kids = append(make([]*node, 0, maxItems), n.kids...)
		c.counts = append(make([]int, 0, maxItems), n.counts...)
	}
	return c
}

func (t *tree) leaf(items []item) *node {
	return &node{generation: t.generation, items: append(make([]item, 0, maxItems), items...)}
}

// insert adds it, which is not there yet, in the order of cmp.
func (t *tree) insert(it item, cmp func(a, b item) int) {
	t.count++
	if t.root == nil {
		t.root = t.leaf([]item{it})
		return
	}
	t.root = t.own(t.root)
	if right := t.insertInto(t.root, it, cmp); right != nil {
		t.root = t.branch([]*node{t.root, right})
	}
}

// insertInto adds it below n, which t owns, and returns the right half of n if n had to be split.
func (t *tree) insertInto(n *node, it item, cmp func(a, b item) int) *node {
	if n.kids == nil {
		at, _ := slices.BinarySearchFunc(n.items, it, cmp)
		n.items = slices.Insert(n.items, at, it)
	} else {
		at := n.kidOf(it, cmp)
		kid := t.ownKid(n, at)
		right := t.insertInto(kid, it, cmp)
		n.refresh(at)
		if right != nil {
			n.insertKid(at+1, right)
		}
	}
	return t.split(n)
}

// split moves the upper half of a full node into a new one.
func (t *tree) split(n *node) *node {
	if len(n.items) < maxItems {
		return nil
	}
	const half = maxItems / 2
	right := t.leaf(n.items[half:])
	n.items = n.items[:half]
	if n.kids != nil {
		right.kids = append(make([]*node, 0, maxItems), n.kids[half:]...)
		right.counts = append(make([]int, 0, maxItems), n.counts[half:]...)
		clear(n.kids[half:])
		n.kids, n.counts = n.kids[:half], n.counts[:half]
	}
	return right
}

// remove takes out it, which must be there, in the order of cmp.
func (t *tree) remove(it item, cmp func(a, b item) int) {
	t.root = t.own(t.root)
	if !t.removeFrom(t.root, it, cmp) {
		return
	}
	t.count--
	switch {
	case t.count == 0:
		t.root = nil
	case len(t.root.kids) == 1:
		t.root = t.root.kids[0]
	}
}

func (t *tree) removeFrom(n *node, it item, cmp func(a, b item) int) (found bool) {
	if n.kids == nil {
		var at int
		if at, found = slices.BinarySearchFunc(n.items, it, cmp); found {
			n.items = slices.Delete(n.items, at, at+1)
		}
		return found
	}
	at := n.kidOf(it, cmp)
	kid := t.ownKid(n, at)
	if found = t.removeFrom(kid, it, cmp); !found {
		return false
	}
	if len(kid.items) == 0 {
		n.removeKid(at)
		return true
	}
	n.refresh(at)
	if len(kid.items) < minItems {
		t.join(n, max(at-1, 0))
	}
	return true
}

// join makes one of the kids at and at+1 where the two leave room for more.
func (t *tree) join(n *node, at int) {
	if at+1 >= len(n.kids) || len(n.kids[at].items)+len(n.kids[at+1].items) > maxItems/2 {
		return
	}
	left, right := t.ownKid(n, at), n.kids[at+1]
	left.items = append(left.items, right.items...)
	left.kids = append(left.kids, right.kids...)
	left.counts = append(left.counts, right.counts...)
	n.removeKid(at + 1)
	n.refresh(at)
}

func (t *tree) ownKid(n *node, at int) *node {
	n.kids[at] = t.own(n.kids[at])
	return n.kids[at]
}

func (t *tree) branch(kids []*node) *node {
	n := t.leaf(nil)
	n.kids, n.counts = make([]*node, 0, maxItems), make([]int, 0, maxItems)
	for _, kid := range kids {
		n.insertKid(len(n.kids), kid)
	}
	return n
}

// load replaces the content by items, which are in order.
func (t *tree) load(items []item) {
	var level []*node
	for chunk := range slices.Chunk(items, loadItems) {
		level = append(level, t.leaf(chunk))
	}
	for len(level) > 1 {
		var above []*node
		for kids := range slices.Chunk(level, loadItems) {
			above = append(above, t.branch(kids))
		}
		level = above
	}
	t.root, t.count = nil, len(items)
	if len(level) == 1 {
		t.root = level[0]
	}
}
