package readmodel

import "slices"

// changed is that an entry was set or removed.
type changed struct {
	sequence      uint64
	ref           uint32 // list and slot, as in chats
	before, after filterBits
}

// changeLog is the entries that changed of late, oldest first: what an index or a remembered search
// that is a little behind has yet to hear of. Views share it: items are only ever appended.
type changeLog struct {
	floor uint64 // every change behind this sequence is in items
	items []changed
}

// maxChanges is how many changes are kept: twice as many before the older half goes. What is
// further behind has to look at every row.
const maxChanges = 1 << 15

// add is called by the owner, in the order of sequences.
func (l *changeLog) add(sequence uint64, list int, ch *change) {
	if len(l.items) == 2*maxChanges {
		l.floor = l.items[maxChanges-1].sequence
		l.items = append(make([]changed, 0, 2*maxChanges), l.items[maxChanges:]...)
	}
	c := changed{sequence: sequence, ref: uint32(list)<<listShift | ch.slot()}
	if ch.old != nil {
		c.before = ch.old.filter
	}
	if ch.row != nil {
		c.after = ch.row.filter
	}
	l.items = append(l.items, c)
}

// since is the changes behind sequence; false when they go further back than the log.
func (l *changeLog) since(sequence uint64) ([]changed, bool) {
	if sequence < l.floor {
		return nil, false
	}
	at, _ := slices.BinarySearchFunc(l.items, sequence+1, func(c changed, s uint64) int {
		if c.sequence < s {
			return -1
		}
		return 1
	})
	return l.items[at:], true
}

func (c changed) list() int    { return int(c.ref >> listShift) }
func (c changed) slot() uint32 { return c.ref & (1<<listShift - 1) }
