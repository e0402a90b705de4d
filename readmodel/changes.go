package readmodel

import "slices"

// changeLog is the rows that changed of late, oldest first: what an index or a cached search that
// lags a little has yet to learn. Views share it, since items are only ever appended.
type changeLog struct {
	floor uint64 // every change after this sequence is in items
	items []loggedChange
}

// loggedChange says that a row was set or removed.
type loggedChange struct {
	sequence      uint64
	ref           RowRef
	before, after filterBits
}

// maxChanges is how many changes are kept at least, if there were so many. The log grows to twice
// that before its older half goes. Whoever lags further has to look at every row.
const maxChanges = 1 << 15

// add logs a change. The owner calls it, in the order of sequences.
func (l *changeLog) add(sequence uint64, ch *rowChange) {
	if len(l.items) == 2*maxChanges {
		l.floor = l.items[maxChanges-1].sequence
		l.items = append(make([]loggedChange, 0, 2*maxChanges), l.items[maxChanges:]...)
	}
	c := loggedChange{sequence: sequence, ref: ch.ref()}
	if ch.old != nil {
		c.before = ch.old.filter
	}
	if ch.row != nil {
		c.after = ch.row.filter
	}
	l.items = append(l.items, c)
}

// since returns the changes after sequence, or false if the log no longer reaches that far back.
func (l *changeLog) since(sequence uint64) ([]loggedChange, bool) {
	if sequence < l.floor {
		return nil, false
	}
	at, _ := slices.BinarySearchFunc(l.items, sequence+1, func(c loggedChange, s uint64) int {
		if c.sequence < s {
			return -1
		}
		return 1
	})
	return l.items[at:], true
}
