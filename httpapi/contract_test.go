package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/klauspost/compress/gzip"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
)

// contract holds openapi.yaml against the answers of the tests: a status, header, content type
// or body that the document does not describe fails the test that got it.
type contract struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex // guards the compiler
}

const contractURL = "https://registry.example.org/openapi.json"

// readContract reads the document once for all tests: there are hundreds of servers in them.
var readContract = sync.OnceValues(func() (*contract, error) {
	text, err := yaml.YAMLToJSON([]byte(openAPIFile))
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := &contract{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler()}
	return c, c.compiler.AddResource(contractURL, doc)
})

func newContract(t testing.TB) *contract {
	t.Helper()
	c, err := readContract()
	require.NoError(t, err)
	return c
}

// node is the part of the document at a JSON pointer, references followed, and where it is.
func (c *contract) node(pointer string) (map[string]any, string) {
	var at any = c.doc
	for _, key := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, pointer
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
	}
	m, _ := at.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return c.node(strings.TrimPrefix(ref, "#"))
	}
	return m, pointer
}

func (c *contract) valid(t testing.TB, pointer string, v any) {
	t.Helper()
	c.mu.Lock()
	schema, err := c.compiler.Compile(contractURL + "#" + pointer)
	c.mu.Unlock()
	if err != nil {
		t.Fatalf("openapi.yaml, %s: %v", pointer, err)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("openapi.yaml, %s: %v", pointer, err)
	}
}

// pathOf is the documented path that a request's path matches, or "".
func (c *contract) pathOf(path string) string {
	paths := c.doc["paths"].(map[string]any)
	if _, ok := paths[path]; ok {
		return path
	}
	for _, template := range []string{"/api/chat/avatar/{chatUserId}", "/api/ranges/{prefix}", "/api/changes/{epoch}", "/proofs/{id}"} {
		prefix, end, _ := strings.Cut(template, "{")
		_, end, _ = strings.Cut(end, "}")
		rest, ok := strings.CutPrefix(path, prefix)
		if rest, ends := strings.CutSuffix(rest, end); ok && ends && rest != "" && !strings.Contains(rest, "/") {
			return template
		}
	}
	return ""
}

// check fails the test where the answer is not as documented.
func (c *contract) check(t testing.TB, method, path string, a *response) {
	t.Helper()
	at := "/components/responses/NotFound"
	if known := c.pathOf(path); known != "" && !(a.status == http.StatusNotFound && strings.HasPrefix(path, "/proofs/")) {
		op := "get"
		if method == http.MethodOptions {
			op = "options"
		}
		at = "/paths/" + strings.ReplaceAll(known, "/", "~1") + "/" + op + "/responses/"
		if response, _ := c.node(at + a.statusText()); response != nil {
			at += a.statusText()
		} else {
			at += "default"
		}
	} else if a.status != http.StatusNotFound {
		t.Errorf("%s %s: status %d, but the path is not in openapi.yaml", method, path, a.status)
		return
	}
	response, at := c.node(at)
	if response == nil {
		t.Errorf("%s %s: status %d is not in openapi.yaml", method, path, a.status)
		return
	}
	c.checkHeaders(t, a, at)
	c.checkBody(t, method, a, response, at)
}

func (c *contract) checkHeaders(t testing.TB, a *response, at string) {
	t.Helper()
	headers, _ := c.node(at + "/headers")
	undocumented := a.header.Clone()
	for _, name := range []string{"Date", "Content-Length", "Content-Type"} {
		undocumented.Del(name)
	}
	for name := range headers {
		header, where := c.node(at + "/headers/" + name)
		values := a.header.Values(name)
		if len(values) > 1 || len(values) == 0 && header["required"] == true {
			t.Errorf("status %d: header %s: %q", a.status, name, values)
		}
		for _, v := range values {
			c.valid(t, where+"/schema", v)
		}
		undocumented.Del(name)
	}
	for name := range undocumented {
		t.Errorf("status %d: header %s is not in openapi.yaml", a.status, name)
	}
}

func (c *contract) checkBody(t testing.TB, method string, a *response, response map[string]any, at string) {
	t.Helper()
	content, _ := response["content"].(map[string]any)
	if len(content) == 0 || method == http.MethodHead {
		if len(a.raw) > 0 {
			t.Errorf("status %d: a body of %d bytes where none is documented", a.status, len(a.raw))
		}
		return
	}
	kind := strings.TrimSuffix(a.header.Get("Content-Type"), "; charset=utf-8")
	if _, ok := content[kind]; !ok {
		t.Errorf("status %d: content type %q is not in openapi.yaml", a.status, a.header.Get("Content-Type"))
		return
	}
	if kind != "application/json" {
		return
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(a.body))
	if err != nil {
		t.Errorf("status %d: %v in %q", a.status, err, a.body)
		return
	}
	where := at + "/content/application~1json/schema"
	if schema, _ := response["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any); schema["$ref"] != nil {
		where = strings.TrimPrefix(schema["$ref"].(string), "#")
	}
	c.valid(t, where, v)
}

// decoded is a body without its content coding.
func decoded(t testing.TB, coding string, raw []byte) string {
	t.Helper()
	var r io.Reader = bytes.NewReader(raw)
	if coding == "gzip" {
		z, err := gzip.NewReader(r)
		require.NoError(t, err)
		r = z
	}
	body, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(body)
}

// The document and the router name the same paths, and the document speaks of everything twice
// over: each operation has a summary, each parameter and header a description.
func TestOpenAPINamesEveryRoute(t *testing.T) {
	f := serve(t)
	var routed, documented []string
	for _, r := range f.public.engine.Routes() {
		path := strings.NewReplacer(":chatUserId", "{chatUserId}", ":prefix", "{prefix}", ":epoch", "{epoch}", ":id", "{id}").Replace(r.Path)
		routed = append(routed, path)
		if r.Method == http.MethodHead && allowed(r.Path) != "GET" {
			routed = routed[:len(routed)-1]
		} else if r.Method != http.MethodGet {
			t.Errorf("%s %s is routed", r.Method, r.Path)
		}
	}
	for path := range f.contract.doc["paths"].(map[string]any) {
		documented = append(documented, path)
	}
	slices.Sort(routed)
	slices.Sort(documented)
	if !slices.Equal(routed, documented) {
		t.Errorf("routes %q, documented %q", routed, documented)
	}
	for _, part := range []string{"parameters", "headers"} {
		nodes, _ := f.contract.node("/components/" + part)
		for name, n := range nodes {
			if n.(map[string]any)["description"] == nil {
				t.Errorf("%s %s has no description", part, name)
			}
		}
	}
}

// queryParameters are the parameters of a path's query string, in the order of the document.
func (c *contract) queryParameters(path string) (names []string, schemas map[string]map[string]any) {
	op, _ := c.node("/paths/" + strings.ReplaceAll(path, "/", "~1") + "/get")
	parameters, _ := op["parameters"].([]any)
	schemas = map[string]map[string]any{}
	for _, p := range parameters {
		m := p.(map[string]any)
		if ref, ok := m["$ref"].(string); ok {
			m, _ = c.node(strings.TrimPrefix(ref, "#"))
		}
		if m["in"] == "query" {
			name := m["name"].(string)
			names, schemas[name] = append(names, name), m["schema"].(map[string]any)
		}
	}
	return names, schemas
}

// The parameters that the parser knows are those that the document names, in the same order.
func TestOpenAPINamesEveryParameter(t *testing.T) {
	c := newContract(t)
	names := func(path string) []string { names, _ := c.queryParameters(path); return names }
	want := listParams(t)
	for _, l := range events.Lists() {
		path := "/api/" + string(l)
		if got := names(path); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := names("/api/check"); !slices.Equal(got, []string{"id", "search"}) {
		t.Errorf("check: %q", got)
	}
}

// The document gives the bounds that the parser has.
func TestOpenAPIGivesEveryBound(t *testing.T) {
	c := newContract(t)
	text := func(most int) map[string]any { return map[string]any{"type": "string", "maxLength": most} }
	word := func(words []string) map[string]any {
		return map[string]any{"type": "string", "enum": words, "default": words[0]}
	}
	number := func(least, most, usual int) map[string]any {
		return map[string]any{"type": "integer", "minimum": least, "maximum": most, "default": usual}
	}
	sequence := map[string]any{"type": "integer", "format": "int64", "minimum": 0}
	pasted, statuses, proofs := text(bounds.MaxValue), word(bounds.Statuses()), word(bounds.Proofs())
	list := map[string]map[string]any{
		"search": text(bounds.MaxSearch), "id": pasted, "sort": word(bounds.Sorts()), "status": statuses, "proofs": proofs,
		"skip": number(0, bounds.MaxSkip, 0), "limit": number(1, bounds.MaxLimit, bounds.DefaultLimit),
	}
	for path, want := range map[string]map[string]map[string]any{
		"/api/scammers": list, "/api/servers": list, "/api/legit": list,
		"/api/check": {"id": pasted, "search": pasted},
		"/api/check/batch": {"ids": {"type": "array", "minItems": 1, "maxItems": bounds.MaxBatch,
			"items": map[string]any{"type": "string", "minLength": 1, "maxLength": bounds.MaxValue}}},
		"/api/search": {
			"q": text(bounds.MaxSearch), "list": word(bounds.Lists()), "status": statuses, "proofs": proofs,
			"skip": number(0, bounds.MaxRankedSkip, 0), "limit": number(1, bounds.MaxLimit, bounds.DefaultRankedLimit),
		},
		"/api/changes/{epoch}": {
			"since": sequence, "limit": number(1, bounds.MaxChanges, bounds.DefaultChanges), "wait": number(0, bounds.MaxWait, 0),
		},
	} {
		if _, got := c.queryParameters(path); jsonText(t, got) != jsonText(t, want) {
			t.Errorf("%s:\n%s, want\n%s", path, jsonText(t, got), jsonText(t, want))
		}
	}
}
