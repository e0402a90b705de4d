package readmodel

import "slices"

// changeLog is the facet of recent changes, oldest first. An index that lags a little learns from
// it what it has missed. Views share the items, since they are only ever appended.
type changeLog struct {
	floor   uint64 // every change after this sequence is in items
	items   []loggedChange
	content *content // nil in a view
}

// loggedChange records that a row was set or removed.
type loggedChange struct {
	sequence uint64
	ref      RowRef
}

// maxChanges is the minimum number of changes retained. The log grows to twice that before its older
// half is dropped. A caller further behind must scan every row.
const maxChanges = 1 << 15

// apply logs a change. Changes come in the order of sequences.
func (l *changeLog) apply(ch change) {
	if ch.rowChange == (rowChange{}) {
		return
	}
	if len(l.items) == 2*maxChanges {
		l.floor = l.items[maxChanges-1].sequence
		l.items = append(make([]loggedChange, 0, 2*maxChanges), l.items[maxChanges:]...)
	}
	l.items = append(l.items, loggedChange{sequence: ch.sequence, ref: ch.ref()})
}

// reload drops all changes, since those in bulk were not logged.
func (l *changeLog) reload(*scratch) { l.floor, l.items = l.content.checkpoint, nil }

func (l *changeLog) publish(v *View) { v.changes = changeLog{floor: l.floor, items: l.items} }

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
