package readmodel

import (
	"strings"

	"example.org/registry/events"
	"example.org/registry/readmodel/btree"
)

// chatIDs is the facet of chat ids: it finds the rows of a chat id, in every list. It is ordered by
// the hash of ranges, which are contiguous parts of the tree (ranges.go), and has their sums. That
// hash takes no memory, and 0.2 µs in a lookup. An attacker can make ids collide in 64 bits of
// SHA-256, but only two at a time and at great cost.
type chatIDs struct {
	idIndex
	ranges  rangeSums
	shared  map[string]*sharing // of the ids that several rows have; nil in a view
	content *content            // nil in a view
}

// sharing counts the rows of one chat id, in all and by the bits of listedAs. A change of one row
// therefore never reads the others: there may be any number of them.
type sharing struct {
	rows int
	as   [2 * events.NumLists]int
}

// add adds n rows that are listed as as.
func (s *sharing) add(as listedAs, n int) {
	s.rows += n
	for bit := range s.as {
		if as>>bit&1 != 0 {
			s.as[bit] += n
		}
	}
}

func (s *sharing) listedAs() (as listedAs) {
	for bit, n := range s.as {
		if n > 0 {
			as |= 1 << bit
		}
	}
	return as
}

func newChatIDs(c *content) *chatIDs {
	return &chatIDs{idIndex: idIndex{hash: chatKey}, shared: map[string]*sharing{}, content: c}
}

func (c *chatIDs) apply(ch change) {
	if ch.old == nil || ch.row == nil || ch.old.ChatID() != ch.row.ChatID() {
		if ch.old != nil {
			c.delete(ch.old.ChatID(), uint32(ch.old.Ref()))
		}
		if ch.row != nil {
			c.insert(ch.row.ChatID(), uint32(ch.row.Ref()))
		}
	}
	c.applyRanges(ch)
}

// applyRanges updates the sums of the chat ids in a change, which is in the tree already.
func (c *chatIDs) applyRanges(ch change) {
	if ch.old != nil && ch.row != nil && ch.old.listedAs() == ch.row.listedAs() && ch.old.ChatID() == ch.row.ChatID() {
		return
	}
	for _, r := range []*Row{ch.old, ch.row} {
		if r == nil || r == ch.row && ch.old != nil && ch.old.ChatID() == r.ChatID() {
			continue
		}
		id := r.ChatID()
		n := c.counted(id, ch)
		before := n.listedAs()
		if ch.old != nil && ch.old.ChatID() == id {
			n.add(ch.old.listedAs(), -1)
		}
		if ch.row != nil && ch.row.ChatID() == id {
			n.add(ch.row.listedAs(), 1)
		}
		if n.rows < 2 {
			delete(c.shared, id)
		}
		c.ranges.set(hashChatID(id), before, n.listedAs())
	}
}

// counted counts the rows of a chat id before a change. If several had it, or have it now, the count
// is kept.
func (c *chatIDs) counted(id string, ch change) *sharing {
	if n := c.shared[id]; n != nil {
		return n
	}
	n := &sharing{}
	c.find(id, func(ref uint32) { // no row, or a single one, besides the changed row
		if other := c.content.row(RowRef(ref)); RowRef(ref) != ch.ref() && other.ChatID() == id {
			n.add(other.listedAs(), 1)
		}
	})
	if n.rows > 0 {
		c.shared[strings.Clone(id)] = n // id is a part of its row's text
	}
	if ch.old != nil && ch.old.ChatID() == id {
		n.add(ch.old.listedAs(), 1)
	}
	return n
}

// reload hashes each id as if it had one row, then corrects the ids that have several.
func (c *chatIDs) reload(s *scratch) {
	c.ranges = rangeSums{}
	items := s.room(c.content.numRows())
	for r := range c.content.rows() {
		hash := hashChatID(r.ChatID())
		items = append(items, btree.Item{Key: keyOf(hash), Slot: uint32(r.Ref())})
		c.ranges.set(hash, 0, r.listedAs())
	}
	c.load(items, s)
	clear(c.shared)
	for key := range c.tree.Repeated() {
		c.tree.Find(key, func(n uint32) {
			r := c.content.row(RowRef(n))
			id := strings.Clone(r.ChatID())
			if c.shared[id] == nil {
				c.shared[id] = &sharing{}
			}
			c.shared[id].add(r.listedAs(), 1)
			c.ranges.set(hashChatID(id), r.listedAs(), 0)
		})
	}
	for id, n := range c.shared {
		c.ranges.set(hashChatID(id), 0, n.listedAs())
		if n.rows < 2 {
			delete(c.shared, id) // another id has its hash
		}
	}
}

func (c *chatIDs) publish(v *View) {
	v.chatIDs = chatIDs{idIndex: c.snapshot(), ranges: c.ranges.snapshot()}
}

// manyRows is how many rows of a chat id make a lookup as long as a text search.
const manyRows = 1000

// ManyWithID reports whether so many entries have this chat id that a lookup of it takes as long as a
// text search.
func (v *View) ManyWithID(id string) bool { return v.chatIDs.tree.Count(chatKey(id)) >= manyRows }

// withChatID calls f with every row, shown or not, that has exactly this chat id.
func (v *View) withChatID(id string, f func(list int, r *Row)) {
	v.chatIDs.find(id, func(n uint32) {
		ref := RowRef(n)
		if r := v.Row(ref); r.ChatID() == id {
			f(ref.List(), r)
		}
	})
}
