package site

import (
	"net/url"
	"strconv"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// ListPage is the content of one page of a list. All its fields come from one view of the read model.
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
	Limit   int    // retained by the form; 0 for the default
	Whole   string // link to the whole list; empty if no search and no filter is active
	Count   string
	Entries []*entry
	paging
	Last string // link to the last page, for visitors beyond it
}

func (c ListPage) page() page {
	q := c.Query
	entries := newEntries(c.Found.Rows)
	v := listView{
		listWords: allListWords[q.List],
		Query:     q,
		Sort:      newOptions(bounds.Sorts(), int(q.Sort), "Najnowsze", "Najstarsze", "Najczęściej oglądane", "Najrzadziej oglądane", "Od A do Ż", "Od Ż do A"),
		Proofs:    newOptions(bounds.Proofs(), int(q.Proofs), "Wszystkie", "Z dowodami", "Z dowodami niepublicznymi"),
		Count:     entryForms.count(c.Found.Total),
		Entries:   entries,
	}

	// Link to the whole list if a search or a filter is active.
	if q.Search != "" || q.ID != "" || q.Status != readmodel.StatusAll || q.Proofs != readmodel.ProofsAll {
		v.Whole = v.Path
	}
	if !q.List.Trusted() {
		v.Tabs = statusTabs(q, c.Found.Totals)
		if q.Status != readmodel.StatusAll {
			v.Status = bounds.Statuses()[q.Status]
		}
	}
	if q.Limit != bounds.DefaultLimit {
		v.Limit = q.Limit
	}

	link := func(skip int) string {
		other := q
		other.Skip = skip
		return listLink(other)
	}
	v.paging = newPaging(q.Skip, q.Limit, len(entries), c.Found.Total, bounds.MaxSkip, link)

	// Beyond the last page, link to the last page whose skip the API accepts: 40 for 57 results, 20 a page.
	isBeyondLast := len(entries) == 0 && c.Found.Total > 0
	if isBeyondLast {
		last := min(c.Found.Total-1, bounds.MaxSkip)
		v.Last = link(last / q.Limit * q.Limit)
	}

	p := page{template: "list", Title: v.Title, Path: v.Path, About: v.About, AsOf: c.AsOf, Data: v}
	if q.List.Trusted() {
		p.SiteName = neutralName
	}
	return p
}

// paging says which results a page shows, and links to the pages before and after.
type paging struct {
	Range        string // the positions of the shown results; empty if all results are shown, or none
	Newer, Older string // links, if any
	Unreachable  int    // how many results follow that no link reaches
}

// newPaging returns the paging of a page that shows the results from skip+1 to skip+shown of total. limit results fit on a
// page. link returns the address of the page with another skip.
func newPaging(skip, limit, shown, total, maxSkip int, link func(skip int) string) (p paging) {
	next := skip + shown
	areAllShown := skip == 0 && next >= total
	if shown > 0 && !areAllShown {
		p.Range = "Pozycje " + formatNumber(skip+1) + "–" + formatNumber(next) + " z " + formatNumber(total)
	}
	// A page beyond the last result has no results. From there, Newer leads to the last results.
	if skip > 0 {
		p.Newer = link(max(0, min(skip, total)-limit))
	}

	if shown == 0 || next >= total {
		return p
	}

	// The API refuses a skip above maxSkip, so no link has one.
	if next <= maxSkip {
		p.Older = link(next)
	} else {
		p.Unreachable = total - next
	}
	return p
}

// tab links to the entries of a status, or of a list.
type tab struct {
	Text, Count, Link string
	Chosen            bool
}

// statusTabs returns a tab for each status, which leads to the first page of its entries.
func statusTabs(q readmodel.ListQuery, totals readmodel.Totals) []tab {
	newTab := func(status readmodel.Status, text string) tab {
		other := q
		other.Status = status
		other.Skip = 0
		return tab{Text: text, Count: formatNumber(totals[status]), Link: listLink(other), Chosen: status == q.Status}
	}
	return []tab{
		newTab(readmodel.StatusAll, "Wszystkie"),
		newTab(readmodel.StatusVerified, "Lista oszustów"),
		newTab(readmodel.StatusRisk, "Lista ryzyka"),
	}
}

// listLink returns the address of a list's page, without parameters at their defaults.
func listLink(q readmodel.ListQuery) string {
	return makeLink("/"+string(q.List), []parameter{
		{name: "search", value: q.Search},
		{name: "id", value: q.ID},
		{name: "sort", value: bounds.Sorts()[q.Sort], byDefault: "newest"},
		{name: "status", value: bounds.Statuses()[q.Status], byDefault: "all"},
		{name: "proofs", value: bounds.Proofs()[q.Proofs], byDefault: "all"},
		{name: "skip", value: strconv.Itoa(q.Skip), byDefault: "0"},
		{name: "limit", value: strconv.Itoa(q.Limit), byDefault: strconv.Itoa(bounds.DefaultLimit)},
	})
}

// parameter is a parameter of an address.
type parameter struct{ name, value, byDefault string }

// makeLink returns an address with the parameters that are not at their defaults.
func makeLink(path string, parameters []parameter) string {
	values := url.Values{}
	for _, p := range parameters {
		if p.value != p.byDefault {
			values.Set(p.name, p.value)
		}
	}

	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	return path
}

// listWords are the Polish words for a list.
type listWords struct {
	Path, Title string
	About       string // for search engines and previews
	Lead        string // the paragraph below the title
	Find        string // the label of the search field
	Noun        forms  // for one entry, several, many
}

// reportsLead is the lead of the two lists of reports.
const reportsLead = "Zgłoszenia potwierdzone są na liście oszustów, a niesprawdzone na liście ryzyka."

var allListWords = map[events.List]listWords{
	events.Scammers: {
		Path: "/scammers", Title: "Zgłoszeni", About: "Lista osób zgłoszonych jako podejrzane o oszustwo.",
		Lead: reportsLead, Find: "Nick, ID lub słowo z opisu",
		Noun: forms{"zgłoszona osoba", "zgłoszone osoby", "zgłoszonych osób"},
	},
	events.Servers: {
		Path: "/servers", Title: "Serwery", About: "Lista serwerów zgłoszonych jako podejrzane o oszustwo.",
		Lead: reportsLead, Find: "Nazwa serwera, ID lub słowo z opisu",
		Noun: forms{"zgłoszony serwer", "zgłoszone serwery", "zgłoszonych serwerów"},
	},
	events.Legit: {
		Path: "/legit", Title: "Zaufani", About: "Lista osób zaufanych.",
		Lead: "Moderacja nie miała zastrzeżeń do ich kont w dniu wpisu. Oszuści się pod nich podszywają, więc zawsze porównaj ID.",
		Find: "Nick, ID lub słowo z opisu",
		Noun: forms{"osoba zaufana", "osoby zaufane", "osób zaufanych"},
	},
}

// option is a choice in a form, or a link.
type option struct {
	Value, Text string
	Chosen      bool
}

// newOptions returns an option for each value, with the text at the same index. chosen is the index of the chosen option.
func newOptions(values []string, chosen int, texts ...string) (all []option) {
	for i, value := range values {
		all = append(all, option{Value: value, Text: texts[i], Chosen: i == chosen})
	}
	return all
}
