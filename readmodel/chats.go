package readmodel

import (
	"cmp"
	"hash/maphash"
	"slices"
)

// chats finds the rows of a chat id, of whatever list: a tree by hash, whose items name the list in
// the top bits of the slot. The seed is random, so nobody can choose ids that meet.
type chats struct {
	seed maphash.Seed
	tree tree
}

// listShift leaves a list 2^30 slots.
const listShift = 30

func (c *chats) item(r *Row) item {
	return item{maphash.String(c.seed, r.chatID()), uint32(r.list)<<listShift | r.slot}
}

func compareChats(a, b item) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.slot, b.slot))
}

func (c *chats) apply(ch change) {
	if ch.old != nil && ch.row != nil && ch.old.chatID() == ch.row.chatID() {
		return
	}
	if ch.old != nil {
		c.tree.remove(c.item(ch.old), compareChats)
	}
	if ch.row != nil {
		c.tree.insert(c.item(ch.row), compareChats)
	}
}

// reload makes the tree anew from the rows of all lists.
func (c *chats) reload(lists *[numLists]*catalogue) {
	var items []item
	for _, l := range lists {
		for _, cl := range l.cells {
			if cl.row != nil {
				items = append(items, c.item(cl.row))
			}
		}
	}
	slices.SortFunc(items, compareChats)
	c.tree.load(items)
}

// withChatID calls f with every row, shown or not, that has that very chat id.
func (v *View) withChatID(id string, f func(list int, r *Row)) {
	v.chats.tree.withKey(maphash.String(v.chats.seed, id), func(ref uint32) {
		list := int(ref >> listShift)
		if r := v.lists[list].rows.get(ref & (1<<listShift - 1)); r.chatID() == id {
			f(list, r)
		}
	})
}
