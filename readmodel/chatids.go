package readmodel

import "example.org/registry/readmodel/btree"

// chatIDs is the facet of chat ids: it finds the rows of a chat id, in every list. It is ordered by
// the hash of ranges, which are contiguous parts of the tree (ranges.go), and has their sums. That
// hash takes no memory, and 0.2 µs in a lookup. An attacker can make ids collide in 64 bits of
// SHA-256, but only two at a time and at great cost.
type chatIDs struct {
	idIndex
	ranges  rangeSums
	content *content // nil in a view
}

func newChatIDs(c *content) *chatIDs {
	return &chatIDs{idIndex: idIndex{hash: chatKey}, content: c}
}

func (c *chatIDs) apply(ch change) {
	if ch.old == nil || ch.row == nil || ch.old.chatID() != ch.row.chatID() {
		if ch.old != nil {
			c.delete(ch.old.chatID(), uint32(ch.old.Ref()))
		}
		if ch.row != nil {
			c.insert(ch.row.chatID(), uint32(ch.row.Ref()))
		}
	}
	c.applyRanges(ch)
}

// applyRanges updates the sums of the chat ids in a change, which is in the tree already.
func (c *chatIDs) applyRanges(ch change) {
	if ch.old != nil && ch.row != nil && ch.old.listedAs() == ch.row.listedAs() && ch.old.chatID() == ch.row.chatID() {
		return
	}
	for _, r := range []*Row{ch.old, ch.row} {
		if r == nil || r == ch.row && ch.old != nil && ch.old.chatID() == r.chatID() {
			continue
		}
		id := r.chatID()
		var others, was, is listedAs
		c.find(id, func(n uint32) {
			if ref := RowRef(n); ref != r.Ref() {
				if other := c.content.row(ref); other.chatID() == id {
					others |= other.listedAs()
				}
			}
		})
		if ch.old != nil && ch.old.chatID() == id {
			was = ch.old.listedAs()
		}
		if ch.row != nil && ch.row.chatID() == id {
			is = ch.row.listedAs()
		}
		c.ranges.set(hashChatID(id), others|was, others|is)
	}
}

// reload hashes each id as if it had one row, then corrects the ids that have several.
func (c *chatIDs) reload(s *scratch) {
	c.ranges = rangeSums{}
	items := s.room(c.content.numRows())
	for r := range c.content.rows() {
		hash := hashChatID(r.chatID())
		items = append(items, btree.Item{Key: keyOf(hash), Slot: uint32(r.Ref())})
		c.ranges.set(hash, 0, r.listedAs())
	}
	c.load(items, s)
	listed := map[string]listedAs{}
	for key := range c.tree.Repeated() {
		c.tree.Find(key, func(n uint32) {
			r := c.content.row(RowRef(n))
			c.ranges.set(hashChatID(r.chatID()), r.listedAs(), 0)
			listed[r.chatID()] |= r.listedAs()
		})
	}
	for id, as := range listed {
		c.ranges.set(hashChatID(id), 0, as)
	}
}

func (c *chatIDs) publish(v *View) {
	v.chatIDs = chatIDs{idIndex: c.snapshot(), ranges: c.ranges.snapshot()}
}

// withChatID calls f with every row, shown or not, that has exactly this chat id.
func (v *View) withChatID(id string, f func(list int, r *Row)) {
	v.chatIDs.find(id, func(n uint32) {
		ref := RowRef(n)
		if r := v.Row(ref); r.chatID() == id {
			f(ref.List(), r)
		}
	})
}
