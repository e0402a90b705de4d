package snapshots

import (
	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// metaBucket holds metaKey alone. It is apart from the records so that walking a table meets
// nothing else.
const (
	metaBucket = "meta"
	metaKey    = "meta"
)

// entriesPrefix and a list are the name of a table of entries.
const entriesPrefix = "entries-"

// table is a bucket of records: one kind, and one list where the kind has lists.
type table struct {
	name string
	kind readmodel.Kind
	list events.List
}

// tables returns every table in the order in which they are written and loaded.
func tables() []table {
	var ts []table
	for _, l := range events.Lists() {
		ts = append(ts,
			table{entriesPrefix + string(l), readmodel.KindEntry, l},
			table{"views-" + string(l), readmodel.KindViews, l})
	}
	return append(ts, table{"donations", readmodel.KindDonation, ""})
}

// key is the key of the record named id.
func (t table) key(id []byte) readmodel.Key {
	return readmodel.Key{Kind: t.kind, List: t.list, ID: string(id)}
}

// holds says whether k belongs into t.
func (t table) holds(k readmodel.Key) bool { return t.kind == k.Kind && t.list == k.List }
