package site

import (
	"html/template"
	"net/url"
	"time"

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
