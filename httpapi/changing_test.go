package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// These tests fail when a change that touches several packages is left half done in this
// package.

// The document describes each member of an entry, and an answer of the tests has it: so its schema
// is put to the test.
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

// The document names each list where it says which list a group of a check is of.
func TestOpenAPINamesEveryList(t *testing.T) {
	c := newContract(t)
	var want []any
	for _, l := range events.Lists() {
		want = append(want, string(l))
	}
	if kind, _ := c.node("/components/schemas/CheckResult/properties/kind"); !slices.Equal(kind["enum"].([]any), want) {
		t.Errorf("kinds %q, want %q", kind["enum"], want)
	}
	results, _ := c.node("/components/schemas/CheckBody/properties/results")
	if most, _ := results["maxItems"].(json.Number); most.String() != jsonText(t, len(want)) {
		t.Errorf("at most %v groups, want %d", results["maxItems"], len(want))
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

// Each parameter of a list is read: what is no text is refused in its name.
func TestEveryListParameterIsRead(t *testing.T) {
	for _, name := range listParams(t) {
		_, err := parseList(events.Scammers, name+"=%FF")
		if got := wrong(t, err); got != name {
			t.Errorf("%s=%%FF: error of %q", name, got)
		}
	}
}

// A page of a list keeps what was asked for in its links to other pages and in its form.
func TestPagesKeepEveryListParameter(t *testing.T) {
	f := serveSite(t)
	for i := range 3 {
		f.apply(events.Entry{List: events.Scammers, EntryID: strings.Repeat("k", i+1), ChatID: "88", Name: "wszędzie", Verified: true,
			Proofs: events.Proofs{Private: true}, ReportID: "R", ReportedAt: asOf()})
	}
	// What to ask each parameter for so that these three are found, and what a link says then.
	asked := map[string]string{"search": "search=wszędzie", "id": "id=88", "sort": "sort=oldest", "status": "status=verified", "proofs": "proofs=private"}
	for _, name := range listParams(t) {
		query := asked[name]
		switch {
		case name == "skip" || name == "limit": // these turn the page
		case query == "":
			t.Errorf("this test does not ask for %s", name)
		default:
			a := f.fetch(t, http.MethodGet, "/scammers?limit=1&"+query)
			_, link, _ := strings.Cut(a.body, `rel="next" href="`)
			link, _, _ = strings.Cut(link, `"`)
			kept := strings.ReplaceAll(query, "ę", "%C4%99")
			if !strings.Contains(link, kept) {
				t.Errorf("/scammers?%s: the next page is %q", query, link)
			}
			if name != "id" && !strings.Contains(a.body, `name="`+name+`"`) {
				t.Errorf("the form does not ask for %s", name)
			}
			if name != "id" && name != "sort" && !strings.Contains(a.body, "Wyczyść wyszukiwanie i filtry") {
				t.Errorf("the page does not offer to clear %s", name)
			}
		}
	}
}

// TestAPIVersion fails when openapi.yaml describes another API. A change for which a client must
// change raises info.version; what only adds does not.
func TestAPIVersion(t *testing.T) {
	text, err := yaml.YAMLToJSON([]byte(openAPIFile))
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(text, &doc))
	version := doc["info"].(map[string]any)["version"].(string)
	for name := range doc {
		if name != "paths" && name != "components" {
			delete(doc, name)
		}
	}
	eventstest.WithoutTexts(doc)
	sum := sha256.Sum256([]byte(jsonText(t, doc)))
	const want = "1.0.0 3bf5f21b60bff555"
	if got := version + " " + hex.EncodeToString(sum[:8]); got != want {
		t.Errorf("the API is %q, was %q: raise info.version of openapi.yaml if a client must change, and write the new value here", got, want)
	}
}
