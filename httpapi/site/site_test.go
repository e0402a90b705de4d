package site

import (
	"cmp"
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a site and a view of some entries.
type world struct {
	site *Site
	view *readmodel.View
}

func newWorld(t testing.TB, cfg Config, data ...events.Data) *world {
	t.Helper()
	s := New(cfg)
	m, r := readmodel.New(), readmodel.NewRenderer()
	for i, d := range data {
		m.Apply([]readmodel.Record{r.Render(uint64(i+1), events.Revised(d, int64(i+1)))}, uint64(i+1))
	}
	return &world{s, m.View()}
}

// full is a site with everything that can be configured.
func full() Config {
	return Config{BaseURL: "https://rejestr.example.org", AppealsURL: "https://appeals.example.org/odwolanie?x=1&nr={reportId}", ReportURL: "https://reports.example.org/oszustwo", Proofs: true}
}

func (w *world) list(t testing.TB, q readmodel.ListQuery) string {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = bounds.DefaultLimit
	}
	found, err := w.view.List(context.Background(), q)
	require.NoError(t, err)
	page, err := w.site.Append(nil, ListPage{Query: q, Found: found})
	require.NoError(t, err)
	return wellFormed(t, string(page))
}

// entry is the page of an entry.
func (w *world) entry(t testing.TB, l events.List, id string) string {
	t.Helper()
	page, err := w.site.Append(nil, EntryPage{Row: w.view.Entry(l, id)})
	require.NoError(t, err)
	return wellFormed(t, string(page))
}

func (w *world) check(t testing.TB, q readmodel.CheckQuery) string {
	t.Helper()
	p := CheckPage{Asked: cmp.Or(q.Search, q.ID), Looked: time.Date(2026, 3, 1, 10, 15, 0, 0, time.UTC), API: q}
	for i, l := range events.Lists() {
		p.Entries[i] = w.view.NumEntries(l)
	}
	if p.Asked != "" {
		var err error
		p.Verdict, err = verdict.Check(t.Context(), w.view, q.Search, q.ID)
		require.NoError(t, err)
		p.Found, err = w.view.Check(t.Context(), q)
		require.NoError(t, err)
	}
	page, err := w.site.Append(nil, p)
	require.NoError(t, err)
	return wellFormed(t, string(page))
}

// wellFormed fails the test unless page is a document whose elements all end where they should, with ids that are unique.
func wellFormed(t testing.TB, page string) string {
	t.Helper()
	if strings.Contains(page, "\x00") {
		t.Error("a NUL in the page")
	}
	var open []string
	ids := map[string]bool{}
	for z := html.NewTokenizer(strings.NewReader(page)); z.Next() != html.ErrorToken; {
		tok := z.Token()
		for _, a := range tok.Attr {
			if a.Key == "id" && ids[a.Val] {
				t.Errorf("the id %q is there twice", a.Val)
			}
			if ids[a.Val] = ids[a.Val] || a.Key == "id"; strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("<%s> has the attribute %s", tok.Data, a.Key)
			}
		}
		switch tok.Type {
		case html.StartTagToken:
			if !childless(tok.Data) {
				open = append(open, tok.Data)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != tok.Data {
				t.Fatalf("</%s> in %v", tok.Data, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("not closed: %v", open)
	}
	return page
}

func childless(element string) bool {
	switch element {
	case "meta", "link", "input", "img", "br", "hr":
		return true
	}
	return false
}

// seen is the text of a page as its reader sees it.
func seen(t testing.TB, page string) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	var b strings.Builder
	for n := range doc.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "script" && n.Parent.Data != "title" {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}

// elements are the elements of that name in a page, in their order.
func elements(t testing.TB, page, name string) (found []*html.Node) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			found = append(found, n)
		}
	}
	return found
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func person(l events.List, id, chat, name, reason string, verified bool, proofs events.Proofs, day int) events.Entry {
	return events.Entry{Revision: 1, List: l, EntryID: id, ChatID: chat, Name: name, Reason: reason, Verified: verified, Proofs: proofs,
		ReportID: "R-" + id, ReportedAt: time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC)}
}

// people is a registry in which every look of an entry is there.
func people() []events.Data {
	none, private := events.Proofs{}, events.Proofs{Private: true}
	return []events.Data{
		person(events.Scammers, "s1", "100000000000000001", "Zenon Łotr", "Bierze **zaliczki** i znika.", true, events.Proofs{ID: "p-1"}, 1),
		person(events.Scammers, "s2", "100000000000000002", "Ćma", "Podszywa się pod *admina*: [strona](https://example.org/x)", false, none, 2),
		person(events.Scammers, "s3", "100000000000000003", "adam <b>", "Kradzież kont", true, private, 3),
		person(events.Scammers, "s4", "100000000000000003", "Celina", "To samo konto co adam", false, events.Proofs{ID: "p-4"}, 4),
		person(events.Servers, "g1", "200000000000000001", "Darmowe Nitro", "Phishing", true, none, 5),
		person(events.Servers, "g2", "konto z odstępem/?&", "Żabka giveaway", "", false, private, 6),
		person(events.Legit, "l1", "300000000000000001", "Ewa Zaufana", "Pośredniczka", true, none, 7),
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

// A page of each kind, the frame once: go test ./httpapi/site -update writes them again.
func TestGoldenPages(t *testing.T) {
	w := newWorld(t, full(), people()...)
	missing, err := w.site.Append(nil, Failed{Status: http.StatusNotFound, Text: "Nie znaleziono.", Path: "/nic"})
	require.NoError(t, err)
	for name, page := range map[string]string{
		"frame":       wellFormed(t, string(missing)),
		"check_scam":  w.check(t, readmodel.CheckQuery{Search: "zenon łotr"}),
		"check_paste": w.check(t, readmodel.CheckQuery{Search: "@ćma 100000000000000001"}),
		"list":        w.list(t, readmodel.ListQuery{List: events.Scammers, Limit: 2, Sort: readmodel.AZ, Proofs: readmodel.ProofsWith}),
		"entry_scam":  w.entry(t, events.Scammers, "s1"),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, page) })
	}
}

// golden compares a page with the golden file of that name: all of it for "frame", of the others
// what is not the frame's. The hashes in assets' names are left out.
func golden(t *testing.T, name, page string) {
	t.Helper()
	page = regexp.MustCompile(`(/assets/[\w-]+)\.[0-9a-f]{12}\.`).ReplaceAllString(page, "$1.HASH.")
	file := filepath.Join("testdata", name+".golden.html")
	if name != "frame" {
		page = besides(page)
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(page), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if page != string(want) {
		t.Errorf("got  %s\nwant %s", page, want)
	}
}

// besides is a page's <main>, without the card for people who have paid and the steps to an id.
func besides(page string) string {
	for _, same := range []string{`(?s)<details class="paid".*?</details>`, `(?s)<div class="steps">.*?\n</div>`} {
		page = regexp.MustCompile(same).ReplaceAllString(page, "(…)")
	}
	return regexp.MustCompile(`(?s)<main.*</main>`).FindString(page) + "\n"
}

// stub is any page.
type stub page

func (p stub) page() page { return page(p) }

// Data that was last known to be complete a while ago is said to be, and since when.
func TestBanner(t *testing.T) {
	s := New(Config{})
	for _, p := range []page{{template: "error", Title: "x", Data: failureView{}}, {template: "error", Title: "x", Data: failureView{}, AsOf: time.Date(2026, 11, 21, 11, 15, 59, 0, time.FixedZone("CET", 3600))}} {
		page, err := s.Append(nil, stub(p))
		require.NoError(t, err)
		for _, n := range elements(t, string(page), "p") {
			if attr(n, "id") != "nieaktualne" {
				continue
			}
			hidden := regexp.MustCompile(`<p [^>]*hidden`).Match(page)
			if hidden != p.AsOf.IsZero() {
				t.Errorf("hidden: %v, as of %v", hidden, p.AsOf)
			}
			if said := regexp.MustCompile(`21 listopada 2026, 10:15 UTC`).Match(page); said == p.AsOf.IsZero() {
				t.Errorf("the time is there: %v, as of %v", said, p.AsOf)
			}
		}
	}
}

// What comes from events is text.
func TestHostileTextsStayText(t *testing.T) {
	none := events.Proofs{}
	for _, name := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' autofocus onfocus='x`, "</title></main>", "{{.}}", "\u202egnp.exe", "a\u200bb", "<!--",
	} {
		e := person(events.Scammers, "x", "900000000000000001", name, name, true, none, 1)
		e.ReportID = name
		w := newWorld(t, full(), e)
		for _, page := range []string{
			w.check(t, readmodel.CheckQuery{Search: name}),
			w.list(t, readmodel.ListQuery{List: events.Scammers, Search: name}),
			w.entry(t, events.Scammers, "x"),
		} {
			if n := len(elements(t, page, "script")); n != 1 {
				t.Errorf("%q: %d scripts", name, n)
			}
			if !strings.Contains(seen(t, page), name) {
				t.Errorf("%q is not shown", name)
			}
			if said := strings.Contains(page, "są niewidoczne znaki"); said != strings.ContainsAny(name, "\u200b\u202e") {
				t.Errorf("%q: said to have hidden characters: %v", name, said)
			}
			for _, n := range elements(t, page, "img") {
				if !strings.HasPrefix(attr(n, "src"), "/api/chat/avatar/") {
					t.Errorf("%q: a picture of %q", name, attr(n, "src"))
				}
			}
		}
	}
}

// The menu says which page this is.
func TestMenu(t *testing.T) {
	page := newWorld(t, full()).list(t, readmodel.ListQuery{List: events.Servers})
	require.Equal(t, 1, strings.Count(page, `aria-current="page"`))
	require.Contains(t, page, `<a href="/servers" aria-current="page">`)
}

// Excerpts are text on one line, of a bounded length.
func TestExcerpts(t *testing.T) {
	for reason, want := range map[string]string{
		"": "", "<p>Krótki</p>\n": "Krótki", "<p>a</p>\n<ul>\n<li>b &amp; c</li>\n<li>d<br>\ne</li>\n</ul>\n": "a b & c d e",
		"<p>za<strong>licz</strong>ki</p>": "zaliczki",
	} {
		if got := makeExcerpt(reason); got != want {
			t.Errorf("%q: %q, want %q", reason, got, want)
		}
	}
	for reason, want := range map[string]string{
		`<p>zob. <a href="https://x.example">tu</a></p>`:                      "zob. tu",
		"<p>" + strings.Repeat("słowo ", 20) + "</p>":                         strings.TrimSpace(strings.Repeat("słowo ", 20)),
		"<p>" + strings.Repeat("słowo, ", 2000) + "</p>":                      strings.TrimSuffix(strings.Repeat("słowo, ", 40), ", ") + "…",
		"<p>https://sklep.pl/?a=1&amp;copy=2&amp;reg=3 &amp;lt;b&amp;gt;</p>": "https://sklep.pl/?a=1&copy=2&reg=3 &lt;b&gt;",
		"<p>" + strings.Repeat("&lt;", 2000) + "</p>":                         strings.Repeat("<", 280) + "…",
		"<pre><code>" + strings.Repeat("ż", 281) + "</code>":                  strings.Repeat("ż", 280) + "…",
	} {
		if got := makeExcerpt(reason); got != want {
			t.Errorf("%.60q: %q, want %q", reason, got, want)
		}
	}
}

// TestTitlesKeepTheirDirection: a name with bidirectional controls does not turn a title around.
func TestTitlesKeepTheirDirection(t *testing.T) {
	s := New(Config{})
	page, err := s.Append(nil, stub(page{template: "error", Title: "Jan \u202e\u2066x", Data: failureView{}}))
	require.NoError(t, err)
	if text := string(page); strings.ContainsAny(text, "\u202e\u2066") || !strings.Contains(text, "<title>Jan x") {
		t.Errorf("%.900s", text)
	}
}

// TestVersion: another program or another configuration makes another version.
func TestVersion(t *testing.T) {
	of := map[string]Config{}
	for _, cfg := range []Config{{}, {Build: "a"}, {Build: "b"}, {Build: "a", Proofs: true}} {
		s := New(cfg)
		if other, ok := of[s.Version()]; ok {
			t.Errorf("%+v and %+v have the same version", other, cfg)
		}
		of[s.Version()] = cfg
	}
}
