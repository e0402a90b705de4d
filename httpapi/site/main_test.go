package site

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"example.org/registry/events"
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
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, r := readmodel.New(), readmodel.NewRenderer()
	for i, d := range data {
		m.Apply([]readmodel.Record{r.Render(uint64(i+1), d)}, uint64(i+1))
	}
	return &world{s, m.View()}
}

// full is a site with everything that can be configured.
func full() Config {
	return Config{AppealsURL: "https://appeals.example.org/odwolanie?x=1&y", Proofs: true}
}

func (w *world) list(t testing.TB, q readmodel.ListQuery, part int) string {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = usualPage
	}
	found, err := w.view.List(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	page, err := w.site.List(nil, ListPage{Query: q, Part: part, Found: found})
	if err != nil {
		t.Fatal(err)
	}
	return wellFormed(t, string(page))
}

func (w *world) check(t testing.TB, q readmodel.CheckQuery) string {
	t.Helper()
	p := CheckPage{Query: q}
	for i, l := range events.Lists() {
		p.Entries[i] = w.view.Entries(l)
	}
	if q != (readmodel.CheckQuery{}) {
		found, err := w.view.Check(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		p.Found = found
	}
	page, err := w.site.Check(nil, p)
	if err != nil {
		t.Fatal(err)
	}
	return wellFormed(t, string(page))
}

// wellFormed fails the test unless page is a document whose elements all end where they should, with ids
// that are unique, and no larger than is promised.
func wellFormed(t testing.TB, page string) string {
	t.Helper()
	if len(page) > MaxPage {
		t.Errorf("a page of %d bytes", len(page))
	}
	if strings.Contains(page, "\x00") {
		t.Error("a mark is left in the page")
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	return events.Entry{List: l, EntryID: id, ChatID: chat, Name: name, Reason: reason, Verified: verified, Proofs: proofs,
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
