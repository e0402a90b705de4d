package events_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// The document has the structure that AsyncAPI 3.0 prescribes, and its references lead somewhere.
func TestAsyncAPIDocument(t *testing.T) {
	doc := asyncAPI(t)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("asyncapi.json", zipped(t, "testdata/asyncapi-3.0.0.json.gz")))
	s, err := c.Compile("asyncapi.json")
	require.NoError(t, err)
	require.NoError(t, s.Validate(doc))
	walk(doc, func(ref string) {
		if at(doc, ref) == nil {
			t.Error("nothing is at", ref)
		}
	})
	delete(doc.(map[string]any), "info")
	if s.Validate(doc) == nil {
		t.Error("the schema takes a document without info: it checks nothing")
	}
}

// Every type has one message in one channel, whose payload pins that type, and whose subject
// is that of the type's data.
func TestAsyncAPIMessages(t *testing.T) {
	doc := asyncAPI(t)
	channel := map[string]string{}
	for _, c := range at(doc, "#/channels").(map[string]any) {
		for name := range c.(map[string]any)["messages"].(map[string]any) {
			channel[name], _ = c.(map[string]any)["address"].(string) // a reply has none
		}
	}
	found := map[string]bool{}
	for name, m := range at(doc, "#/components/messages").(map[string]any) {
		typ := m.(map[string]any)["name"].(string)
		if name == "rejected" || name == "validate" || name == "validation" {
			continue
		}
		found[typ] = true
		ref, _ := at(m, "#/payload/$ref").(string)
		if got := at(at(doc, ref), "#/properties/type/const"); got != typ {
			t.Errorf("%s has a payload of type %v", typ, got)
		}
		if want := addressOf(events.Type(typ)); channel[name] != want {
			t.Errorf("%s is on %q, want %q", typ, channel[name], want)
		}
	}
	types := events.Types()
	for _, typ := range types {
		if !found[string(typ)] {
			t.Error("no message for", typ)
		}
	}
	if len(found) != len(types) {
		t.Error("messages of no type:", slices.Sorted(maps.Keys(found)))
	}
}

func addressOf(t events.Type) string {
	switch t {
	case events.TypeViewsCounted:
		return "registry.views.{list}.{entryId}"
	case events.TypeDonationUpdated, events.TypeDonationRemoved:
		return "registry.donations.{donationId}"
	}
	return "registry.{list}.{entryId}"
}

// asyncAPI is the document as JSON would give it.
func asyncAPI(t *testing.T) any {
	t.Helper()
	b, err := yaml.YAMLToJSON(events.AsyncAPI())
	require.NoError(t, err)
	var doc any
	require.NoError(t, json.Unmarshal(b, &doc))
	return doc
}

func zipped(t *testing.T, file string) any {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(z)
	require.NoError(t, err)
	return v
}

// walk calls visit with every $ref below v.
func walk(v any, visit func(ref string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if ref, ok := e.(string); ok && k == "$ref" {
				visit(ref)
			}
			walk(e, visit)
		}
	case []any:
		for _, e := range v {
			walk(e, visit)
		}
	}
}

// at returns the value that a reference such as #/components/schemas leads to, or nil.
func at(v any, ref string) any {
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[step]
	}
	return v
}

// beyondSchema lists the rules that JSON Schema cannot express, each with an event that the
// schema takes and Decode refuses, and a part of Decode's error. There is no other
// disagreement, and none the other way round.
func beyondSchema() []struct{ rule, payload, problem string } {
	with := func(old, new string) string { return strings.Replace(entryJSON, old, new, 1) }
	views := func(n string) string { return strings.Replace(viewsJSON, `17`, n, 1) }
	return []struct{ rule, payload, problem string }{
		{"bytes of a text", with("**x**", strings.Repeat("ż", 10_001)), "longer than 20000 bytes"},
		{"a number without a point", views("17.0"), "must be a whole number written in digits alone"},
		{"a number without an exponent", views("1e3"), "must be a whole number written in digits alone"},
		{"a time's year in UTC", with("2026-11-20T09:00:00.5+01:00", "2201-01-01T02:00:00+01:00"), "year outside 1970 to 2200"},
		{"a media type's grammar", with("application/json", "application/json;;"), "must be JSON"},
		{"no NUL in unknown members", with(`"data"`, `"x":"\u0000","data"`), "contains NUL"},
		{"no member twice", with(`"data"`, `"id":"ev-1","data"`), "an object has the same member twice"},
		{"size of the message", with(`"data"`, `"x":"`+strings.Repeat("x", events.MaxPayload)+`","data"`), "longer than 262144 bytes"},
	}
}

func TestWhatJSONSchemaCannotExpress(t *testing.T) {
	s := eventSchema(t)
	for _, c := range beyondSchema() {
		if err := accepts(s, []byte(c.payload)); err != nil {
			t.Errorf("%s: the schema refuses too, take it off the list: %v", c.rule, err)
		}
		if _, err := events.Decode([]byte(c.payload)); err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v", c.rule, err)
		}
	}
}

// The schema accepts what Decode accepts, but for the listed rules: for the table of
// decode_test.go, and for valid events broken at random.
func TestSchemaAgreesOnTheTable(t *testing.T) {
	s, agreed := eventSchema(t), 0
	for _, group := range [][]edit{envelopeEdits(), entryEdits(), otherEdits(), chatIDEdits()} {
		for _, e := range group {
			payload := []byte(strings.Replace(e.from, e.old, e.new, 1))
			if !json.Valid(payload) {
				continue
			}
			agreed++
			if msg := disagreement(s, payload); msg != "" {
				t.Errorf("%s => %s: %s", clip(e.old), clip(e.new), msg)
			}
		}
	}
	if agreed < 300 {
		t.Error("only", agreed, "events of the table were compared")
	}
}

func TestSchemaAgreesOnBrokenEvents(t *testing.T) {
	s := eventSchema(t)
	rapid.Check(t, func(t *rapid.T) {
		payload, err := events.Encode(eventstest.AnyEvent().Draw(t, "event"))
		require.NoError(t, err)
		var doc map[string]any
		require.NoError(t, json.Unmarshal(payload, &doc))
		for range rapid.IntRange(0, 2).Draw(t, "breaks") {
			breakOne(t, doc)
		}
		broken, err := json.Marshal(doc)
		require.NoError(t, err)
		if msg := disagreement(s, broken); msg != "" {
			t.Fatalf("%s: %s", msg, broken)
		}
	})
}

// breakOne drops, replaces or adds one member, of the event, its data or its proofs.
func breakOne(t *rapid.T, doc map[string]any) {
	objects := []map[string]any{doc}
	if data, ok := doc["data"].(map[string]any); ok {
		objects = append(objects, data)
		if proofs, ok := data["proofs"].(map[string]any); ok {
			objects = append(objects, proofs)
		}
	}
	obj := objects[rapid.IntRange(0, len(objects)-1).Draw(t, "object")]
	names := append(slices.Sorted(maps.Keys(obj)), "x", "Data", "time", "datacontenttype", "proofs")
	name := rapid.SampledFrom(names).Draw(t, "member")
	if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
		delete(obj, name)
		return
	}
	obj[name] = rapid.SampledFrom(nasty()).Draw(t, "value")
}

func nasty() []any {
	out := []any{
		nil, true, false, 0, 1, -1, 1.5, json.Number("9007199254740991"), json.Number("9007199254740992"), json.Number("1e2"),
		[]any{}, map[string]any{}, map[string]any{"id": nil, "private": true}, map[string]any{"id": "p", "private": true},
		"", " ", "a", "a b", " a", "a\n", "a\u00a0", "\u0085a", "\ufeffa", "null", "<@1>", "<@!1>", "<@a>", "http://a/users/1", "a\x00b", "ż", "A.B", "1.0", "10", "-1", "PLN", "pending", "legit", "views",
		"application/json", "text/json", "text/plain", "application/x+json; charset=utf-8", "json",
		"1970-01-01T00:00:00Z", "2200-12-31t23:59:59.9z", "1969-06-01T00:00:00Z", "2201-06-01T00:00:00+05:00", "2026-02-30T00:00:00Z",
		strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("😀", 200), strings.Repeat("ż", 201),
		strings.Repeat("a", 256), strings.Repeat("a", 257), strings.Repeat("a", 2049), strings.Repeat("a", 20_000), strings.Repeat("a", 20_001),
	}
	for _, typ := range events.Types() {
		out = append(out, string(typ))
	}
	return out
}

// disagreement is empty when schema and Decode say the same, or differ by a listed rule.
func disagreement(s *jsonschema.Schema, payload []byte) string {
	_, decoded := events.Decode(payload)
	schema := accepts(s, payload)
	switch {
	case (decoded == nil) == (schema == nil):
		return ""
	case decoded == nil:
		return fmt.Sprintf("the schema refuses what Decode takes: %v", schema)
	}
	for _, c := range beyondSchema() {
		if strings.Contains(decoded.Error(), c.problem) {
			return ""
		}
	}
	return fmt.Sprintf("the schema takes what Decode refuses: %v", decoded)
}

func accepts(s *jsonschema.Schema, payload []byte) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(payload)))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// eventSchema is the schema of any event in asyncapi.yaml.
func eventSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	require.NoError(t, c.AddResource("asyncapi.json", asyncAPI(t)))
	s, err := c.Compile("asyncapi.json#/components/schemas/event")
	require.NoError(t, err)
	return s
}
