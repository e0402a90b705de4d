package events_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// These tests fail when a change that events/CHANGING.md describes is left half done in this
// package.

// schemaOf names the schema of a type's data.
func schemaOf(t events.Type) string {
	switch t {
	case events.TypeDelisted:
		return "delisting"
	case events.TypeViewsCounted:
		return "views"
	case events.TypeDonationUpdated:
		return "donation"
	case events.TypeDonationRemoved:
		return "removal"
	}
	return "entry"
}

// fullest returns, for each type, the drawn event with the most members.
func fullest(t *testing.T) map[events.Type][]byte {
	t.Helper()
	best := map[events.Type][]byte{}
	most := map[events.Type]int{}
	for i := range 400 {
		e := eventstest.AnyEvent().Example(i)
		payload, err := events.Encode(e)
		require.NoError(t, err)
		if n := len(members(payload)); n > most[e.Type] {
			best[e.Type], most[e.Type] = payload, n
		}
	}
	return best
}

// members are the names in the data of an event, and those in objects inside it: proofs, proofs.id.
func members(payload []byte) []string {
	var doc map[string]any
	_ = json.Unmarshal(payload, &doc)
	return names(doc["data"], "")
}

func names(v any, prefix string) (all []string) {
	m, _ := v.(map[string]any)
	for name, inside := range m {
		all = append(append(all, prefix+name), names(inside, prefix+name+".")...)
	}
	slices.Sort(all)
	return all
}

// properties are the names in a schema as members has them.
func properties(schema any, prefix string) (all []string) {
	m, _ := schema.(map[string]any)
	inside, _ := m["properties"].(map[string]any)
	for name, p := range inside {
		all = append(append(all, prefix+name), properties(p, prefix+name+".")...)
	}
	slices.Sort(all)
	return all
}

// What Encode writes is in the schema, and what the schema has is written. The contract names each
// of it, and TestOldEvents will see to it that later versions read it.
func TestSchemasNameEveryMember(t *testing.T) {
	contract := page(t, "CONTRACT.md")
	_, data, _ := strings.Cut(contract, "\n## Data\n")
	data, _, _ = strings.Cut(data, "\n## ")
	old := oldMembers(t)
	for typ, payload := range fullest(t) {
		got, want := members(payload), properties(schemaFiles(t)[schemaOf(typ)], "")
		if !slices.Equal(got, want) {
			t.Errorf("%s: Encode writes %v, the schema has %v", typ, got, want)
		}
		for _, name := range want {
			if !old[typ][name] {
				t.Errorf("no %s in testdata/old has %s", typ, name)
			}
			if name, _, _ = strings.Cut(name, "."); !strings.Contains(data, "`"+name+"`") {
				t.Errorf("CONTRACT.md#data does not name %s", name)
			}
		}
	}
}

// oldMembers are the members that the events of testdata/old have, by type.
func oldMembers(t *testing.T) map[events.Type]map[string]bool {
	t.Helper()
	files, err := filepath.Glob("testdata/old/*.ndjson")
	require.NoError(t, err)
	have := map[events.Type]map[string]bool{}
	for _, typ := range events.Types() {
		have[typ] = map[string]bool{}
	}
	for _, file := range files {
		for line := range strings.Lines(page(t, file)) {
			e, err := events.Decode([]byte(line))
			if err != nil {
				t.Fatal(file, err)
			}
			for _, name := range members([]byte(line)) {
				have[e.Type][name] = true
			}
		}
	}
	// An entry is the same in each of its three types.
	for _, typ := range []events.Type{events.TypeVerified, events.TypeAmended} {
		maps.Copy(have[events.TypeListed], have[typ])
	}
	have[events.TypeVerified], have[events.TypeAmended] = have[events.TypeListed], have[events.TypeListed]
	return have
}

// Schema and Decode agree when any one member is left out, is anything else, or is as long as it
// may be and longer.
func TestSchemaAgreesOnEveryMember(t *testing.T) {
	s := eventSchema(t)
	for typ, payload := range fullest(t) {
		schema := schemaFiles(t)[schemaOf(typ)]
		for _, name := range members(payload) {
			values := append(nasty(), dropped{})
			if n, ok := at(schema, "#/properties/"+strings.ReplaceAll(name, ".", "/properties/")+"/maxLength").(float64); ok {
				for _, s := range []string{"x", "😀"} {
					values = append(values, strings.Repeat(s, int(n)), strings.Repeat(s, int(n)+1))
				}
			}
			for _, v := range values {
				if msg := disagreement(s, with(payload, name, v)); msg != "" {
					t.Errorf("%s, %s is %.60v: %s", typ, name, v, msg)
				}
			}
		}
	}
}

// dropped stands for no member at all.
type dropped struct{}

// with returns the event with another value for one member of its data.
func with(payload []byte, name string, v any) []byte {
	var doc map[string]any
	_ = json.Unmarshal(payload, &doc)
	at := doc["data"].(map[string]any)
	if outer, inner, nested := strings.Cut(name, "."); nested {
		at, name = at[outer].(map[string]any), inner
	}
	if at[name] = v; v == any(dropped{}) {
		delete(at, name)
	}
	b, _ := json.Marshal(doc)
	return b
}

// A list that exists is in every schema, in asyncapi.yaml and in the pages that say which lists
// there are.
func TestListsAreDescribed(t *testing.T) {
	var want []any
	for _, l := range events.Lists() {
		want = append(want, string(l))
		for _, file := range []string{"CONTRACT.md", "../httpapi/CONTRACT.md", "../README.md"} {
			if !strings.Contains(page(t, file), "`"+string(l)+"`") {
				t.Errorf("%s does not name the list %s", file, l)
			}
		}
	}
	got := map[string]any{"asyncapi.yaml": at(asyncAPI(t), "#/components/parameters/list/enum")}
	for name, schema := range schemaFiles(t) {
		if list := at(schema, "#/properties/list/enum"); list != nil {
			got[name+".json"] = list
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if list, _ := got[name].([]any); !slices.Equal(list, want) {
			t.Errorf("%s has the lists %v, not %v", name, list, want)
		}
	}
}

func page(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// TestEventsVersion fails when schemas of events change and info.version of asyncapi.yaml does not.
// A change that backends need not notice raises the second number, any other the first
// (events/CHANGING.md#versions).
func TestEventsVersion(t *testing.T) {
	version := at(asyncAPI(t), "#/info/version")
	files := schemaFiles(t)
	eventstest.WithoutTexts(files)
	schemas, err := json.Marshal(files)
	require.NoError(t, err)
	sum := sha256.Sum256(schemas)
	const want = "3.1.0 fd8bdc73db0978b8"
	if got := fmt.Sprintf("%s %x", version, sum[:8]); got != want {
		t.Errorf("events are %q, were %q: raise info.version of asyncapi.yaml and write the new value here", got, want)
	}
}
