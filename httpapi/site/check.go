package site

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// maxGroup is the most entries that a check shows of a list (seed, limits): there may be more then.
const maxGroup = 20

// CheckPage is what the person check is made of; all of it belongs to one view.
type CheckPage struct {
	Query   readmodel.CheckQuery // zero: nothing was asked
	Found   readmodel.CheckResult
	Entries [3]int // how many each list shows, in the order of events.Lists
	AsOf    time.Time
}

// checkView is what check.html shows.
type checkView struct {
	Asked   string // as it was understood
	ByID    bool
	Counts  []string
	Verdict verdict
	Exact   template.HTML // entries of that very name or id
	Partial template.HTML // entries whose name or id contains it
	Similar template.HTML
	Rest    []option // lists that may hold more matches: address and text
	Left    bool     // there are more matches than there was room for
}

// verdict is the plain answer.
type verdict struct {
	Class string // of its look
	Title string
	Text  string
}

// Check appends the page of the person check.
func (s *Site) Check(dst []byte, p CheckPage) ([]byte, error) {
	v := checkView{Asked: p.Query.ID, ByID: p.Query.ID != ""}
	if !v.ByID {
		v.Asked = p.Query.Search
	}
	page := Page{Title: "Sprawdź osobę lub serwer", Path: "/", AsOf: p.AsOf, About: "Sprawdź, czy osoba lub serwer jest na liście oszustów, na liście ryzyka albo na liście zaufanych."}
	if v.Asked == "" {
		v.Counts = counts(p.Entries)
	} else if err := s.answer(&v, &p); err != nil {
		return dst, err
	} else {
		page.Title, page.About = v.Verdict.Title, ""
	}
	page.Data = v
	return s.Append(dst, "check", page)
}

func counts(n [3]int) []string {
	return []string{
		forms{"zgłoszony oszust", "zgłoszonych oszustów", "zgłoszonych oszustów"}.count(n[0]),
		forms{"zgłoszony serwer", "zgłoszone serwery", "zgłoszonych serwerów"}.count(n[1]),
		forms{"osoba zaufana", "osoby zaufane", "osób zaufanych"}.count(n[2]),
	}
}

// answer fills in what was found: first who it is about, then whom else it may be about.
func (s *Site) answer(v *checkView, p *CheckPage) error {
	exact, partial := split(p)
	v.Verdict = verdictOf(exact, partial, v.ByID || sameID(exact, p.Query.Search), endless(p))
	room := entryRoom
	for _, part := range []struct {
		found []match
		into  *template.HTML
	}{{exact, &v.Exact}, {partial, &v.Partial}} {
		pieces, err := s.matches(part.found)
		if err != nil {
			return err
		}
		var shown, used int
		*part.into, shown, used = fillMost(pieces, room)
		v.Left = v.Left || shown < len(pieces)
		room -= used
	}
	v.Rest = rest(p, v.Left)
	return s.similar(v, p, room)
}

// match is a found row and the list it is on.
type match struct {
	list events.List
	row  *readmodel.Row
}

// split parts those of that very name or id from those whose name or id contains what was asked for:
// these may be somebody else, and must not look like an answer.
func split(p *CheckPage) (exact, partial []match) {
	for _, g := range p.Found.Groups {
		for _, r := range g.Rows {
			if p.exact(r) {
				exact = append(exact, match{g.List, r})
			} else {
				partial = append(partial, match{g.List, r})
			}
		}
	}
	slices.SortStableFunc(exact, func(a, b match) int { return gravity(a) - gravity(b) })
	return exact, partial
}

// sameID: whoever typed an id and found it needs no warning about names.
func sameID(exact []match, search string) bool {
	return len(exact) > 0 && !slices.ContainsFunc(exact, func(m match) bool { return m.row.ChatID() != search })
}

// endless: a list has as many exact matches as a check shows, so there may be more.
func endless(p *CheckPage) bool {
	return slices.ContainsFunc(p.Found.Groups, func(g readmodel.Group) bool {
		return len(g.Rows) == maxGroup && p.exact(g.Rows[maxGroup-1])
	})
}

// exact: the row is of that very name or id.
func (p *CheckPage) exact(r *readmodel.Row) bool { return p.Query.ID != "" || r.Named(p.Query.Search) }

// gravity puts what was verified before what was only reported: who reads one entry reads that.
func gravity(m match) int {
	if class(m.list, m.row.Verified()) == "scam" {
		return 0
	}
	return 1
}

func (s *Site) matches(found []match) ([]piece, error) {
	pieces := make([]piece, len(found))
	for i, m := range found {
		link := entryLink(m.list, m.row.ChatID())
		var err error
		if pieces[i], err = s.piece(m.list, m.row, link, link, false); err != nil {
			return nil, err
		}
	}
	return pieces, nil
}

// rest names the lists that a search continues in.
func rest(p *CheckPage, left bool) (lists []option) {
	for _, g := range p.Found.Groups {
		if left || len(g.Rows) == maxGroup {
			link := entryLink(g.List, p.Query.ID)
			if p.Query.ID == "" {
				link = "/" + string(g.List) + "?search=" + url.QueryEscape(p.Query.Search)
			}
			lists = append(lists, option{Value: link, Text: wordsOf(g.List).Title})
		}
	}
	return lists
}

// look is what similar.html shows of a name that only looks like the one asked for.
type look struct {
	readmodel.Public
	Status, Why, Link string
}

// similar renders the names that look alike into what room is left.
func (s *Site) similar(v *checkView, p *CheckPage, room int) error {
	var out bytes.Buffer
	for _, g := range p.Found.Similar {
		for _, r := range g.Rows {
			public, err := r.Public()
			if err != nil {
				return fmt.Errorf("site: %w", err)
			}
			before := out.Len()
			err = s.looks.Execute(&out, look{public, status(g.List, public.Verified), why(public.Name, p.Query.Search), entryLink(g.List, public.ChatID)})
			if err != nil {
				return fmt.Errorf("site: similar entry %s: %w", public.ID, err)
			}
			if out.Len() > room {
				out.Truncate(before)
				break
			}
		}
	}
	v.Similar = template.HTML(out.String())
	switch class := v.Verdict.Class; {
	case v.Similar == "":
	case class == "none":
		v.Verdict.Text += " Są jednak nazwy, które wyglądają podobnie: zobacz niżej."
	case class == "legit": // the green answer must not hide whoever poses as that person
		v.Verdict.Text += " Zgłoszono też kogoś o podobnej nazwie: zobacz niżej."
	}
	return nil
}
