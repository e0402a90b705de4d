package site

import (
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
	page, err := w.site.Append(nil, SearchPage{Query: q, Found: p})
	require.NoError(t, err)
	return wellFormed(t, string(page))
}

// A page of ranked search marks the words, leads to the entries, the other lists and the other pages.
func TestSearchPage(t *testing.T) {
	w := newWorld(t, full(), events.Entry{Revision: 1, List: events.Servers, EntryID: "a", ChatID: "1", Name: "Ćma <b>", Verified: true, ReportID: "R",
		Reason: strings.Repeat("przed ", 200) + "**oszust** i _oszuści_ " + strings.Repeat("po ", 200), ReportedAt: time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC)})
	row := w.view.Entry(events.Servers, "a")
	_, reason := row.Text()
	at := len([]rune(reason[:strings.Index(reason, "oszust")]))
	p := readmodel.RankedPage{Total: 30, HasMore: true, Facets: [3]int{29, 1, 0}, Hits: []readmodel.RankedHit{{Row: row, Matches: []readmodel.Match{
		{Field: readmodel.InName, Start: 0, End: 3}, {Field: readmodel.InReason, Start: at, End: at + 6}, {Field: readmodel.InReason, Start: at + 9, End: at + 16}}}}}
	page := w.search(t, readmodel.RankedQuery{Words: "oszuści & ćmy", Limit: 1, Skip: 1, List: events.Servers}, p)
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
	for _, want := range []string{`<a href="/szukaj?q=kowalski"><bdi>kowalski</bdi></a>`, "To tylko inna pisownia", `href="/?search=kowalsky"`, "0\u00a0wpisów"} {
		if !strings.Contains(nothing, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if beyond := w.search(t, readmodel.RankedQuery{Words: "x", Skip: 1000}, readmodel.RankedPage{Total: 3}); !strings.Contains(beyond, "Przejdź do pierwszej") {
		t.Error("beyond the last page")
	}
	if far := w.search(t, readmodel.RankedQuery{Words: "x", Skip: 1000}, readmodel.RankedPage{Total: 3000, HasMore: true, Hits: p.Hits}); !strings.Contains(far, "Dopisz kolejne słowo") {
		t.Error("farther than paging reaches")
	}
}
