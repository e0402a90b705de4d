package site

import (
	"net/url"
	"slices"
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
	Groups      []hitGroup
	Relaxed     bool // no entry has every word
	Suggestions []option
	paging
	First string // link to the first page, for visitors beyond the last
}

// hitGroup is the hits of one list, best first.
type hitGroup struct {
	Title string // empty if there is only one group
	Hits  []hit
}

// hit is an entry with its words marked.
type hit struct {
	*entry
	Named   []span
	Excerpt []span
}

// span is a piece of a text.
type span struct {
	Text   string
	Marked bool
}

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
		v.Relaxed = p.Found.Relaxed
		for _, hits := range grouped(p.Found.Hits) {
			group, err := s.hits(hits)
			if err != nil {
				return dst, err
			}
			v.Groups = append(v.Groups, group)
		}
		if len(v.Groups) == 1 {
			v.Groups[0].Title = ""
		}
		link := func(skip int) string { q.Skip = skip; return searchLink(q) }
		v.paging = newPaging(q.Skip, q.Limit, len(p.Found.Hits), p.Found.Total, bounds.MaxRankedSkip, link)
		if len(p.Found.Hits) == 0 && p.Found.Total > 0 {
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

// grouped groups hits by their lists, the list of the best hit first. Trusted persons come last,
// unless the name of the best hit has a word of the query. Otherwise their texts, which mention
// fraud too, would be the answer to a word of fraud.
func grouped(hits []readmodel.RankedHit) (groups [][]readmodel.RankedHit) {
	for _, h := range hits {
		i := slices.IndexFunc(groups, func(g []readmodel.RankedHit) bool { return g[0].Row.List() == h.Row.List() })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], h)
	}
	trusted := slices.IndexFunc(groups, func(g []readmodel.RankedHit) bool { return g[0].Row.List() == events.Legit })
	if trusted > 0 || trusted == 0 && !slices.ContainsFunc(groups[0][0].Matches, func(m readmodel.Match) bool { return m.Field == readmodel.InName }) {
		group := groups[trusted]
		groups = append(slices.Delete(groups, trusted, trusted+1), group)
	}
	return groups
}

func (s *Site) hits(hits []readmodel.RankedHit) (group hitGroup, err error) {
	group.Title = wordsOf(hits[0].Row.List()).Title
	for _, h := range hits {
		one, err := s.hit(h)
		if err != nil {
			return group, err
		}
		group.Hits = append(group.Hits, one)
	}
	return group, nil
}

func (s *Site) hit(h readmodel.RankedHit) (hit, error) {
	e, err := s.entry(h.Row)
	if err != nil {
		return hit{}, err
	}
	name, reason, err := h.Row.Text()
	if err != nil {
		return hit{}, err
	}
	named := spans(name, h.Matches, readmodel.InName, 1<<20)
	if e.Name != name { // the matches count characters that are not shown
		named = []span{{Text: e.Name}}
	}
	return hit{entry: e, Named: named, Excerpt: spans(reason, h.Matches, readmodel.InReason, maxExcerpt)}, nil
}

// spans cuts a text at the positions of the words. If the text is longer than limit, in code
// points, it takes the part around the first of them, beginning with a whole word.
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
		if m.Start < at || m.End > end {
			continue
		}
		add(m.Start, false)
		add(m.End, true)
	}
	add(end, false)
	if end < len(runes) {
		all = append(all, span{Text: " …"})
	}
	return all
}

const searchPath = "/szukaj"

// searchLink returns the address of a page of ranked search, without parameters at their defaults.
func searchLink(q readmodel.RankedQuery) string {
	values := url.Values{}
	set := func(name, value, usual string) {
		if value != usual {
			values.Set(name, value)
		}
	}
	set("q", q.Words, "")
	set("list", string(q.List), "")
	set("status", bounds.Statuses()[q.Status], "all")
	set("proofs", bounds.Proofs()[q.Proofs], "all")
	set("skip", strconv.Itoa(q.Skip), "0")
	set("limit", strconv.Itoa(q.Limit), strconv.Itoa(bounds.DefaultRankedLimit))
	return searchPath + "?" + values.Encode()
}
