// Package btree is a counted B-tree with copy-on-write snapshots, for orders of numbered rows.
//
// An Item is a sort key and a slot: the number of a row that the tree's owner stores elsewhere.
// Every branch counts the items below it, so any position is one descent away, and a walk in either
// direction starts there. An item also has a class, and branches count items by class. A position
// can therefore count the items of some classes only, and the walk skips the others.
//
// # Promises
//
//   - A snapshot never changes. Any number of goroutines may read one while the owner goes on
//     changing the tree.
//   - Snapshot takes constant time, Insert and Delete touch one path from the root, and a walk from
//     position n skips the n items by their counts.
//   - The tree never looks at rows. Callers of Insert and Delete pass the comparison, which may.
//
// # Why
//
// An Item holds no pointer, so a collection does not walk the items, and a walk by position reads no
// row. Nodes are small, and each is one object: a batch of changes to a large tree copies a leaf for
// nearly each change. tidwall/btree loses to it on both counts, and no library counts by class.
package btree

import (
	"cmp"
	"slices"
)

// Item is one row in an order. Key, such as a time, a total, the start of a collation key or a
// hash, decides nearly every comparison without reading the row.
type Item struct {
	Key   uint64
	Slot  uint32
	Class uint8 // below NumClasses; ignored by the order
}

// NumClasses is how many classes items are counted by.
const NumClasses = 8

// Classes is a set of classes: bit i is class i. A walk yields the items of a set.
type Classes uint8

// All is the set of all classes.
const All Classes = 1<<NumClasses - 1

func (c Classes) has(class uint8) bool { return c>>class&1 != 0 }

// Compare orders two items of equal keys, which it is only called with. It returns 0 only if they
// are the same item.
type Compare func(a, b Item) int

// ByKey orders items by key, then by slot. It suits items that no row has to order further.
func ByKey(a, b Item) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Slot, b.Slot))
}

// Tree is a counted B-tree. The zero value is empty. One goroutine at a time owns a tree and may
// change it; any goroutine may read what Snapshot returned. A tree is used with one Compare only.
type Tree struct {
	root       *node
	generation uint64 // a node of an older one is shared with a snapshot
}

const (
	// maxItems bounds a node's items: a leaf fills 512 bytes and a branch 1024, size classes of the
	// allocator.
	maxItems = 38
	// minItems is the size below which a node looks for a neighbor to join.
	minItems = maxItems / 4
	// loadItems leaves room for the first inserts after a Load, which would else split every node.
	loadItems = maxItems - maxItems/8
)

// node is a leaf, or a branch, whose items are the first items of its children. It is one object
// without gaps, since a batch of changes copies a leaf for nearly each change.
type node struct {
	children   *children // nil in a leaf
	generation uint64
	keys       [maxItems]uint64
	slots      [maxItems]uint32
	classes    [maxItems]uint8
	n          uint8
}

// children is the part of a branch that a leaf lacks.
type children struct {
	nodes   [maxItems]*node
	counts  [maxItems]uint32   // of the items below each kid
	classes [NumClasses]uint32 // of the items below all of them, by class
}

// branch is a node and its children, one object.
type branch struct {
	node     node
	children children
}

// Len returns the number of items of the classes.
func (t *Tree) Len(in Classes) int {
	if t.root == nil {
		return 0
	}
	return t.root.count(in)
}

// Snapshot returns a copy of the tree that never changes. t copies the nodes that it changes from
// then on.
func (t *Tree) Snapshot() Tree {
	t.generation++
	return Tree{root: t.root}
}

// Insert adds it, which must not be in the tree.
func (t *Tree) Insert(it Item, order Compare) {
	if t.root == nil {
		t.root = t.newLeaf()
	}
	t.root = t.mutable(t.root)
	if right := t.insert(t.root, it, order); right != nil {
		t.root = t.newBranch([]*node{t.root, right})
	}
}

// insert adds it below n, which t owns, and returns the right half of n if n had to be split.
func (t *Tree) insert(n *node, it Item, order Compare) *node {
	if n.children == nil {
		at, _ := n.search(it, order)
		n.insertAt(at, it)
		return t.split(n, at)
	}
	at := n.kidOf(it, order)
	kid := t.ownKid(n, at)
	right := t.insert(kid, it, order)
	n.set(at, kid.item(0)) // the kid's first item: a bound must not name a removed row
	n.children.counts[at]++
	n.children.classes[it.Class]++
	if right != nil {
		n.children.counts[at] -= uint32(right.count(All))
		at++
		n.putKid(at, right)
	}
	return t.split(n, at)
}

// split moves the upper half of a full node, whose last insert was at, into a new node, which it
// returns. If the node was filled from the left, it stays nearly full. A tree that only grows at
// its end, by time or sequence, then takes 16 bytes an item, not 28.
func (t *Tree) split(n *node, at int) *node {
	if n.n < maxItems {
		return nil
	}
	left := maxItems / 2
	if at == maxItems-1 {
		left = loadItems
	}
	var right *node
	if n.children == nil {
		right = t.newLeaf()
	} else {
		right = t.newBranch(nil)
	}
	right.append(n, left, int(n.n))
	n.cut(left)
	return right
}

// Delete removes it, if the tree holds it.
func (t *Tree) Delete(it Item, order Compare) {
	if t.root == nil {
		return
	}
	t.root = t.mutable(t.root)
	if _, found := t.delete(t.root, it, order); !found {
		return
	}
	switch {
	case t.root.n == 0:
		t.root = nil
	case t.root.n == 1 && t.root.children != nil:
		t.root = t.root.children.nodes[0]
	}
}

func (t *Tree) delete(n *node, it Item, order Compare) (class uint8, found bool) {
	if n.children == nil {
		at, found := n.search(it, order)
		if found {
			class = n.classes[at]
			n.remove(at)
		}
		return class, found
	}
	at := n.kidOf(it, order)
	kid := t.ownKid(n, at)
	if class, found = t.delete(kid, it, order); !found {
		return class, false
	}
	n.children.counts[at]--
	n.children.classes[class]--
	if kid.n == 0 {
		n.removeKid(at)
		return class, true
	}
	n.set(at, kid.item(0))
	if kid.n < minItems {
		t.join(n, max(at-1, 0))
	}
	return class, true
}

// join merges the children at and at+1 into one node, if that leaves room for more items.
func (t *Tree) join(n *node, at int) {
	if at+1 >= int(n.n) || n.children.nodes[at].n+n.children.nodes[at+1].n > maxItems/2 {
		return
	}
	right := n.children.nodes[at+1]
	t.ownKid(n, at).append(right, 0, int(right.n))
	n.children.counts[at] += n.children.counts[at+1]
	n.removeKid(at + 1)
	n.set(at, n.children.nodes[at].item(0))
}

// Load replaces the content with a copy of items, which are in order.
func (t *Tree) Load(items []Item) {
	var level []*node
	for chunk := range slices.Chunk(items, loadItems) {
		leaf := t.newLeaf()
		for i, it := range chunk {
			leaf.insertAt(i, it)
		}
		level = append(level, leaf)
	}
	for len(level) > 1 {
		var above []*node
		for children := range slices.Chunk(level, loadItems) {
			above = append(above, t.newBranch(children))
		}
		level = above
	}
	t.root = nil
	if len(level) == 1 {
		t.root = level[0]
	}
}

// mutable returns n, or a copy of n if a snapshot shares it.
func (t *Tree) mutable(n *node) *node {
	if n.generation == t.generation {
		return n
	}
	if n.children == nil {
		c := *n
		c.generation = t.generation
		return &c
	}
	b := &branch{*n, *n.children}
	b.node.generation, b.node.children = t.generation, &b.children
	return &b.node
}

func (t *Tree) ownKid(n *node, at int) *node {
	kid := t.mutable(n.children.nodes[at])
	n.children.nodes[at] = kid
	return kid
}

func (t *Tree) newLeaf() *node {
	return &node{generation: t.generation}
}

func (t *Tree) newBranch(of []*node) *node {
	b := &branch{node: node{generation: t.generation}}
	b.node.children = &b.children
	for i, kid := range of {
		b.node.putKid(i, kid)
		kid.tally(&b.children.classes)
	}
	return &b.node
}

func (n *node) item(i int) Item { return Item{n.keys[i], n.slots[i], n.classes[i]} }

func (n *node) set(i int, it Item) { n.keys[i], n.slots[i], n.classes[i] = it.Key, it.Slot, it.Class }

// insertAt inserts it at position at; the node has room.
func (n *node) insertAt(at int, it Item) {
	copy(n.keys[at+1:], n.keys[at:n.n])
	copy(n.slots[at+1:], n.slots[at:n.n])
	copy(n.classes[at+1:], n.classes[at:n.n])
	n.n++
	n.set(at, it)
}

func (n *node) remove(at int) {
	copy(n.keys[at:], n.keys[at+1:n.n])
	copy(n.slots[at:], n.slots[at+1:n.n])
	copy(n.classes[at:], n.classes[at+1:n.n])
	n.n--
}

// putKid puts kid among the others. Its items are counted among the classes already.
func (n *node) putKid(at int, kid *node) {
	copy(n.children.nodes[at+1:], n.children.nodes[at:n.n])
	copy(n.children.counts[at+1:], n.children.counts[at:n.n])
	n.children.nodes[at], n.children.counts[at] = kid, uint32(kid.count(All))
	n.insertAt(at, kid.item(0))
}

func (n *node) removeKid(at int) {
	n.remove(at)
	copy(n.children.nodes[at:], n.children.nodes[at+1:n.n+1])
	copy(n.children.counts[at:], n.children.counts[at+1:n.n+1])
	n.children.nodes[n.n] = nil
}

// append appends the items of m from position from to position to, and the children.
func (n *node) append(m *node, from, to int) {
	copy(n.keys[n.n:], m.keys[from:to])
	copy(n.slots[n.n:], m.slots[from:to])
	copy(n.classes[n.n:], m.classes[from:to])
	if n.children != nil {
		copy(n.children.nodes[n.n:], m.children.nodes[from:to])
		copy(n.children.counts[n.n:], m.children.counts[from:to])
		for _, kid := range m.children.nodes[from:to] {
			kid.tally(&n.children.classes)
		}
	}
	n.n += uint8(to - from)
}

// cut drops the items from position to on, and the children.
func (n *node) cut(to int) {
	if n.children != nil {
		clear(n.children.nodes[to:n.n])
		n.children.classes = [NumClasses]uint32{}
		for _, kid := range n.children.nodes[:to] {
			kid.tally(&n.children.classes)
		}
	}
	n.n = uint8(to)
}

// count returns how many items of the classes n holds.
func (n *node) count(in Classes) (sum int) {
	switch {
	case n.children != nil:
		for class, count := range n.children.classes {
			if in.has(uint8(class)) {
				sum += int(count)
			}
		}
	case in == All:
		return int(n.n)
	default:
		for _, class := range n.classes[:n.n] {
			sum += int(in >> class & 1)
		}
	}
	return sum
}

// tally adds the number of n's items of each class.
func (n *node) tally(to *[NumClasses]uint32) {
	if n.children != nil {
		for class, count := range n.children.classes {
			to[class] += count
		}
		return
	}
	for _, class := range n.classes[:n.n] {
		to[class]++
	}
}

// kidOf returns the kid that it belongs below: the last one whose first item is not after it.
func (n *node) kidOf(it Item, order Compare) int {
	at, found := n.search(it, order)
	if found {
		return at
	}
	return max(at-1, 0)
}

// search returns the position of the first item that is not before it, and whether that is it.
func (n *node) search(it Item, order Compare) (at int, found bool) {
	low, high := n.lowerBound(it.Key), int(n.n)
	for low < high { // among equal keys
		mid := int(uint(low+high) >> 1)
		c := 1
		if n.keys[mid] == it.Key {
			c = order(n.item(mid), it)
		}
		switch {
		case c == 0:
			return mid, true
		case c < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false
}
