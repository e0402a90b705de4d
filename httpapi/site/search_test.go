package site

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

func (w *world) search(t testing.TB, q readmodel.RankedQuery, p readmodel.RankedPage) string {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = bounds.DefaultRankedLimit
	}
	page, err := w.site.Search(nil, SearchPage{Query: q, Found: p})
	require.NoError(t, err)
	return wellFormed(t, string(page))
}

// A page of ranked search marks the words, leads to the entries, the other lists and the other
// pages.
func TestSearchPage(t *testing.T) {
	w := newWorld(t, full(), events.Entry{Revision: 1, List: events.Servers, EntryID: "a", ChatID: "1", Name: "Ćma <b>", Verified: true, ReportID: "R",
		Reason: strings.Repeat("przed ", 200) + "**oszust** i _oszuści_ " + strings.Repeat("po ", 200), ReportedAt: time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC)})
	row := w.view.Entry(events.Servers, "a")
	_, reason, _ := row.Text()
	at := len([]rune(reason[:strings.Index(reason, "oszust")]))
	p := readmodel.RankedPage{Total: 30, HasMore: true, Facets: [3]int{29, 1, 0}, Hits: []readmodel.RankedHit{{Row: row, Matches: []readmodel.Match{
		{Field: readmodel.InName, Start: 0, End: 3}, {Field: readmodel.InReason, Start: at, End: at + 6}, {Field: readmodel.InReason, Start: at + 9, End: at + 16}}}}}
	page := w.search(t, readmodel.RankedQuery{Words: "oszuści & ćmy", Limit: 1, Skip: 1, List: events.Servers}, p)
	golden(t, "search", page)
	for _, want := range []string{
		`<bdi><mark>Ćma</mark> &lt;b&gt;</bdi>`, `<mark>oszust</mark> i <mark>oszuści</mark>`, `… `, ` …`, `href="/wpis/servers/a"`,
		`href="/szukaj?limit=1&amp;q=oszu%C5%9Bci&#43;%26&#43;%C4%87my"`, // all lists
		`rel="next" href="/szukaj?limit=1&amp;list=servers&amp;q=oszu%C5%9Bci&#43;%26&#43;%C4%87my&amp;skip=2"`,
		`rel="prev"`, `value="oszuści &amp; ćmy"`, `name="list" value="servers"`, `aria-current="true">Serwery <span>1</span>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Count(page, "przed ") > 60 {
		t.Error("the whole reason is shown")
	}
	nothing := w.search(t, readmodel.RankedQuery{Words: "kowalsky"}, readmodel.RankedPage{Suggestions: []string{"kowalski"}})
	golden(t, "search_nothing", nothing)
	for _, want := range []string{`<a href="/szukaj?q=kowalski"><bdi>kowalski</bdi></a>`, "To tylko inna pisownia", `href="/?search=kowalsky"`, "0\u00a0wpisów"} {
		if !strings.Contains(nothing, want) {
			t.Errorf("%q is missing", want)
		}
	}
	golden(t, "search_first", w.search(t, readmodel.RankedQuery{}, readmodel.RankedPage{}))
	if beyond := w.search(t, readmodel.RankedQuery{Words: "x", Skip: 1000}, readmodel.RankedPage{Total: 3}); !strings.Contains(beyond, "Przejdź do pierwszej") {
		t.Error("beyond the last page")
	}
	if far := w.search(t, readmodel.RankedQuery{Words: "x", Skip: 1000}, readmodel.RankedPage{Total: 3000, HasMore: true, Hits: p.Hits}); !strings.Contains(far, "Dopisz kolejne słowo") {
		t.Error("farther than paging reaches")
	}
}

// Where no entry has every word, the page says so above the results.
func TestSearchRelaxed(t *testing.T) {
	w := newWorld(t, full(), events.Entry{Revision: 1, List: events.Servers, EntryID: "a", ChatID: "1", Name: "Ćma", Verified: true, ReportID: "R", ReportedAt: time.Unix(1, 0)})
	p := readmodel.RankedPage{Total: 1, Relaxed: true, Hits: []readmodel.RankedHit{{Row: w.view.Entry(events.Servers, "a")}}}
	const says = "Żaden wpis nie ma wszystkich tych słów."
	page := w.search(t, readmodel.RankedQuery{Words: "a b c"}, p)
	if at := strings.Index(page, says); at < 0 || at > strings.Index(page, "<article") {
		t.Errorf("relaxed: %d", at)
	}
	p.Relaxed = false
	if strings.Contains(w.search(t, readmodel.RankedQuery{Words: "a b c"}, p), says) {
		t.Error("said of every page")
	}
}

// Results of several lists are told apart, and a trusted person is not the first answer, unless the
// name has a word.
func TestSearchGroups(t *testing.T) {
	entry := func(list events.List, id, name string) events.Entry {
		return events.Entry{Revision: 1, List: list, EntryID: id, ChatID: "1", Name: name, Verified: true, ReportID: "R", ReportedAt: time.Unix(1, 0)}
	}
	w := newWorld(t, full(), entry(events.Legit, "l1", "legit 1"), entry(events.Legit, "l2", "legit 2"), entry(events.Servers, "v1", "server 1"),
		entry(events.Scammers, "s1", "scammer 1"), entry(events.Scammers, "s2", "scammer 2"))
	place := regexp.MustCompile(`<h2 class="group">(.*?)</h2>|<h3><a href="/wpis/\w+/(\w+)"`)
	for _, c := range []struct{ hits, want string }{
		{"l1 v1 s1 l2 s2", "Serwery: v1 Zgłoszeni: s1 s2 Zaufani: l1 l2"},
		{"s1 l1 v1", "Zgłoszeni: s1 Serwery: v1 Zaufani: l1"},
		{"l1! s1 l2", "Zaufani: l1 l2 Zgłoszeni: s1"},
		{"s1 l1! v1", "Zgłoszeni: s1 Serwery: v1 Zaufani: l1"},
		{"l1 l2", "l1 l2"},
	} {
		var p readmodel.RankedPage
		for id := range strings.FieldsSeq(c.hits) {
			id, named := strings.CutSuffix(id, "!")
			hit := readmodel.RankedHit{Row: w.view.Entry(map[byte]events.List{'l': events.Legit, 'v': events.Servers, 's': events.Scammers}[id[0]], id)}
			if named {
				hit.Matches = []readmodel.Match{{Field: readmodel.InName, Start: 0, End: 2}}
			}
			p.Hits = append(p.Hits, hit)
		}
		p.Total = len(p.Hits)
		got := ""
		for _, found := range place.FindAllStringSubmatch(w.search(t, readmodel.RankedQuery{Words: "x"}, p), -1) {
			if found[1] != "" {
				got += " " + found[1] + ":"
			} else {
				got += " " + found[2]
			}
		}
		if got != " "+c.want {
			t.Errorf("%s: %s, want %s", c.hits, got, c.want)
		}
	}
}
