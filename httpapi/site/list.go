package site

import (
	"bytes"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// entryRoom bounds the entries of a list, in bytes. The rest of MaxPage is for the frame, the
// forms, and the longest search in each link.
const entryRoom = MaxPage - 24_000

// ListPage is the content of one page of a list. All of it belongs to one view.
type ListPage struct {
	Query  readmodel.ListQuery
	Found  readmodel.Page
	Totals readmodel.Totals
	AsOf   time.Time // as in Page
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
	Entries template.HTML
	paging
	Last string // link to the last page, for visitors beyond it
}

// paging is the number of this page, and links to the pages before and after.
type paging struct {
	Range        string
	Newer, Older string // links, if any
	TooFar       bool   // no link reaches what follows
}

// newPaging returns the paging of a page that shows some of total results, after the first skip. link
// returns the address of the page that begins after the first skip.
func newPaging(skip, limit, shown, total, maxSkip int, link func(skip int) string) (p paging) {
	next := skip + shown
	p.Range = whichPage(skip, limit, total, shown)
	if skip > 0 {
		p.Newer = link(max(0, min(skip, total)-limit))
	}
	if next < total && shown > 0 {
		if p.TooFar = next > maxSkip; !p.TooFar {
			p.Older = link(next)
		}
	}
	return p
}

// tab links to the entries of a status.
type tab struct {
	Text, Count, Link string
	Chosen            bool
}

// List appends the page of a list.
func (s *Site) List(dst []byte, p ListPage) ([]byte, error) {
	q := p.Query
	v := listView{
		listWords: wordsOf(q.List), Query: q, Any: q.Search != "" || q.ID != "" || q.Status != readmodel.StatusAll || q.Proofs != readmodel.ProofsAll,
		Sort: sortOptions(q.Sort), Proofs: proofsOptions(q.Proofs), Open: q.Sort != readmodel.Newest || q.Proofs != readmodel.ProofsAll,
		Count: entries().count(p.Found.Total),
	}
	if !q.List.Trusted() {
		v.Tabs = tabs(q, p.Totals)
		v.Status = strings.TrimPrefix(bounds.Statuses()[q.Status], bounds.Statuses()[readmodel.StatusAll])
	}
	if q.Limit != bounds.DefaultLimit {
		v.Limit = q.Limit
	}
	var shown int
	var err error
	v.Entries, shown, err = fill(len(p.Found.Rows), entryRoom, func(into *bytes.Buffer, i int) error {
		return s.item(into, p.Found.Rows[i])
	})
	if err != nil {
		return dst, err
	}
	link := func(skip int) string { q.Skip = skip; return listLink(q) }
	v.paging = newPaging(q.Skip, q.Limit, shown, p.Found.Total, bounds.MaxSkip, link)
	if last := p.Found.Total - 1; shown == 0 && last >= 0 {
		v.Last = link(min(last, bounds.MaxSkip) / q.Limit * q.Limit)
	}
	return s.Append(dst, "list", Page{Title: v.Title, Path: v.Path, About: v.About, AsOf: p.AsOf, Named: q.List.Trusted(), Data: v})
}

// tabs returns a tab for each status.
func tabs(q readmodel.ListQuery, t readmodel.Totals) (all []tab) {
	chosen := q.Status
	q.Skip = 0
	for _, one := range []struct {
		status readmodel.Status
		text   string
		count  int
	}{{readmodel.StatusAll, "Wszystkie", t.All}, {readmodel.StatusVerified, "Lista oszustów", t.Verified}, {readmodel.StatusRisk, "Lista ryzyka", t.Risk}} {
		q.Status = one.status
		all = append(all, tab{one.text, number(one.count), listLink(q), one.status == chosen})
	}
	return all
}

// whichPage returns the number of this page and of all pages. If a page does not begin at a
// multiple of its size, because earlier entries did not fit, it returns which entries the page has.
func whichPage(skip, limit, total, shown int) string {
	switch next := skip + shown; {
	case shown == 0 || skip == 0 && next == total:
		return ""
	case skip%limit == 0 && (shown == limit || next == total):
		return "Strona " + number(skip/limit+1) + " z " + number((total+limit-1)/limit)
	case shown == 1:
		return "Pozycja " + number(next)
	default:
		return "Pozycje " + number(skip+1) + "–" + number(next)
	}
}

// listLink returns the address of a list's page, without parameters at their defaults.
func listLink(q readmodel.ListQuery) string {
	values := url.Values{}
	set := func(name, value, usual string) {
		if value != usual {
			values.Set(name, value)
		}
	}
	set("search", q.Search, "")
	set("id", q.ID, "")
	set("sort", bounds.Sorts()[q.Sort], "newest")
	set("status", bounds.Statuses()[q.Status], "all")
	set("proofs", bounds.Proofs()[q.Proofs], "all")
	set("skip", strconv.Itoa(q.Skip), "0")
	set("limit", strconv.Itoa(q.Limit), strconv.Itoa(bounds.DefaultLimit))
	if len(values) == 0 {
		return "/" + string(q.List)
	}
	return "/" + string(q.List) + "?" + values.Encode()
}

// listWords are the Polish words for a list.
type listWords struct {
	Path, Title, About, Lead, Find string
	Noun                           forms // for one entry, several, many
}

func wordsOf(l events.List) listWords {
	switch l {
	case events.Servers:
		return listWords{"/servers", "Serwery", "Lista serwerów zgłoszonych jako podejrzane o oszustwo.",
			"Zgłoszenia potwierdzone są na liście oszustów, a niesprawdzone na liście ryzyka.",
			"Nazwa serwera, ID lub słowo z opisu",
			forms{"zgłoszony serwer", "zgłoszone serwery", "zgłoszonych serwerów"}}
	case events.Legit:
		return listWords{"/legit", "Zaufani", "Lista osób zaufanych.",
			"Moderacja nie miała zastrzeżeń do ich kont w dniu wpisu. Oszuści się pod nich podszywają, więc zawsze porównaj ID.",
			"Nick, ID lub słowo z opisu",
			forms{"osoba zaufana", "osoby zaufane", "osób zaufanych"}}
	default:
		return listWords{"/scammers", "Zgłoszeni", "Lista osób zgłoszonych jako podejrzane o oszustwo.",
			"Zgłoszenia potwierdzone są na liście oszustów, a niesprawdzone na liście ryzyka.",
			"Nick, ID lub słowo z opisu",
			forms{"zgłoszona osoba", "zgłoszone osoby", "zgłoszonych osób"}}
	}
}

// option is a choice in a form.
type option struct {
	Value, Text string
	Chosen      bool
}

func sortOptions(chosen readmodel.Sort) []option {
	return options(bounds.Sorts(), int(chosen), "Najnowsze", "Najstarsze", "Najczęściej oglądane", "Najrzadziej oglądane",
		"Od A do Ż", "Od Ż do A")
}

func proofsOptions(chosen readmodel.Proofs) []option {
	return options(bounds.Proofs(), int(chosen), "Wszystkie", "Z dowodami", "Z dowodami niepublicznymi")
}

func options(values []string, chosen int, texts ...string) []option {
	all := make([]option, len(values))
	for i := range values {
		all[i] = option{values[i], texts[i], i == chosen}
	}
	return all
}
