package apidoc

import (
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// own is the document of the registry itself.
func own(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("../openapi.yaml")
	require.NoError(t, err)
	return text
}

func operations(doc *Doc) map[string]Operation {
	all := map[string]Operation{}
	for _, g := range doc.Groups {
		for _, o := range g.Operations {
			all[o.Path] = o
		}
	}
	return all
}

// Nothing of the document is lost: a plain reading finds no more paths, parameters, responses and
// schemas.
func TestReadsTheWholeDocument(t *testing.T) {
	doc, err := Read(own(t))
	require.NoError(t, err)
	var plain struct {
		Paths      map[string]map[string]map[string]any
		Components struct{ Schemas map[string]any }
	}
	require.NoError(t, yaml.Unmarshal(own(t), &plain))
	all := operations(doc)
	for path, methods := range plain.Paths {
		o, get := all[path], methods["get"]
		parameters, _ := get["parameters"].([]any)
		if o.Summary != get["summary"] || len(o.Parameters) != len(parameters) || len(o.Answers) != len(get["responses"].(map[string]any)) {
			t.Errorf("%s: %+v", path, o)
		}
		for _, a := range o.Answers {
			if a.About == "" {
				t.Errorf("%s: %s says nothing", path, a.Status)
			}
		}
		for _, p := range o.Parameters {
			if p.Name == "" || p.About == "" || p.Bounds == "" {
				t.Errorf("%s: %+v", path, p)
			}
		}
	}
	if len(all) != len(plain.Paths) || len(doc.Schemas) != len(plain.Components.Schemas) || len(all) < 10 {
		t.Errorf("%d operations, %d schemas", len(all), len(doc.Schemas))
	}
}

// What every answer has is said once, and an answer's own headers remain.
func TestHeadersOfEveryAnswer(t *testing.T) {
	doc, err := Read(own(t))
	require.NoError(t, err)
	if want := []string{"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "X-Content-Type-Options", "X-Robots-Tag", "Cache-Control"}; !slices.Equal(doc.Headers, want) {
		t.Errorf("%q", doc.Headers)
	}
	for _, a := range operations(doc)["/api/scammers"].Answers {
		if a.Status == "405" && !slices.Equal(a.Headers, []string{"Registry-Error", "Allow"}) {
			t.Errorf("405: %q", a.Headers)
		}
	}
}

func TestWords(t *testing.T) {
	doc, err := Read(own(t))
	require.NoError(t, err)
	o := operations(doc)["/api/scammers"]
	bounds := map[string]string{}
	for _, p := range o.Parameters {
		bounds[p.Name] = p.Bounds
	}
	for name, want := range map[string]string{
		"search": "tekst, najwyżej 100 znaków", "skip": "liczba całkowita, 0–20000, domyślnie 0",
		"proofs": "jedna z wartości: all, with, private, domyślnie all",
	} {
		if bounds[name] != want {
			t.Errorf("%s: %q, want %q", name, bounds[name], want)
		}
	}
	form := map[string]Field{}
	for _, f := range o.Form {
		form[f.Name] = f
	}
	if f := form["limit"]; !f.Number || f.Least != "1" || f.Most != "60" || f.Default != "30" {
		t.Errorf("limit: %+v", f)
	}
	if f := form["sort"]; len(f.Choices) != 6 || f.Default != "newest" {
		t.Errorf("sort: %+v", f)
	}
	if _, there := form["If-None-Match"]; there || len(o.Examples) == 0 {
		t.Error("a header in the form, or no example")
	}
	if avatar := operations(doc)["/api/chat/avatar/{chatUserId}"]; avatar.Form != nil {
		t.Error("a form cannot fill a path")
	}
}

// The order is that of the document, not of a map.
func TestOrder(t *testing.T) {
	doc, err := Read(own(t))
	require.NoError(t, err)
	before := -1
	for _, o := range doc.Groups[0].Operations {
		at := strings.Index(string(own(t)), "\n  "+o.Path+":\n")
		if at <= before {
			t.Errorf("%s is not where the document has it", o.Path)
		}
		before = at
	}
	if s := doc.Schemas[0]; s.Name != "ListEntry" || s.Members[0].Name != "_id" || s.Members[6].Name != "reportId" {
		t.Errorf("%+v", s)
	}
}

// What a document says is text, but for Markdown.
func TestMarkdownIsHarmless(t *testing.T) {
	doc, err := Read([]byte("info: {description: \"<script>x</script>\n\n**a** [b](javascript:x)\"}\n"))
	require.NoError(t, err)
	if about := string(doc.About); strings.Contains(about, "<script") || strings.Contains(about, "javascript:") || !strings.Contains(about, "<strong>a</strong>") {
		t.Error(about)
	}
}

func TestBrokenDocuments(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML": "a: [", "a list": "- a", "a reference that leads nowhere": "tags: [{name: A}]\npaths: {/a: {get: {tags: [A], parameters: [{$ref: '#/components/parameters/X'}]}}}",
	} {
		if doc, err := Read([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, doc)
		}
	}
}

// Colors change nothing of the code: without its tags, the HTML is the program.
func TestColored(t *testing.T) {
	doc, err := Read(own(t))
	require.NoError(t, err)
	tags := regexp.MustCompile(`</?span[^>]*>`)
	for _, set := range []Programs{doc.Programs, doc.Bots, doc.DiscordBots, doc.Follower} {
		for _, p := range set.Programs {
			if got := html.UnescapeString(tags.ReplaceAllString(string(p.HTML), "")); got != p.Code {
				t.Errorf("%s-%s: the page shows another program", set.Name, p.ID)
			}
		}
	}
	for code, want := range map[string]string{
		`return "a // b" // c`: `<span class="t-key">return</span> <span class="t-str">&#34;a // b&#34;</span><span class="t-rem"> // c</span>`,
		`x=${a#b} # c`:         `x=${a#b}<span class="t-rem"> # c</span>`,
		`a < "<b>\""`:          `a &lt; <span class="t-str">&#34;&lt;b&gt;\&#34;&#34;</span>`,
		`informing`:            `informing`,
	} {
		if got := string(colored(code)); got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
	}
}

// Forms are filled with the first example that has parameters, so that the first click shows something.
func TestFormsAreFilled(t *testing.T) {
	doc, err := Read(own(t))
	require.NoError(t, err)
	for path, want := range map[string]map[string]string{
		"/api/check":       {"search": "nitro", "id": ""},
		"/api/check/batch": {"ids": "99016474520097277832,1"},
		"/api/scammers":    {"sort": "popular", "limit": "3", "status": "all"},
	} {
		for _, f := range operations(doc)[path].Form {
			if value, named := want[f.Name]; named && f.Value != value {
				t.Errorf("%s: %s is %q, want %q", path, f.Name, f.Value, value)
			}
		}
	}
}
