package events_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"example.org/registry/events"
)

var update = flag.Bool("update", false, "rewrite the generated part of asyncapi.yaml")

// The document has the structure that AsyncAPI 3.0 prescribes, and its references lead somewhere.
func TestAsyncAPIDocument(t *testing.T) {
	doc := asyncAPI(t)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("asyncapi.json", zipped(t, "testdata/asyncapi-3.0.0.json.gz")); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("asyncapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(doc); err != nil {
		t.Error(err)
	}
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

// The schemas inside the document are the files in schemas/.
func TestAsyncAPISchemas(t *testing.T) {
	want := map[string]any{}
	for name := range schemaFiles(t) {
		want[name] = inDocument(schemaFiles(t)[name])
	}
	if *update {
		writeSchemas(t, want)
	}
	got := at(asyncAPI(t), "#/components/schemas")
	if !reflect.DeepEqual(got, any(want)) {
		t.Error("components.schemas of asyncapi.yaml are not schemas/*.json; rewrite them with -update")
	}
}

// Every type has one message in one channel, whose payload pins that type, and whose subject
// is that of the type's data.
func TestAsyncAPIMessages(t *testing.T) {
	doc := asyncAPI(t)
	channel := map[string]string{}
	for _, c := range at(doc, "#/channels").(map[string]any) {
		for name := range c.(map[string]any)["messages"].(map[string]any) {
			channel[name] = c.(map[string]any)["address"].(string)
		}
	}
	found := map[string]bool{}
	for name, m := range at(doc, "#/components/messages").(map[string]any) {
		typ := m.(map[string]any)["name"].(string)
		if name == "rejected" {
			continue
		}
		found[typ] = true
		pinned := m.(map[string]any)["payload"].(map[string]any)["allOf"].([]any)[1]
		if got := at(pinned, "#/properties/type/const"); got != typ {
			t.Errorf("%s has a payload of type %v", typ, got)
		}
		if want := addressOf(events.Type(typ)); channel[name] != want {
			t.Errorf("%s is on %q, want %q", typ, channel[name], want)
		}
		tombstone := strings.HasSuffix(m.(map[string]any)["traits"].([]any)[0].(map[string]any)["$ref"].(string), "tombstone")
		if tombstone != events.Type(typ).Tombstone() {
			t.Errorf("%s: tombstone is %v in the document", typ, tombstone)
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

// schemaFiles are the schemas by name, without .json.
func schemaFiles(t *testing.T) map[string]any {
	t.Helper()
	files, err := fs.Glob(events.Schemas(), "*.json")
	if err != nil || len(files) < 7 {
		t.Fatal(files, err)
	}
	out := map[string]any{}
	for _, name := range files {
		b, err := fs.ReadFile(events.Schemas(), name)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(name, err)
		}
		out[strings.TrimSuffix(name, path.Ext(name))] = v
	}
	return out
}

// inDocument is a schema as it stands in the document: without identity of its own, its
// references within the document. AsyncAPI's own dialect takes everything else unchanged.
func inDocument(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if k == "$schema" || k == "$id" {
				continue
			}
			if ref, ok := e.(string); ok && k == "$ref" {
				e = strings.Replace(ref, "urn:registry:schema:", "#/components/schemas/", 1)
			}
			out[k] = inDocument(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = inDocument(v[i])
		}
		return out
	}
	return v
}

// writeSchemas replaces what follows the marker, keeping the members' order of the files.
func writeSchemas(t *testing.T, want map[string]any) {
	const marker = "  schemas:"
	head, _, ok := strings.Cut(string(events.AsyncAPI()), "\n"+marker)
	if !ok {
		t.Fatal("no marker in asyncapi.yaml")
	}
	var out bytes.Buffer
	out.WriteString(head + "\n" + marker + "\n")
	for _, name := range slices.Sorted(maps.Keys(want)) {
		b, err := fs.ReadFile(events.Schemas(), name+".json")
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.JSONToYAML(b)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("    " + name + ":\n")
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "$schema:") || strings.HasPrefix(line, "$id:") {
				continue
			}
			line = strings.Replace(line, `urn:registry:schema:`, `'#/components/schemas/`, 1)
			if strings.Contains(line, "'#/") {
				line = strings.TrimRight(line, "\n") + "'\n"
			}
			out.WriteString("      " + line)
		}
	}
	if err := os.WriteFile("asyncapi.yaml", out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Fatal("asyncapi.yaml is rewritten; run the tests again")
}

// asyncAPI is the document as JSON would give it.
func asyncAPI(t *testing.T) any {
	t.Helper()
	b, err := yaml.YAMLToJSON(events.AsyncAPI())
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func zipped(t *testing.T, file string) any {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(z)
	if err != nil {
		t.Fatal(err)
	}
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

// at is what a reference such as #/components/schemas leads to; nil for nothing.
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
