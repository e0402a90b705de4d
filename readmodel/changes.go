package readmodel

import "slices"

// changeLog is the facet of recent changes, oldest first. An index that lags a little learns from
// it what it has missed. Views share the items, since they are only ever appended.
type changeLog struct {
	version uint64 // of the model
	floor   uint64 // every change after this version is in items
	items   []loggedChange
}

// loggedChange records that a row was set or removed, which made that version of the model.
type loggedChange struct {
	version uint64
	ref     RowRef
}

// maxChanges is the minimum number of changes retained. The log grows to twice that before its older
// half is dropped. A caller further behind must scan every row.
const maxChanges = 1 << 15

// apply logs a change.
func (l *changeLog) apply(ch change) {
	if ch.rowChange == (rowChange{}) {
		return
	}
	if len(l.items) == 2*maxChanges {
		l.floor = l.items[maxChanges-1].version
		l.items = append(make([]loggedChange, 0, 2*maxChanges), l.items[maxChanges:]...)
	}
	l.version++
	l.items = append(l.items, loggedChange{l.version, ch.ref()})
}

// reload drops all changes, since those in bulk were not logged.
func (l *changeLog) reload(*scratch) {
	l.version++
	l.floor, l.items = l.version, nil
}

func (l *changeLog) publish(v *View) { v.changes = *l }

// since returns the changes after a version, or false if the log no longer reaches that far back.
func (l *changeLog) since(version uint64) ([]loggedChange, bool) {
	if version < l.floor {
		return nil, false
	}
	at, _ := slices.BinarySearchFunc(l.items, version+1, func(c loggedChange, v uint64) int {
		if c.version < v {
			return -1
		}
		return 1
	})
	return l.items[at:], true
}
