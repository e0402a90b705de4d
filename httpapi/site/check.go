package site

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

// CheckPage is the content of the person check. All of it belongs to one view.
type CheckPage struct {
	Asked   string // as typed; empty for the empty form
	Verdict verdict.Verdict
	API     readmodel.CheckQuery  // what the API is asked for the same text; empty if it refuses the text
	Found   readmodel.CheckResult // what the API finds
	Entries [events.NumLists]int  // shown entries of each list, in the order of events.Lists
	Looked  time.Time             // the last moment at which the view was known to be complete, to the minute; zero if unknown
	AsOf    time.Time
}

// checkView is the data of check.html.
type checkView struct {
	Form    string // action of the search form
	Asked   string
	Counts  []string
	Looked  time.Time
	Total   string // entries that were looked through
	Verdict verdictView
	Single  *entry // the entry, if only one decides
	Alone   string // an id in a caution, to be checked alone
	AskID   *askID // the field in the banner for an id, if any
	Listed  []finding
	Class   string   // of the advice
	Server  bool     // the accused are servers
	Warning *warning // to copy into a chat; nil if the verdict is no warning
	Report  bool     // the person may have to be reported
	ByID    bool
	Same    *same  // nil if the API refuses the text
	Words   string // for ranked search, if nothing was found
}

// askID is the field for an id.
type askID struct {
	Keep   string // the typed text, to be checked together with the id; may be empty
	Server bool   // the id is a server's
}

// finding is a part of the text, and what it alone says.
type finding struct {
	Text  string
	IsID  bool
	Says  string
	Class string // of its look
	Rows  []*entry
}

// same is what the API finds, in its order.
type same struct {
	Rows, Similar, Imitates []*entry
	More                    []option // lists with more matches
}

// Check appends the page of the person check.
func (s *Site) Check(dst []byte, p CheckPage) ([]byte, error) {
	page := Page{Title: "Sprawdź, zanim zapłacisz", Path: "/", AsOf: p.AsOf, Finds: true,
		About: "Wpisz nick, ID, wzmiankę albo link do profilu i sprawdź, czy ktoś zgłosił to konto lub serwer jako oszustwo."}
	if p.Asked == "" {
		page.Canonical, page.Data = "/", checkView{Form: "/", Counts: counts(p.Entries)}
		return s.Append(dst, "check", page)
	}

	v, err := s.answer(&p)
	if err != nil {
		return dst, err
	}
	page.Title, page.About, page.Data = v.Verdict.Title, "Otwórz, żeby zobaczyć wynik. Zawsze porównaj ID konta.", v
	if p.Verdict.Value == verdict.Trusted { // a chat is no place to vouch for anybody
		page.Preview = "Sprawdź to ID w rejestrze"
	}
	return s.Append(dst, "check", page)
}

// counts returns how many entries each list shows, in words.
func counts(n [events.NumLists]int) (said []string) {
	for i, l := range events.Lists() {
		said = append(said, wordsOf(l).Noun.count(n[i]))
	}
	return said
}

// answer makes the view of a check.
func (s *Site) answer(p *CheckPage) (v checkView, err error) {
	v = checkView{Form: "/", Asked: p.Asked, Looked: p.Looked, Verdict: wording(&p.Verdict), Alone: p.Verdict.Alone}
	total := 0
	for _, n := range p.Entries {
		total += n
	}
	v.Total = number(total)

	// Who was found.
	if len(p.Verdict.Rows) == 1 {
		if v.Single, err = s.entry(p.Verdict.Rows[0]); err != nil {
			return v, err
		}
	}
	if v.Listed, err = s.findings(&p.Verdict, v.Single); err != nil {
		return v, err
	}
	if v.Same, err = s.same(p); err != nil {
		return v, err
	}

	// What to do next.
	v.Class, v.Server = v.Verdict.Class, areServers(&p.Verdict)
	byID := p.Verdict.Reason == verdict.ByID
	v.ByID = byID || slices.ContainsFunc(p.Verdict.Findings, func(f verdict.Finding) bool { return f.Kind == verdict.ID })
	if !v.ByID || p.Verdict.Reason == verdict.OneDigitOff || p.Verdict.Value == verdict.TrustedName {
		v.AskID = &askID{Keep: p.Asked, Server: v.Server}
		if p.Verdict.Value == verdict.Unchecked { // other text would hide the answer to the id
			v.AskID.Keep = ""
		}
	}
	v.Warning = warningOf(p.Verdict.Value, byID, p.Verdict.Rows)
	v.Report = p.Verdict.Value == verdict.None || p.Verdict.Value == verdict.Unchecked
	if v.Report && !v.ByID && utf8.RuneCountInString(p.Asked) <= bounds.MaxSearch {
		v.Words = p.Asked
	}
	return v, nil
}

// areServers reports whether all accused that were found are servers.
func areServers(v *verdict.Verdict) (are bool) {
	for _, f := range v.Findings {
		for _, r := range f.Rows {
			if r.List() == events.Scammers {
				return false
			}
			are = are || r.List() == events.Servers
		}
	}
	return are
}

// maxFindings is how many parts of a text a page lists, each with at most readmodel.MaxGroup entries.
const maxFindings = 30

// findings lists what was found, the most severe first, unless it is only the deciding entry.
func (s *Site) findings(v *verdict.Verdict, only *entry) (all []finding, err error) {
	found := slices.Clone(v.Findings)
	slices.SortStableFunc(found, func(a, b verdict.Finding) int { return gravest(a.Rows) - gravest(b.Rows) })
	if only != nil && len(found) == 1 && len(found[0].Rows) == 1 {
		return nil, nil
	}

	for _, f := range found[:min(len(found), maxFindings)] {
		one := finding{Text: f.Text, IsID: f.Kind == verdict.ID, Says: saysOf(&f), Class: "none"}
		if f.Kind != verdict.ID {
			one.Text = shownName(f.Text)
		}
		if gravity := gravest(f.Rows); gravity < ungraded {
			one.Class = grades()[gravity].Class
		}
		if one.Class == "legit" { // only the banner vouches
			one.Class = "name"
		}
		rows := slices.SortedStableFunc(slices.Values(f.Rows), func(a, b *readmodel.Row) int { return gravity(a) - gravity(b) })
		if one.Rows, err = s.entries(rows[:min(len(rows), readmodel.MaxGroup)]); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// same returns what the API finds for the same text, so that the page never hides it.
func (s *Site) same(p *CheckPage) (*same, error) {
	if p.API == (readmodel.CheckQuery{}) {
		return nil, nil
	}
	var v same
	for _, groups := range []struct {
		found []readmodel.Group
		into  *[]*entry
	}{{p.Found.Groups, &v.Rows}, {p.Found.Similar, &v.Similar}, {[]readmodel.Group{{Rows: p.Found.Imitates}}, &v.Imitates}} {
		for _, g := range groups.found {
			rows, err := s.entries(g.Rows)
			if err != nil {
				return nil, err
			}
			*groups.into = append(*groups.into, rows...)
		}
	}
	for _, g := range p.Found.Groups {
		if len(g.Rows) >= readmodel.MaxGroup {
			link := listLink(readmodel.ListQuery{List: g.List, ID: p.API.ID, Search: p.API.Search, Limit: bounds.DefaultLimit})
			v.More = append(v.More, option{Value: link, Text: wordsOf(g.List).Title})
		}
	}
	return &v, nil
}

// warning is the content of a button that copies it for a chat: a text, and a link to the current state. It has no name,
// since a name may be chosen to ping people, or to be a link.
type warning struct{ Text, Link string }

// warningOf returns the warning of accused, or nil if there is no address of them without a name.
func warningOf(value verdict.Value, byID bool, rows []*readmodel.Row) *warning {
	if value != verdict.Accused && value != verdict.Risk || len(rows) == 0 || len(rows) > 1 && !byID {
		return nil
	}
	r := rows[0]
	w := warning{Text: listed(value, byID, rows) + ".", Link: EntryPath(r.List(), r.ID())}
	if len(rows) > 1 {
		w.Link = "/?id=" + r.ChatID()
	}
	if strings.Trim(r.ChatID(), "0123456789") == "" {
		w.Text += " ID: " + r.ChatID() + "."
	}
	w.Text += " Porównaj ID, zanim zapłacisz:"
	return &w
}
