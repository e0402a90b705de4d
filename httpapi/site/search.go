package site

import (
	"slices"
	"strconv"
	"time"
	"unicode"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// SearchPage is the content of one page of ranked search. All its fields come from one view of the read model.
type SearchPage struct {
	Query readmodel.RankedQuery // without words, the page shows an empty form
	Found readmodel.RankedPage
	AsOf  time.Time // when stale data was last known to be complete; zero for current data
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

// hit is an entry that search found.
type hit struct {
	*entry
	Named []span // the name
	Said  []span // the part of the reason that is shown
}

// span is a piece of a text.
type span struct {
	Text   string
	Marked bool // the visitor searched for this word
}

const searchPath = "/szukaj"

func (c SearchPage) page() page {
	q := c.Query
	v := searchView{Query: q, List: string(q.List)}
	if q.Words == "" {
		return page{template: "search", Title: "Szukaj po słowach", Path: searchPath, AsOf: c.AsOf, Data: v}
	}

	v.Count = entryForms.count(c.Found.Total)
	v.Tabs = listTabs(q, c.Found.Facets)
	for _, h := range c.Found.Hits {
		v.Hits = append(v.Hits, newHit(h))
	}

	link := func(words string, skip int) string {
		other := q
		other.Words = words
		other.Skip = skip
		return searchLink(other)
	}

	for _, words := range c.Found.Suggestions {
		v.Suggestions = append(v.Suggestions, option{Value: link(words, 0), Text: words})
	}

	linkToPage := func(skip int) string { return link(q.Words, skip) }
	v.paging = newPaging(q.Skip, q.Limit, len(v.Hits), c.Found.Total, bounds.MaxRankedSkip, linkToPage)
	isBeyondLast := len(v.Hits) == 0 && c.Found.Total > 0
	if isBeyondLast {
		v.First = linkToPage(0)
	}
	return page{template: "search", Title: "Szukane słowa: " + q.Words, SiteName: neutralName, Path: searchPath, AsOf: c.AsOf, Data: v}
}

// listTabs returns a tab for all lists together, and a tab for each list. Each tab leads to the first page of its entries.
func listTabs(q readmodel.RankedQuery, counts [events.NumLists]int) []tab {
	newTab := func(l events.List, text string, count int) tab {
		other := q
		other.List = l
		other.Skip = 0
		return tab{Text: text, Count: formatNumber(count), Link: searchLink(other), Chosen: l == q.List}
	}

	total := 0
	for _, n := range counts {
		total += n
	}

	const allLists = ""
	tabs := []tab{newTab(allLists, "Wszystkie", total)}
	for i, l := range events.Lists() {
		tabs = append(tabs, newTab(l, allListWords[l].Title, counts[i]))
	}
	return tabs
}

func newHit(h readmodel.RankedHit) hit {
	e := newEntry(h.Row)
	name, reason := h.Row.Text()
	const noLimit = 1 << 20 // no name is longer
	found := hit{
		entry: e,
		Named: markWords(name, h.Matches, readmodel.InName, noLimit),
		Said:  markWords(reason, h.Matches, readmodel.InReason, maxExcerpt),
	}

	// The matches have positions in the published name. If the shown name differs from it, the positions are wrong.
	if e.Name != name {
		found.Named = []span{{Text: e.Name}}
	}
	return found
}

// markWords cuts a text into spans, and marks the matches in the field. If the text has more than limit code points, markWords
// takes only the part around the first match, or else the beginning.
func markWords(text string, matches []readmodel.Match, field readmodel.MatchField, limit int) (all []span) {
	runes := []rune(text)
	isElsewhere := func(m readmodel.Match) bool { return m.Field != field || m.End > len(runes) }
	matches = slices.DeleteFunc(slices.Clone(matches), isElsewhere)

	begin := 0
	if len(runes) > limit && len(matches) > 0 {
		begin = partBegin(runes, matches[0].Start, limit)
	}
	end := min(begin+limit, len(runes))

	if begin > 0 {
		all = append(all, span{Text: "… "})
	}

	// Each match in the part becomes a span, and so does the text before it.
	done := begin
	for _, m := range matches {
		if m.Start >= done && m.End <= end {
			all = append(all, span{Text: string(runes[done:m.Start])}, span{Text: string(runes[m.Start:m.End]), Marked: true})
			done = m.End
		}
	}

	all = append(all, span{Text: string(runes[done:end])})
	if end < len(runes) {
		all = append(all, span{Text: " …"})
	}
	return slices.DeleteFunc(all, func(s span) bool { return s.Text == "" })
}

// partBegin returns where to begin a part of limit code points, so that a quarter of the part comes before the match. Near
// the end of the text, more comes before the match, so that the part stays full. The part begins with its first whole word
// before the match, if there is one.
func partBegin(runes []rune, match, limit int) int {
	begin := min(match-limit/4, len(runes)-limit)
	if begin <= 0 {
		return 0
	}

	for i := begin; i < match; i++ {
		if unicode.IsSpace(runes[i-1]) {
			return i
		}
	}
	return begin
}

// searchLink returns the address of a page of ranked search, without parameters at their defaults.
func searchLink(q readmodel.RankedQuery) string {
	return makeLink(searchPath, []parameter{
		{name: "q", value: q.Words},
		{name: "list", value: string(q.List)},
		{name: "status", value: bounds.Statuses()[q.Status], byDefault: "all"},
		{name: "proofs", value: bounds.Proofs()[q.Proofs], byDefault: "all"},
		{name: "skip", value: strconv.Itoa(q.Skip), byDefault: "0"},
		{name: "limit", value: strconv.Itoa(q.Limit), byDefault: strconv.Itoa(bounds.DefaultRankedLimit)},
	})
}
