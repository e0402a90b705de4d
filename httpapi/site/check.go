package site

import (
	"bytes"
	"fmt"
	"html/template"
	"slices"
	"time"
	"unicode/utf8"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/paste"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

// CheckPage is the content of the person check. All of it belongs to one view.
type CheckPage struct {
	Paste   paste.Paste // zero for the empty form
	Verdict verdict.Verdict
	Entries [events.NumLists]int // shown entries of each list, in the order of events.Lists
	AsOf    time.Time
}

// checkView is the data of check.html.
type checkView struct {
	Form    string // action of the search form
	Asked   string // the query as typed
	Checked []checked
	Counts  []string
	Verdict verdictView
	Advice  *advice       // nil if there is none for this verdict
	AskID   *askID        // the field in the banner for a missing id, if any
	Warning *warning      // to copy into a chat; nil if the verdict is no warning
	Report  bool          // the person may have to be reported
	Single  *single       // the entry, if only one decides
	Appeal  *entry        // the entry whose appeal is shown next to the verdict
	Alone   string        // a trusted person's id, to be checked alone
	Exact   template.HTML // the deciding entries, if there are several
	Differ  []differing
	Others  template.HTML // other entries with exactly one of the names or ids
	Partial template.HTML // entries whose name has the words of a text for which nothing was found
	Spelled []string      // other spellings of it that find something
	Rest    []option      // links to lists that may have more matches
	Cut     bool          // more was found than fits on the page
	ByID    bool          // the query is an id
	Words   string        // for ranked search, if nothing was found; else empty
}

// askID is the field for an id.
type askID struct {
	Keep   string // the typed text, to be checked together with the id; may be empty
	Server bool   // the id is a server's
	Open   bool   // the steps to it are open
}

// single is the only deciding entry.
type single struct {
	*entry
	Reason  template.HTML // complete; empty if it is longer than singleReason
	Excerpt string        // instead of Reason
}

// Room for the results of a check, in bytes. The rest is for the frame, the advice, and the paste
// itself in every link.
const (
	checkRoom    = MaxPage - 48_000
	differRoom   = 8_000
	singleReason = 6_000
)

// Check appends the page of the person check.
func (s *Site) Check(dst []byte, p CheckPage) ([]byte, error) {
	v := checkView{Form: "/", Asked: p.Paste.Asked}
	page := Page{Title: "Sprawdź, zanim zapłacisz", Path: "/", AsOf: p.AsOf, Finds: true,
		About: "Wpisz nick, ID, wzmiankę albo link do profilu i sprawdź, czy ktoś zgłosił to konto lub serwer jako oszustwo."}
	if v.Asked == "" {
		page.Canonical, page.Share = "/", &Share{Title: page.Title, About: page.About}
		v.Counts = counts(p.Entries)
	} else if err := s.answer(&v, &p); err != nil {
		return dst, err
	} else {
		share := shareOf(&p.Verdict, v.Single)
		page.Answers, page.Title, page.About, page.Share = true, v.Verdict.Title, share.About, &share
	}
	page.Data = v
	return s.Append(dst, "check", page)
}

// counts returns how many entries each list shows, in words.
func counts(n [events.NumLists]int) (said []string) {
	for i, l := range events.Lists() {
		said = append(said, wordsOf(l).Noun.count(n[i]))
	}
	return said
}

// answer fills in the results.
func (s *Site) answer(v *checkView, p *CheckPage) (err error) {
	found := sortHits(p)
	v.Verdict = wording(&p.Verdict, &p.Paste, found.main)
	v.Checked, v.Alone = checkedOf(&p.Verdict, &p.Paste), p.Verdict.Alone
	v.ByID = slices.ContainsFunc(p.Verdict.Findings, func(f verdict.Finding) bool { return f.IsID() })
	if !v.ByID || p.Verdict.Reason == verdict.OneDigitOff {
		v.AskID = missingID(p, found.server())
	}
	v.Advice, v.Report = s.adviceFor(v.Verdict.Class, found.server()), p.Verdict.Value.FoundNobody()
	if v.Differ, err = differences(found.near); err != nil {
		return err
	}
	return s.show(v, p, found)
}

// missingID returns the field for the id that a paste lacks. It omits parts that are not checked,
// since those would hide the answer to the id.
func missingID(p *CheckPage, server bool) *askID {
	if p.Verdict.Value == verdict.Unchecked {
		kind := p.Paste.Kind()
		return &askID{Server: kind == paste.Invitation, Open: kind == paste.Invitation || kind == paste.Message || kind == paste.Place}
	}
	return &askID{Keep: p.Paste.Asked, Server: server}
}

// server reports whether all accused in the verdict are servers.
func (h *hits) server() bool {
	accused, servers := 0, 0
	count := func(r *readmodel.Row) {
		if !r.List().Trusted() {
			accused++
		}
		if r.List() == events.Servers {
			servers++
		}
	}
	for _, r := range slices.Concat(h.main, h.others) {
		count(r)
	}
	for _, n := range h.near {
		count(n.row)
	}
	return servers > 0 && servers == accused
}

// hits is the result of a verdict, the most severe first.
type hits struct {
	main   []*readmodel.Row // entries that the verdict is about
	others []*readmodel.Row // other entries with exactly one of the names or ids
	near   []near           // entries whose name is only near the typed one
}

// near is an entry, and the typed name, which differs from the entry's.
type near struct {
	row   *readmodel.Row
	typed string
}

// sortHits sorts the entries of a verdict by their role, each once.
func sortHits(p *CheckPage) (h hits) {
	seen := map[*readmodel.Row]bool{}
	each := func(f func(of *verdict.Finding, hit *verdict.Hit)) {
		for i := range p.Verdict.Findings {
			of := &p.Verdict.Findings[i]
			for j := range of.Hits {
				if hit := &of.Hits[j]; !seen[hit.Row] {
					f(of, hit)
				}
			}
		}
	}
	each(func(of *verdict.Finding, hit *verdict.Hit) {
		if p.Verdict.About(of, hit) {
			seen[hit.Row] = true
			h.main = append(h.main, hit.Row)
		}
	})
	each(func(_ *verdict.Finding, hit *verdict.Hit) {
		if hit.Same {
			seen[hit.Row] = true
			h.others = append(h.others, hit.Row)
		}
	})
	each(func(_ *verdict.Finding, hit *verdict.Hit) {
		seen[hit.Row] = true
		h.near = append(h.near, near{hit.Row, hit.As})
	})
	slices.SortStableFunc(h.main, graver)
	slices.SortStableFunc(h.others, graver)
	slices.SortStableFunc(h.near, func(a, b near) int { return graver(a.row, b.row) })
	return h
}

// show renders the results that fit, the most important first.
func (s *Site) show(v *checkView, p *CheckPage, found hits) (err error) {
	room := checkRoom
	if len(v.Differ) > 0 {
		room -= differRoom
	}
	if len(found.main) == 1 {
		if v.Single, err = s.single(found.main[0]); err != nil {
			return err
		}
		if v.Single.Accused() {
			v.Appeal = v.Single.entry
		}
		room -= len(v.Single.Reason)
		found.main = nil
	}
	for _, part := range []struct {
		found []*readmodel.Row
		into  *template.HTML
		rows  bool // one line each
	}{{found.main, &v.Exact, false}, {found.others, &v.Others, true}, {p.Verdict.Others, &v.Partial, true}} {
		n := len(part.found)
		if part.rows {
			n = min(n, maxRows)
		}
		var shown int
		*part.into, shown, err = fill(n, room, func(into *bytes.Buffer, i int) error {
			if part.rows {
				return s.row(into, part.found[i])
			}
			return s.item(into, part.found[i], true)
		})
		if err != nil {
			return err
		}
		v.Cut = v.Cut || shown < len(part.found)
		room -= len(*part.into)
	}
	v.Rest = truncatedLists(p, v.Cut)
	if v.Verdict.Value == verdict.None && !v.ByID && utf8.RuneCountInString(v.Asked) <= bounds.MaxSearch {
		v.Words = v.Asked
	}
	v.Spelled = p.Verdict.Spellings
	v.Warning = warningOf(&p.Verdict, v.Single)
	return nil
}

// maxRows is how many entries a check shows that do not decide.
const maxRows = 10

// single renders the only deciding entry. If the reason is too long for the answer, it is on the
// entry's page.
func (s *Site) single(r *readmodel.Row) (*single, error) {
	e, err := s.entry(r)
	if err != nil {
		return nil, err
	}
	v := &single{entry: e}
	if v.Excerpt = excerpt(e.DescHTML); len(e.DescHTML) <= singleReason {
		if whole := shown(e.DescHTML); len(whole) <= singleReason {
			v.Reason, v.Excerpt = whole, ""
		}
	}
	return v, nil
}

// truncatedLists returns the lists that may have more matches.
func truncatedLists(p *CheckPage, cut bool) (lists []option) {
	add := func(l events.List, id, name string) {
		link := listLink(readmodel.ListQuery{List: l, ID: id, Search: name, Limit: bounds.DefaultLimit})
		if text := wordsOf(l).Title; !slices.ContainsFunc(lists, func(o option) bool { return o.Text == text }) {
			lists = append(lists, option{Value: link, Text: text})
		}
	}
	for _, f := range p.Verdict.Findings {
		var n [events.NumLists]int
		for _, h := range f.Hits {
			if i, ok := h.Row.List().Index(); ok {
				n[i]++
			}
		}
		for i, l := range events.Lists() {
			if f.Number == "" && (n[i] >= readmodel.MaxGroup || cut && n[i] > 0) {
				add(l, f.ID, f.Name)
			}
		}
	}
	return lists
}

// differing is an entry whose name is near the typed one. The differing characters are marked in
// both.
type differing struct {
	Asked, Name template.HTML
	ChatID      string
	Link        string
	Why         string
	Status      string
	Class       string
}

// differences returns the differences that fit.
func differences(nears []near) (all []differing, err error) {
	room := differRoom
	for _, n := range nears {
		public, err := n.row.Public()
		if err != nil {
			return nil, fmt.Errorf("site: %w", err)
		}
		d := differing{
			ChatID: public.ChatID, Link: EntryPath(n.row.List(), n.row.ID()), Why: why(n.typed, public.Name),
			Status: gradeOf(n.row).Status, Class: gradeOf(n.row).Class,
		}
		d.Asked, d.Name = markDifferences(n.typed, public.Name)
		if room -= len(d.Asked) + len(d.Name) + 2*len(d.ChatID) + 600; room < 0 && len(all) > 0 {
			return all, nil
		}
		all = append(all, d)
	}
	return all, nil
}
