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

// SearchPage is the content of one page of ranked search. All of it belongs to one view.
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

func (c SearchPage) page() (page, error) {
	q := c.Query
	if q.Words == "" {
		return page{template: "search", Title: "Szukaj po słowach", Path: searchPath, AsOf: c.AsOf, Finds: true, Data: searchView{Query: q, List: string(q.List)}}, nil
	}

	v := searchView{Query: q, List: string(q.List), Count: entryForms.count(c.Found.Total), Tabs: listTabs(q, c.Found.Facets)}
	for _, h := range c.Found.Hits {
		one, err := newHit(h)
		if err != nil {
			return page{}, err
		}
		v.Hits = append(v.Hits, one)
	}

	for _, words := range c.Found.Suggestions {
		other := q
		other.Words = words
		other.Skip = 0
		v.Suggestions = append(v.Suggestions, option{Value: searchLink(other), Text: words})
	}

	link := func(skip int) string {
		other := q
		other.Skip = skip
		return searchLink(other)
	}
	v.paging = newPaging(q.Skip, q.Limit, len(v.Hits), c.Found.Total, bounds.MaxRankedSkip, link)
	if len(v.Hits) == 0 && c.Found.Total > 0 {
		v.First = link(0)
	}
	return page{template: "search", Title: "Szukane słowa: " + q.Words, Path: searchPath, AsOf: c.AsOf, Named: true, Finds: true, Data: v}, nil
}

// listTabs returns a tab for all lists, and one for each.
func listTabs(q readmodel.RankedQuery, counts [events.NumLists]int) []tab {
	chosen := q.List
	all := 0
	q.Skip = 0
	tabs := []tab{{Text: "Wszystkie", Chosen: chosen == ""}}
	for i, l := range events.Lists() {
		q.List = l
		tabs = append(tabs, tab{wordsOf(l).Title, formatNumber(counts[i]), searchLink(q), l == chosen})
		all += counts[i]
	}

	q.List = ""
	tabs[0].Count = formatNumber(all)
	tabs[0].Link = searchLink(q)
	return tabs
}

func newHit(h readmodel.RankedHit) (hit, error) {
	e, err := newEntry(h.Row)
	if err != nil {
		return hit{}, err
	}

	name, reason := h.Row.Text()
	const noLimit = 1 << 20 // no name is longer
	named := markWords(name, h.Matches, readmodel.InName, noLimit)
	if e.Name != name { // the page leaves characters out, so the positions do not fit
		named = []span{{Text: e.Name}}
	}
	return hit{e, named, markWords(reason, h.Matches, readmodel.InReason, maxExcerpt)}, nil
}

// markWords cuts a text at the positions of the words. If the text is longer than limit, in code points, it takes the part
// around the first of them, beginning with a whole word.
func markWords(text string, matches []readmodel.Match, field readmodel.MatchField, limit int) (all []span) {
	runes := []rune(text)
	isElsewhere := func(m readmodel.Match) bool { return m.Field != field || m.End > len(runes) }
	matches = slices.DeleteFunc(slices.Clone(matches), isElsewhere)

	// A long text begins a little before the first match, with a whole word.
	begin := 0
	if len(runes) > limit && len(matches) > 0 {
		first := matches[0].Start
		begin = max(0, min(first-limit/4, len(runes)-limit))
		for i := begin; i > 0 && i < first; i++ {
			if unicode.IsSpace(runes[i-1]) {
				begin = i
				break
			}
		}
	}

	end := min(begin+limit, len(runes))

	if begin > 0 {
		all = append(all, span{Text: "… "})
	}

	// The words of the part, each in a span of its own.
	next := begin
	add := func(to int, isMarked bool) {
		if to > next {
			all = append(all, span{string(runes[next:to]), isMarked})
			next = to
		}
	}

	for _, m := range matches {
		if m.Start >= next && m.End <= end {
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
	return makeLink(searchPath, [][3]string{
		{"q", q.Words}, {"list", string(q.List)}, {"status", bounds.Statuses()[q.Status], "all"}, {"proofs", bounds.Proofs()[q.Proofs], "all"},
		{"skip", strconv.Itoa(q.Skip), "0"}, {"limit", strconv.Itoa(q.Limit), strconv.Itoa(bounds.DefaultRankedLimit)},
	})
}
