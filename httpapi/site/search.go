package site

import (
	"strconv"
	"time"
	"unicode"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// SearchPage is the content of one page of ranked search. All of it belongs to one view.
type SearchPage struct {
	Query readmodel.RankedQuery // without words, the page shows an empty form
	Found readmodel.RankedPage
	AsOf  time.Time // as in Page
}

// searchView is the data of search.html.
type searchView struct {
	Query       readmodel.RankedQuery
	List        string // retained by the form; empty for all
	Tabs        []tab
	Count       string
	Hits        []hit
	Suggestions []option
	paging
	First string // link to the first page, for visitors beyond the last
}

// hit is an entry with its words marked.
type hit struct {
	*entry
	Named, Said []span
}

// span is a piece of a text.
type span struct {
	Text   string
	Marked bool
}

const searchPath = "/szukaj"

// Search appends the page of ranked search.
func (s *Site) Search(dst []byte, p SearchPage) ([]byte, error) {
	q := p.Query
	v := searchView{Query: q, List: string(q.List)}
	page := Page{Title: "Szukaj po słowach", Path: searchPath, AsOf: p.AsOf, Finds: true}
	if q.Words != "" {
		page.Title, page.Named = "Szukane słowa: "+q.Words, true
		v.Count, v.Tabs = entries().count(p.Found.Total), facets(q, p.Found.Facets)
		for _, words := range p.Found.Suggestions {
			other := q
			other.Words, other.Skip = words, 0
			v.Suggestions = append(v.Suggestions, option{Value: searchLink(other), Text: words})
		}
		for _, h := range p.Found.Hits {
			one, err := s.hit(h)
			if err != nil {
				return dst, err
			}
			v.Hits = append(v.Hits, one)
		}

		link := func(skip int) string { q.Skip = skip; return searchLink(q) }
		v.paging = newPaging(q.Skip, q.Limit, len(v.Hits), p.Found.Total, bounds.MaxRankedSkip, link)
		if len(v.Hits) == 0 && p.Found.Total > 0 {
			v.First = link(0)
		}
	}
	page.Data = v
	return s.Append(dst, "search", page)
}

// facets returns a tab for all lists, and one for each.
func facets(q readmodel.RankedQuery, counts [events.NumLists]int) []tab {
	chosen, all := q.List, 0
	q.Skip = 0
	tabs := []tab{{Text: "Wszystkie", Chosen: chosen == ""}}
	for i, l := range events.Lists() {
		q.List = l
		tabs = append(tabs, tab{wordsOf(l).Title, number(counts[i]), searchLink(q), l == chosen})
		all += counts[i]
	}
	q.List = ""
	tabs[0].Count, tabs[0].Link = number(all), searchLink(q)
	return tabs
}

func (s *Site) hit(h readmodel.RankedHit) (hit, error) {
	e, err := s.entry(h.Row)
	if err != nil {
		return hit{}, err
	}
	name, reason := h.Row.Text()
	named := spans(name, h.Matches, readmodel.InName, 1<<20)
	if e.Name != name { // the matches count characters that are not shown
		named = []span{{Text: e.Name}}
	}
	return hit{e, named, spans(reason, h.Matches, readmodel.InReason, maxExcerpt)}, nil
}

// spans cuts a text at the positions of the words. If the text is longer than limit, in code points, it takes the part
// around the first of them, beginning with a whole word.
func spans(text string, matches []readmodel.Match, field readmodel.MatchField, limit int) (all []span) {
	runes := []rune(text)
	var places []readmodel.Match
	for _, m := range matches {
		if m.Field == field && m.End <= len(runes) {
			places = append(places, m)
		}
	}

	at, end := 0, len(runes)
	if end > limit {
		if len(places) > 0 {
			at = max(0, min(places[0].Start-limit/4, end-limit))
			for i := at; i > 0 && i < places[0].Start; i++ {
				if unicode.IsSpace(runes[i-1]) {
					at = i
					break
				}
			}
		}
		end = min(at+limit, end)
	}

	add := func(to int, marked bool) {
		if to > at {
			all, at = append(all, span{string(runes[at:to]), marked}), to
		}
	}
	if at > 0 {
		all = append(all, span{Text: "… "})
	}
	for _, m := range places {
		if m.Start >= at && m.End <= end {
			add(m.Start, false)
			add(m.End, true)
		}
	}
	add(end, false)
	if end < len(runes) {
		all = append(all, span{Text: " …"})
	}
	return all
}

// searchLink returns the address of a page of ranked search, without parameters at their defaults.
func searchLink(q readmodel.RankedQuery) string {
	return link(searchPath, [][3]string{
		{"q", q.Words}, {"list", string(q.List)}, {"status", bounds.Statuses()[q.Status], "all"}, {"proofs", bounds.Proofs()[q.Proofs], "all"},
		{"skip", strconv.Itoa(q.Skip), "0"}, {"limit", strconv.Itoa(q.Limit), strconv.Itoa(bounds.DefaultRankedLimit)},
	})
}
