package site

import (
	"html/template"
	"net/url"
	"strconv"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// The bounds of paging (seed, limits), and the page size that needs no parameter.
const (
	maxSkip   = 20_000
	usualPage = 30
	// MaxPart is the highest number of a part of a reason that is asked for: no reason has more.
	MaxPart = 20
)

// ListPage is what one page of a list is made of; all of it belongs to one view.
type ListPage struct {
	Query readmodel.ListQuery
	Part  int // of the reason, where the page has one entry alone; from 1
	Found readmodel.Page
	AsOf  time.Time // when the data was last complete, where that is to be said; else zero
}

// listView is what list.html shows.
type listView struct {
	listWords
	Query   readmodel.ListQuery
	Sort    []option
	Status  []option // none for legit, of which only verified entries are shown
	Proofs  []option
	Limit   int // where it is not the usual one
	Any     bool
	Count   string
	Range   string
	Entries template.HTML
	Newer   string // addresses; empty: none
	Older   string
	TooFar  bool // there is more than can be paged to
	Parts   parts
}

// List appends the page of a list.
func (s *Site) List(dst []byte, p ListPage) ([]byte, error) {
	q := p.Query
	v := listView{
		listWords: wordsOf(q.List), Query: q, Any: q.Search != "" || q.ID != "" || q.Status != readmodel.StatusAll || q.Proofs != readmodel.ProofsAll,
		Sort: sortOptions(q.Sort), Proofs: proofsOptions(q.Proofs),
		Count: entries().count(p.Found.Total),
	}
	if q.List != events.Legit {
		v.Status = statusOptions(q.Status)
	}
	if q.Limit != usualPage {
		v.Limit = q.Limit
	}
	shown, err := s.fillList(&v, &p)
	if err != nil {
		return dst, err
	}
	v.page(&p, shown)
	return s.Append(dst, "list", Page{Title: v.Title, Path: v.Path, AsOf: p.AsOf, Data: v})
}

// fillList renders as many entries as fit, and returns how many.
func (s *Site) fillList(v *listView, p *ListPage) (shown int, err error) {
	pieces := make([]piece, len(p.Found.Rows))
	for i, r := range p.Found.Rows {
		if pieces[i], err = s.piece(p.Query.List, r, s.entryLinkFor(p, r), moreLink(p, r, i), p.alone()); err != nil {
			return 0, err
		}
	}
	if p.alone() {
		v.Entries, v.Parts = whole(&pieces[0], p.Part, listLink(p.Query))
		return 1, nil
	}
	v.Entries, shown = fill(pieces, entryRoom)
	return shown, nil
}

// alone says that the page is one entry's, and so holds its reason whole, in parts where it is too long.
func (p *ListPage) alone() bool { return p.Query.ID != "" && len(p.Found.Rows) == 1 }

// page sets the links to what is before and after the page's entries.
func (v *listView) page(p *ListPage, shown int) {
	q, next := p.Query, p.Query.Skip+shown
	if shown > 0 {
		v.Range = "pozycje " + number(q.Skip+1) + "–" + number(next)
		if shown == 1 {
			v.Range = "pozycja " + number(next)
		}
	}
	if q.Skip > 0 {
		before := q
		before.Skip = max(0, min(q.Skip, p.Found.Total)-q.Limit)
		v.Newer = listLink(before)
	}
	if next < p.Found.Total && shown > 0 {
		v.TooFar = next > maxSkip
		if q.Skip = next; !v.TooFar {
			v.Older = listLink(q)
		}
	}
}

// entryLinkFor is empty on the page that it would lead to.
func (s *Site) entryLinkFor(p *ListPage, r *readmodel.Row) string {
	if p.Query.ID != "" {
		return ""
	}
	return entryLink(p.Query.List, r.ChatID())
}

// moreLink leads to where the whole reason is: the chat id's page, and from there, where several share
// the id, to a page of one entry.
func moreLink(p *ListPage, r *readmodel.Row, i int) string {
	if p.Query.ID == "" {
		return entryLink(p.Query.List, r.ChatID())
	}
	q := p.Query
	q.Skip, q.Limit = q.Skip+i, 1
	return listLink(q)
}

// listLink is the address of a list's page, without what goes without saying.
func listLink(q readmodel.ListQuery) string {
	values := url.Values{}
	set := func(name, value, usual string) {
		if value != usual {
			values.Set(name, value)
		}
	}
	set("search", q.Search, "")
	set("id", q.ID, "")
	set("sort", sortNames()[q.Sort], "newest")
	set("status", statusNames()[q.Status], "all")
	set("proofs", proofsNames()[q.Proofs], "all")
	set("skip", strconv.Itoa(q.Skip), "0")
	set("limit", strconv.Itoa(q.Limit), strconv.Itoa(usualPage))
	if len(values) == 0 {
		return "/" + string(q.List)
	}
	return "/" + string(q.List) + "?" + values.Encode()
}
