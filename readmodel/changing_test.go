package readmodel

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// These tests fail when a change that touches several packages is left half done in this
// package.

// publicAs returns the member of the public JSON that shows a field of an entry, or "".
func publicAs(field string) string {
	others := map[string]string{
		"List": "", "EntryID": "_id", "ChatID": "id", "Reason": "descHtml", "Proofs": "proofsId", "ReportID": "reportId", "ReportedAt": "", "Revision": "",
	}
	if member, ok := others[field]; ok {
		return member
	}
	return strings.ToLower(field[:1]) + field[1:]
}

// TestEveryFieldOfAnEntry: a field of an entry decides the state that is stored, and the one member
// of the public JSON that it should.
func TestEveryFieldOfAnEntry(t *testing.T) {
	r := NewRenderer()
	for i := range reflect.TypeFor[events.Entry]().NumField() {
		field := reflect.TypeFor[events.Entry]().Field(i).Name
		member := publicAs(field)
		stored, shown := false, false
		for n := range 100 {
			entry, other := eventstest.AnyEntry().Example(n), eventstest.AnyEntry().Example(n+1)
			before := r.Render(1, entry)
			reflect.ValueOf(&entry).Elem().Field(i).Set(reflect.ValueOf(other).Field(i))
			after := r.Render(1, entry)
			stored = stored || before.hash != after.hash
			for _, name := range differing(t, before.row, after.row) {
				if shown = true; name != member {
					t.Fatalf("%s changes the member %s", field, name)
				}
			}
		}
		if !stored {
			t.Errorf("%s is not in the state that is stored", field)
		}
		if shown != (member != "") {
			t.Errorf("%s is shown: %v, meant to be the member %q", field, shown, member)
		}
	}
}

// differing are the members of the public JSON in which a and b differ.
func differing(t *testing.T, a, b *Row) (names []string) {
	t.Helper()
	var was, is map[string]json.RawMessage
	for row, to := range map[*Row]*map[string]json.RawMessage{a: &was, b: &is} {
		require.NoError(t, json.Unmarshal([]byte(row.JSON()), to))
	}
	for name := range is {
		if string(is[name]) != string(was[name]) {
			names = append(names, name)
		}
		delete(was, name)
	}
	for name := range was {
		names = append(names, name)
	}
	return names
}

// TestPublicEntry: PublicEntry has exactly the members of the JSON, in their order.
func TestPublicEntry(t *testing.T) {
	r := NewRenderer()
	rapid.Check(t, func(t *rapid.T) {
		row := r.Render(1, eventstest.AnyEntry().Draw(t, "entry")).row
		p, err := row.Public()
		require.NoError(t, err)
		if b, err := jsonv2.Marshal(p); err != nil || string(b) != row.JSON() {
			t.Fatalf("PublicEntry is %s, the row %s, %v", b, row.JSON(), err)
		}
	})
}

// TestQueriesAreDrawn: TestTwin asks with every field of a query, about entries and lists of all
// kinds.
func TestQueriesAreDrawn(t *testing.T) {
	var queries []ListQuery
	var entries []events.Entry
	for i := range 200 {
		queries = append(queries, rapid.Custom(someListQuery).Example(i))
		entries = append(entries, rapid.Custom(someEntry).Example(i).(events.Entry))
	}
	for what, unset := range map[string][]string{
		"someListQuery": eventstest.Unset(queries), "someEntry": eventstest.Unset(entries), "versioned": eventstest.Unset(versionedEntries()),
	} {
		if len(unset) > 0 {
			t.Errorf("%s never sets %v", what, unset)
		}
	}
	on := map[events.List]bool{}
	for _, e := range entries {
		on[e.List] = true
	}
	if len(on) != events.NumLists {
		t.Errorf("someEntry is only on %v", on)
	}
}

func versionedEntries() (all []events.Entry) {
	for _, d := range versioned() {
		if e, ok := d.(events.Entry); ok {
			all = append(all, e)
		}
	}
	return all
}
