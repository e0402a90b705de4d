package site

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// ListPage is the content of one page of a list. All of it belongs to one view.
type ListPage struct {
	Query readmodel.ListQuery
	Found readmodel.Page
	AsOf  time.Time // when stale data was last known to be complete; zero for current data
}

// listView is the data of list.html.
type listView struct {
	listWords
	Query   readmodel.ListQuery
	Tabs    []tab  // empty for legit, which shows verified entries only
	Status  string // retained by the form; empty for the default
	Sort    []option
	Proofs  []option
	Limit   int  // 0 for the default
	Open    bool // the filters are open
	Any     bool // a filter or search is active
	Count   string
	Entries []*entry
	paging
	Last string // link to the last page, for visitors beyond it
}

func (c ListPage) page() (page, error) {
	q := c.Query
	entries, err := newEntries(c.Found.Rows)
	if err != nil {
		return page{}, err
	}

	v := listView{
		listWords: wordsOf(q.List),
		Query:     q,
		Sort:      newOptions(bounds.Sorts(), int(q.Sort), "Najnowsze", "Najstarsze", "Najczęściej oglądane", "Najrzadziej oglądane", "Od A do Ż", "Od Ż do A"),
		Proofs:    newOptions(bounds.Proofs(), int(q.Proofs), "Wszystkie", "Z dowodami", "Z dowodami niepublicznymi"),
		Open:      q.Sort != readmodel.Newest || q.Proofs != readmodel.ProofsAll,
		Any:       q.Search != "" || q.ID != "" || q.Status != readmodel.StatusAll || q.Proofs != readmodel.ProofsAll,
		Count:     entryForms.count(c.Found.Total),
		Entries:   entries,
	}

	// The list of trusted persons has verified entries only.
	if !q.List.Trusted() {
		v.Tabs = statusTabs(q, c.Found.Totals)
		v.Status = strings.TrimPrefix(bounds.Statuses()[q.Status], bounds.Statuses()[readmodel.StatusAll])
	}
	if q.Limit != bounds.DefaultLimit {
		v.Limit = q.Limit
	}

	link := func(skip int) string { q.Skip = skip; return listLink(q) }
	v.paging = newPaging(q.Skip, q.Limit, len(entries), c.Found.Total, bounds.MaxSkip, link)
	// Beyond the last page, a link leads back to it.
	if last := c.Found.Total - 1; len(entries) == 0 && last >= 0 {
		v.Last = link(min(last, bounds.MaxSkip) / q.Limit * q.Limit)
	}
	return page{template: "list", Title: v.Title, Path: v.Path, About: v.About, AsOf: c.AsOf, Named: q.List.Trusted(), Data: v}, nil
}

// paging is the number of this page, and links to the pages before and after.
type paging struct {
	Range        string
	Newer, Older string // links, if any
	TooFar       bool   // no link reaches what follows
}

// newPaging returns the paging of a page after the first skip of total results. shown is the number of results on the page.
// link returns the address of the page with another skip.
func newPaging(skip, limit, shown, total, maxSkip int, link func(skip int) string) (p paging) {
	next := skip + shown
	if shown > 0 && (skip > 0 || next < total) {
		p.Range = "Pozycje " + formatNumber(skip+1) + "–" + formatNumber(next) + " z " + formatNumber(total)
	}
	if skip > 0 {
		p.Newer = link(max(0, min(skip, total)-limit))
	}

	// The API refuses a greater skip, so no link leads there.
	hasMore := next < total && shown > 0
	p.TooFar = hasMore && next > maxSkip
	if hasMore && !p.TooFar {
		p.Older = link(next)
	}
	return p
}

// tab links to the entries of a status, or of a list.
type tab struct {
	Text, Count, Link string
	Chosen            bool
}

// statusTabs returns a tab for each status.
func statusTabs(q readmodel.ListQuery, t readmodel.Totals) (all []tab) {
	chosen := q.Status
	q.Skip = 0
	add := func(status readmodel.Status, text string, count int) {
		q.Status = status
		all = append(all, tab{text, formatNumber(count), listLink(q), status == chosen})
	}

	add(readmodel.StatusAll, "Wszystkie", t[readmodel.StatusAll])
	add(readmodel.StatusVerified, "Lista oszustów", t[readmodel.StatusVerified])
	add(readmodel.StatusRisk, "Lista ryzyka", t[readmodel.StatusRisk])
	return all
}

// listLink returns the address of a list's page, without parameters at their defaults.
func listLink(q readmodel.ListQuery) string {
	return makeLink("/"+string(q.List), [][3]string{
		{"search", q.Search}, {"id", q.ID}, {"sort", bounds.Sorts()[q.Sort], "newest"}, {"status", bounds.Statuses()[q.Status], "all"},
		{"proofs", bounds.Proofs()[q.Proofs], "all"}, {"skip", strconv.Itoa(q.Skip), "0"}, {"limit", strconv.Itoa(q.Limit), strconv.Itoa(bounds.DefaultLimit)},
	})
}

// makeLink returns an address with the parameters (name, value, default) that are not at their defaults.
func makeLink(path string, parameters [][3]string) string {
	values := url.Values{}
	for _, p := range parameters {
		if p[1] != p[2] {
			values.Set(p[0], p[1])
		}
	}

	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	return path
}

// listWords are the Polish words for a list.
type listWords struct {
	Path, Title, About, Lead, Find string
	Noun                           forms // for one entry, several, many
}

func wordsOf(l events.List) listWords {
	const lead = "Zgłoszenia potwierdzone są na liście oszustów, a niesprawdzone na liście ryzyka."
	switch l {
	case events.Servers:
		return listWords{
			Path:  "/servers",
			Title: "Serwery",
			About: "Lista serwerów zgłoszonych jako podejrzane o oszustwo.",
			Lead:  lead,
			Find:  "Nazwa serwera, ID lub słowo z opisu",
			Noun:  forms{"zgłoszony serwer", "zgłoszone serwery", "zgłoszonych serwerów"},
		}
	case events.Legit:
		return listWords{
			Path:  "/legit",
			Title: "Zaufani",
			About: "Lista osób zaufanych.",
			Lead:  "Moderacja nie miała zastrzeżeń do ich kont w dniu wpisu. Oszuści się pod nich podszywają, więc zawsze porównaj ID.",
			Find:  "Nick, ID lub słowo z opisu",
			Noun:  forms{"osoba zaufana", "osoby zaufane", "osób zaufanych"},
		}
	}

	return listWords{
		Path:  "/scammers",
		Title: "Zgłoszeni",
		About: "Lista osób zgłoszonych jako podejrzane o oszustwo.",
		Lead:  lead,
		Find:  "Nick, ID lub słowo z opisu",
		Noun:  forms{"zgłoszona osoba", "zgłoszone osoby", "zgłoszonych osób"},
	}
}

// option is a choice in a form, or a link.
type option struct {
	Value, Text string
	Chosen      bool
}

func newOptions(values []string, chosen int, texts ...string) (all []option) {
	for i, value := range values {
		all = append(all, option{value, texts[i], i == chosen})
	}
	return all
}
