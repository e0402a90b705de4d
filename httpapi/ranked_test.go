package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// scan is ranked search without an index, and without inflection: it looks for the words, as they are written, in names.
type scan struct{ sequence uint64 }

func (s scan) Search(ctx context.Context, v *readmodel.View, q readmodel.RankedQuery) (p readmodel.RankedPage, err error) {
	p.Sequence = s.sequence
	for _, r := range shownRows(v) {
		name, _ := r.Text()
		e := r.Public()
		passes := (q.Status == readmodel.StatusAll || e.Verified == (q.Status == readmodel.StatusVerified)) &&
			(q.Proofs != readmodel.ProofsWith || e.ProofsID != nil) && (q.Proofs != readmodel.ProofsPrivate || e.PrivateProofs)
		at := strings.Index(strings.ToLower(name), strings.ToLower(q.Words))
		if !passes || at < 0 {
			continue
		}
		list, _ := r.List().Index()
		p.Facets[list]++
		if q.List == "" || q.List == r.List() {
			p.Total++
			if p.Total > q.Skip && len(p.Hits) < q.Limit {
				start := len([]rune(name[:at]))
				p.Hits = append(p.Hits, readmodel.RankedHit{Row: r, Matches: []readmodel.Match{
					{Field: readmodel.InName, Start: start, End: start + len([]rune(q.Words))}}})
			}
		}
	}
	if p.Total == 0 {
		p.Suggestions = []string{"nitro", `"cudzysłów"`}
	}
	p.HasMore = q.Skip+len(p.Hits) < p.Total
	return p, ctx.Err()
}

// shownRows returns the rows of all lists.
func shownRows(v *readmodel.View) (rows []*readmodel.Row) {
	for _, l := range events.Lists() {
		page, _ := v.List(context.Background(), readmodel.ListQuery{List: l, Sort: readmodel.Oldest, Limit: 1 << 20})
		rows = append(rows, page.Rows...)
	}
	return rows
}

// none is an index that has just been withdrawn.
type none struct{}

func (none) Search(context.Context, *readmodel.View, readmodel.RankedQuery) (readmodel.RankedPage, error) {
	return readmodel.RankedPage{}, readmodel.ErrNoRanking
}

func TestRankedParameters(t *testing.T) {
	base := readmodel.RankedQuery{Words: "x", Limit: 20}
	with := func(change func(*readmodel.RankedQuery)) readmodel.RankedQuery {
		q := base
		change(&q)
		return q
	}
	for raw, want := range map[string]readmodel.RankedQuery{
		"q=x":                           base,
		"q=%20x%20&list=&skip=%20":      base,
		"q=x&list=all":                  base,
		"q=x&list=legit":                with(func(q *readmodel.RankedQuery) { q.List = events.Legit }),
		"q=x&list=scammers":             with(func(q *readmodel.RankedQuery) { q.List = events.Scammers }),
		"q=x&status=risk":               with(func(q *readmodel.RankedQuery) { q.Status = readmodel.StatusRisk }),
		"q=x&proofs=private":            with(func(q *readmodel.RankedQuery) { q.Proofs = readmodel.ProofsPrivate }),
		"q=x&skip=1000&limit=60":        with(func(q *readmodel.RankedQuery) { q.Skip, q.Limit = 1000, 60 }),
		"q=" + strings.Repeat("ł", 100): with(func(q *readmodel.RankedQuery) { q.Words = strings.Repeat("ł", 100) }),
		"q=x&unknown=1":                 base,
	} {
		if got, err := parseRanked(raw); err != nil || got != want {
			t.Errorf("%.60s: %+v, %v; want %+v", raw, got, err, want)
		}
	}
	for raw, name := range map[string]string{
		"q=" + strings.Repeat("ł", 101): "q", "q=x&q=y": "q", "q=%FF": "q", "q=x&list=Legit": "list", "q=x&status=no": "status",
		"q=x&proofs=no": "proofs", "q=x&skip=1001": "skip", "q=x&limit=0": "limit", "q=x&limit=61": "limit", "list=x": "list",
		"limit=0&list=x&q=%00": "q", "%zz": "query",
	} {
		_, err := parseRanked(raw)
		if got := wrong(t, err); got != name {
			t.Errorf("%.60s: error of %q, want %q", raw, got, name)
		}
	}
	if q, err := parseRanked("q=%20"); q.Words != "" || err != nil {
		t.Errorf("q of white space: %+v, %v", q, err)
	}
}

func TestRanked(t *testing.T) {
	f := serve(t)
	a := f.get(t, "/api/search?q=a&limit=2")
	var body struct {
		Results []struct {
			Kind    string
			Entry   struct{ Name string }
			Matches []struct {
				Field      string
				Start, End int
			}
		}
		Total   int
		HasMore bool
		Facets  map[string]int
	}
	require.NoError(t, json.Unmarshal([]byte(a.body), &body))
	sum := 0
	for _, n := range body.Facets {
		sum += n
	}
	if a.status != http.StatusOK || len(body.Results) != 2 || body.Total <= 2 || !body.HasMore || sum != body.Total {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, r := range body.Results {
		m := r.Matches[0]
		if marked := string([]rune(r.Entry.Name)[m.Start:m.End]); !strings.EqualFold(marked, "a") {
			t.Errorf("%q of %q", marked, r.Entry.Name)
		}
	}
	if got, want := a.header.Get("Registry-Index-Sequence"), strconv.FormatUint(f.model.View().Sequence(), 10); got != want || a.header.Get("Registry-Sequence") != want {
		t.Errorf("Registry-Index-Sequence %q, Registry-Sequence %q, want %q", got, a.header.Get("Registry-Sequence"), want)
	}
	if again := f.get(t, "/api/search?q=a&limit=2", "If-None-Match", a.header.Get("ETag")); again.status != http.StatusNotModified || again.body != "" {
		t.Errorf("held: %d %s", again.status, again.body)
	}
	f.wantError(t, http.StatusBadRequest, "Brak wymaganego parametru: q.", http.MethodGet, "/api/search")
}

// Without an index ranked search is 503, and everything else is answered.
func TestNoRanking(t *testing.T) {
	for name, ranked := range map[string]func() RankedIndex{
		"never": nil, "not yet": func() RankedIndex { return nil }, "not any more": func() RankedIndex { return none{} },
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, func(c *Config) { c.Ranked = ranked })
			a := f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, "/api/search?q=a")
			require.Equal(t, "5", a.header.Get("Retry-After"))
			if a := f.get(t, "/api/scammers"); a.status != http.StatusOK {
				t.Errorf("lists: %d", a.status)
			}
		})
	}
}

// Ranked searches wait for their turn as the others do, and are refused beyond the bound.
func TestRankedOverload(t *testing.T) {
	f := serve(t)
	f.boundSearches(0)
	require.NoError(t, f.public.searches.take(t.Context()))
	f.wantError(t, http.StatusServiceUnavailable, "Serwer jest przeciążony.", http.MethodGet, "/api/search?q=a")
	f.public.searches.leave()
	if a := f.get(t, "/api/search?q=a"); a.status != http.StatusOK {
		t.Errorf("%d", a.status)
	}
}

// The page of ranked search is a page like the others.
func TestSearchPage(t *testing.T) {
	f := serveSite(t)
	a := f.fetch(t, http.MethodGet, "/szukaj")
	isPage(t, "/szukaj", a, http.StatusOK)
	a = f.fetch(t, http.MethodGet, "/szukaj?q=nitro")
	isPage(t, "/szukaj?q=nitro", a, http.StatusOK)
	if !strings.Contains(a.body, "<mark>") || a.header.Get("X-Robots-Tag") == "" || a.header.Get("Registry-Index-Sequence") == "" {
		t.Errorf("%v %s", a.header, a.body)
	}
	if again := f.fetch(t, http.MethodGet, "/szukaj?q=nitro", "If-None-Match", a.header.Get("ETag")); again.status != http.StatusNotModified {
		t.Errorf("held: %d", again.status)
	}
	isPage(t, "a wrong parameter", f.fetch(t, http.MethodGet, "/szukaj?q=nitro&limit=0"), http.StatusBadRequest)
	without := serveSite(t, func(c *Config) { c.Ranked = nil })
	isPage(t, "without an index", without.fetch(t, http.MethodGet, "/szukaj?q=nitro"), http.StatusServiceUnavailable)
	isPage(t, "without an index or words", without.fetch(t, http.MethodGet, "/szukaj"), http.StatusOK)
}
