package httpapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// These tests fail when a change that touches several packages is left half done in this package.

// The document describes each member of an entry, and an answer of the tests has it: so its schema is put to the test.
func TestOpenAPINamesEveryMember(t *testing.T) {
	f := serve(t)
	schema, _ := f.contract.node("/components/schemas/ListEntry")
	documented := slices.Sorted(maps.Keys(schema["properties"].(map[string]any)))
	var public, always []string
	for i := range reflect.TypeFor[readmodel.PublicEntry]().NumField() {
		name, option, _ := strings.Cut(reflect.TypeFor[readmodel.PublicEntry]().Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if public = append(public, name); option == "" {
			always = append(always, name)
		}
	}
	shown := map[string]bool{}
	for _, l := range events.Lists() {
		var page struct{ Data []map[string]any }
		require.NoError(t, json.Unmarshal([]byte(f.get(t, "/api/"+string(l)).body), &page))
		if len(page.Data) == 0 {
			t.Errorf("apitest.People has nobody on %s", l)
		}
		for _, entry := range page.Data {
			for name := range entry {
				shown[name] = true
			}
		}
	}
	slices.Sort(public)
	slices.Sort(always)
	if !slices.Equal(public, documented) {
		t.Errorf("PublicEntry has %q, documented are %q", public, documented)
	}
	if got := slices.Sorted(maps.Keys(shown)); !slices.Equal(got, documented) {
		t.Errorf("entries of apitest.People have %q, documented are %q", got, documented)
	}
	var required []string
	for _, name := range schema["required"].([]any) {
		required = append(required, name.(string))
	}
	if slices.Sort(required); !slices.Equal(required, always) {
		t.Errorf("required are %q, always there are %q", required, always)
	}
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// Every path of the API has an example, whose answer is as documented, and is named in CONTRACT.md.
func TestEveryPathIsAnswered(t *testing.T) {
	f := serve(t)
	page, err := os.ReadFile("CONTRACT.md")
	require.NoError(t, err)
	for path := range f.contract.doc["paths"].(map[string]any) {
		if !bytes.Contains(page, []byte(path)) {
			t.Errorf("CONTRACT.md does not name %s", path)
		}
		op, _ := f.contract.node("/paths/" + strings.ReplaceAll(path, "/", "~1") + "/get")
		examples, _ := op["x-examples"].([]any)
		if len(examples) == 0 && strings.HasPrefix(path, "/api/") {
			t.Errorf("%s has no x-examples", path)
		}
		for _, e := range examples {
			target := e.(map[string]any)["path"].(string)
			if a := f.get(t, target); a.status >= 500 || a.status == http.StatusBadRequest {
				t.Errorf("%s: %d %s", target, a.status, a.body)
			}
		}
	}
}

// listParams returns the parameters of a list, in the order in which parseList reads them.
func listParams(t *testing.T) (names []string) {
	source, err := os.ReadFile("params.go")
	require.NoError(t, err)
	_, body, _ := strings.Cut(string(source), "\nfunc parseList(")
	body, _, _ = strings.Cut(body, "\n}")
	for _, call := range regexp.MustCompile(`p\.\w+\("(\w+)"`).FindAllStringSubmatch(body, -1) {
		names = append(names, call[1])
	}
	require.NotEmpty(t, names)
	return names
}
