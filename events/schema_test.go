package events_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// beyondSchema lists the rules that JSON Schema cannot express, each with an event that the
// schema takes and Decode refuses, and the end of Decode's error. There is no other
// disagreement, and none the other way round.
func beyondSchema() []struct{ rule, payload, problem string } {
	with := func(old, new string) string { return strings.Replace(entryJSON, old, new, 1) }
	views := func(n string) string { return strings.Replace(viewsJSON, `17`, n, 1) }
	return []struct{ rule, payload, problem string }{
		{"bytes of a text", with("**x**", strings.Repeat("ż", 10_001)), "longer than 20000 bytes"},
		{"a number without a point", views("17.0"), "must be a plain whole number from 0 to 9007199254740991"},
		{"a number without an exponent", views("1e3"), "must be a plain whole number from 0 to 9007199254740991"},
		{"a number without a sign", views("-0"), "must be a plain whole number from 0 to 9007199254740991"},
		{"a time's year in UTC", with("2026-11-20T09:00:00.5+01:00", "2201-01-01T02:00:00+01:00"), "year outside 1970 to 2200"},
		{"no leap second", with("2026-11-20T09:00:00.5+01:00", "2016-12-31T23:59:60Z"), "not an RFC 3339 time"},
		{"a media type's grammar", with("application/json", "application/json;;"), "must be JSON"},
		{"no NUL in unknown members", with(`"data"`, `"x":"\u0000","data"`), "contains NUL"},
		{"no member twice", with(`"data"`, `"id":"ev-1","data"`), "an object has the same member twice"},
		{"depth", with(`"data"`, `"x":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`,"data"`), "nested deeper than 64 levels"},
		{"size of the message", with(`"data"`, `"x":"`+strings.Repeat("x", events.MaxPayload)+`","data"`), "longer than 262144 bytes"},
	}
}

func TestWhatJSONSchemaCannotExpress(t *testing.T) {
	s := eventSchema(t)
	for _, c := range beyondSchema() {
		if err := accepts(s, []byte(c.payload)); err != nil {
			t.Errorf("%s: the schema refuses too, take it off the list: %v", c.rule, err)
		}
		if _, err := events.Decode([]byte(c.payload)); err == nil || !strings.HasSuffix(err.Error(), c.problem) {
			t.Errorf("%s: %v", c.rule, err)
		}
	}
}

// The schema accepts what Decode accepts, but for the listed rules: for the table of
// decode_test.go, and for valid events broken at random.
func TestSchemaAgreesOnTheTable(t *testing.T) {
	s, agreed := eventSchema(t), 0
	for _, group := range [][]edit{envelopeEdits(), entryEdits(), otherEdits()} {
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
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(payload, &doc); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 2).Draw(t, "breaks") {
			breakOne(t, doc)
		}
		broken, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
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
	names := append(keys(obj), "x", "Data", "time", "datacontenttype", "proofs")
	name := rapid.SampledFrom(names).Draw(t, "member")
	if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
		delete(obj, name)
		return
	}
	obj[name] = rapid.SampledFrom(nasty()).Draw(t, "value")
}

func keys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for _, k := range []string{"specversion", "id", "source", "type", "data", "list", "entryId", "chatId", "name", "reason",
		"verified", "proofs", "private", "reportId", "reportedAt", "views", "donationId", "status", "amount", "currency",
		"confirmations", "requiredConfirmations", "createdAt", "updatedAt"} {
		if _, there := m[k]; there {
			out = append(out, k)
		}
	}
	return out
}

func nasty() []any {
	out := []any{
		nil, true, false, 0, 1, -1, 1.5, json.Number("9007199254740991"), json.Number("9007199254740992"), json.Number("1e2"),
		[]any{}, map[string]any{}, map[string]any{"id": nil, "private": true}, map[string]any{"id": "p", "private": true},
		"", " ", "a", "a b", " a", "a\n", "a\x00b", "ż", "A.B", "1.0", "10", "-1", "PLN", "pending", "legit", "views",
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
		if strings.HasSuffix(decoded.Error(), c.problem) {
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

func eventSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	for name, doc := range schemaFiles(t) {
		if err := c.AddResource("urn:registry:schema:"+name, doc); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile("urn:registry:schema:event")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
