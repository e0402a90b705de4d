package site

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"slices"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/paste"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

// CheckPage is the content of the person check. All of it belongs to one view. If there is a paste,
// call Decide before making the page.
type CheckPage struct {
	Paste   paste.Paste          // zero for the empty form
	Entries [events.NumLists]int // shown entries of each list, in the order of events.Lists
	Reports Reports              // of the lists of accused
	AsOf    time.Time

	view    *readmodel.View
	verdict verdict.Verdict
	parts   []part
}

// part is the result for an unlisted name: entries whose name or id contains it, or looks as if it
// did.
type part struct {
	name  string
	found readmodel.CheckResult
}

// maxParts is how many unlisted names a check also looks up as substrings of listed names.
const maxParts = 3

// Decide looks up the paste in a view, and makes the verdict. It searches no texts. If it finds no
// entry, FindParts may find more. Its error is ctx's.
func (p *CheckPage) Decide(ctx context.Context, view *readmodel.View) (verdict.Value, error) {
	found, err := verdict.Find(ctx, view, &p.Paste)
	if err != nil {
		return "", err
	}
	p.view, p.verdict = view, verdict.Decide(&p.Paste, found)
	return p.verdict.Value, nil
}

// FindParts finds names that contain the typed text. It searches texts, at most three times. Its
// error is ctx's.
func (p *CheckPage) FindParts(ctx context.Context) error {
	for _, s := range p.verdict.Subjects {
		if len(p.parts) == maxParts {
			break
		}
		if s.IsID() || s.HasParts || paste.Digits(s.Text()) {
			continue
		}
		found, err := p.view.Check(ctx, readmodel.CheckQuery{Search: s.Text()})
		if err != nil {
			return err
		}
		p.parts = append(p.parts, part{s.Text(), found})
	}
	return nil
}

// checkView is the data of check.html.
type checkView struct {
	Form    string // action of the search form
	Asked   string // the query as typed
	Checked []checked
	Counts  []string
	Chart   chart
	Verdict verdictView
	Advice  *advice       // nil if there is none for this verdict
	AskID   *askID        // the field in the banner for a missing id, if any
	Warning *warning      // to copy into a chat; nil if the verdict is no warning
	Report  bool          // the person may have to be reported
	Single  *single       // the entry, if only one decides
	Appeal  *entry        // the entry whose appeal is shown next to the verdict
	Exact   template.HTML // the deciding entries, if there are several
	Differ  []differing
	Others  template.HTML // other entries with exactly one of the names or ids
	Partial template.HTML // entries whose name or id contains the query
	Of      string        // the text that they contain
	Similar template.HTML
	Rest    []option // links to lists that may have more matches
	Cut     bool     // more was found than fits on the page
	ByID    bool     // the query is an id
	Words   string   // for ranked search, if this search found nothing or much; else empty
}

// askID is the field for an id.
type askID struct {
	Keep   string // the typed text, to be checked together with the id; may be empty
	Server bool   // the id is a server's
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
		page.Canonical, page.Share = "/", &Share{Title: page.Title, About: page.About, Picture: "share-home.png"}
		v.Counts, v.Chart = counts(p.Entries), newChart("Zgłoszenia w ostatnich 12 miesiącach", p.Reports, tallChart)
	} else if err := s.answer(&v, &p); err != nil {
		return dst, err
	} else {
		share := shareOf(v.Verdict.Value, v.Single)
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

// match is a matching row, and its list.
type match struct {
	list events.List
	row  *readmodel.Row
}

// answer fills in the results.
func (s *Site) answer(v *checkView, p *CheckPage) (err error) {
	found := sortHits(p)
	v.Verdict = wording(&p.verdict, &p.Paste, found.main)
	v.Checked = checkedOf(&p.verdict, &p.Paste)
	v.ByID = slices.ContainsFunc(p.verdict.Subjects, func(s verdict.Subject) bool { return s.IsID() })
	if !v.ByID {
		v.AskID = missingID(p, found.server())
	}
	v.Advice, v.Report = s.adviceFor(v.Verdict.Class, found.server()), p.verdict.Value.FoundNobody()
	if v.Differ, err = differences(p, found.near); err != nil {
		return err
	}
	return s.show(v, p, found)
}

// missingID returns the field for the id that a paste lacks. It omits parts that are not checked,
// since those would hide the answer to the id.
func missingID(p *CheckPage, server bool) *askID {
	if p.verdict.Value == verdict.Unchecked {
		return &askID{Server: kindOf(&p.verdict) == paste.Invitation}
	}
	return &askID{Keep: p.Paste.Asked, Server: server}
}

// server reports whether all accused in the verdict are servers.
func (h *hits) server() bool {
	accused, servers := 0, 0
	count := func(m match) {
		if m.list != events.Legit {
			accused++
		}
		if m.list == events.Servers {
			servers++
		}
	}
	for _, m := range slices.Concat(h.main, h.others) {
		count(m)
	}
	for _, n := range h.near {
		count(n.match)
	}
	return servers > 0 && servers == accused
}

// hits is the result of a verdict, the most severe first.
type hits struct {
	main   []match // entries that the verdict is about
	others []match // other entries with exactly one of the names or ids
	near   []near  // entries whose name is only near the typed one
}

// near is an entry, and the typed name, which differs from the entry's.
type near struct {
	match
	typed string
}

// sortHits sorts the entries of a verdict by their role, each once.
func sortHits(p *CheckPage) (h hits) {
	seen := map[match]bool{}
	each := func(f func(s *verdict.Subject, hit *verdict.Hit, m match)) {
		for i := range p.verdict.Subjects {
			s := &p.verdict.Subjects[i]
			for j := range s.Hits {
				if r := p.view.Entry(s.Hits[j].List, s.Hits[j].ID); r != nil && !seen[match{s.Hits[j].List, r}] {
					f(s, &s.Hits[j], match{s.Hits[j].List, r})
				}
			}
		}
	}
	each(func(s *verdict.Subject, hit *verdict.Hit, m match) {
		if p.verdict.About(s, hit) {
			seen[m] = true
			h.main = append(h.main, m)
		}
	})
	each(func(s *verdict.Subject, hit *verdict.Hit, m match) {
		if hit.Near == verdict.Same || hit.Near == verdict.Dressed && hit.List != events.Legit {
			seen[m] = true
			h.others = append(h.others, m)
		}
	})
	each(func(s *verdict.Subject, hit *verdict.Hit, m match) {
		seen[m] = true
		h.near = append(h.near, near{m, hit.As})
	})
	slices.SortStableFunc(h.main, graver)
	slices.SortStableFunc(h.others, graver)
	slices.SortStableFunc(h.near, func(a, b near) int { return graver(a.match, b.match) })
	return h
}

func graver(a, b match) int { return gravity(a) - gravity(b) }

func gravity(m match) int { return slices.Index([]string{"scam", "risk", "legit"}, classOf(m)) }

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
		found []match
		into  *template.HTML
		rows  bool // one line each
	}{{found.main, &v.Exact, false}, {found.others, &v.Others, true}, {partial(p.parts), &v.Partial, true}} {
		n := len(part.found)
		if part.rows {
			n = min(n, maxRows)
		}
		var shown int
		*part.into, shown, err = fill(n, room, func(into *bytes.Buffer, i int) error {
			if part.rows {
				return s.row(into, part.found[i].list, part.found[i].row)
			}
			return s.item(into, part.found[i].list, part.found[i].row, true)
		})
		if err != nil {
			return err
		}
		v.Cut = v.Cut || shown < len(part.found)
		room -= len(*part.into)
	}
	v.Of = partialOf(p.parts)
	v.Rest = truncatedLists(p, v.Cut)
	if v.Verdict.Value == verdict.None && !v.ByID {
		v.Words = searchable(v.Asked)
	}
	if v.Verdict.Value == verdict.None && v.Partial != "" {
		v.Verdict.Title = "Nie ma wpisu o dokładnie takiej nazwie"
		v.Verdict.Text = "Ten tekst jest częścią nazwy lub ID innych wpisów. To mogą być inne osoby, więc porównaj ID."
	}
	if err := s.appendSimilar(v, p.parts, room); err != nil {
		return err
	}
	v.Warning = warningOf(v.Verdict.Value, v.Single, checkLink(v.Asked))
	return nil
}

// maxRows is how many entries a check shows that do not decide.
const maxRows = 10

// single renders the only deciding entry. If the reason is too long for the answer, it is on the
// entry's page.
func (s *Site) single(m match) (*single, error) {
	e, err := s.entry(m.list, m.row)
	if err != nil {
		return nil, err
	}
	v := &single{entry: e}
	if v.Excerpt = excerpt(e.DescHTML); len(e.DescHTML) <= singleReason {
		if whole := sanitise(s.policy, e.DescHTML); len(whole) <= singleReason {
			v.Reason, v.Excerpt = whole, ""
		}
	}
	return v, nil
}

// partial returns the entries that contain a name, each once.
func partial(parts []part) (found []match) {
	for _, p := range parts {
		for _, g := range p.found.Groups {
			for _, r := range g.Rows {
				if m := (match{g.List, r}); !slices.Contains(found, m) {
					found = append(found, m)
				}
			}
		}
	}
	return found
}

// partialOf returns the first name that an entry contains.
func partialOf(parts []part) string {
	for _, p := range parts {
		if len(p.found.Groups) > 0 {
			return p.name
		}
	}
	return ""
}

// truncatedLists returns the lists that may have more matches.
func truncatedLists(p *CheckPage, cut bool) (lists []option) {
	add := func(l events.List, id, name string) {
		link := listLink(readmodel.ListQuery{List: l, ID: id, Search: name, Limit: bounds.DefaultLimit})
		if text := wordsOf(l).Title; !slices.ContainsFunc(lists, func(o option) bool { return o.Text == text }) {
			lists = append(lists, option{Value: link, Text: text})
		}
	}
	for _, s := range p.verdict.Subjects {
		var n [events.NumLists]int
		for _, h := range s.Hits {
			if i, ok := h.List.Index(); ok {
				n[i]++
			}
		}
		for i, l := range events.Lists() {
			if n[i] >= readmodel.MaxGroup || cut && n[i] > 0 {
				name := ""
				if !s.IsID() {
					name = s.Text()
				}
				add(l, s.ID, name)
			}
		}
	}
	for _, part := range p.parts {
		for _, g := range part.found.Groups {
			if cut || len(g.Rows) >= readmodel.MaxGroup {
				add(g.List, "", part.name)
			}
		}
	}
	return lists
}

// similarEntry is the data of _similar.html: an entry whose name only looks as if it contained the
// query.
type similarEntry struct {
	readmodel.PublicEntry
	Status, Why, Link string
}

// appendSimilar renders the entries of similar names that fit into the remaining room.
func (s *Site) appendSimilar(v *checkView, parts []part, room int) error {
	shown := map[*readmodel.Row]bool{}
	for _, m := range partial(parts) {
		shown[m.row] = true
	}
	var out bytes.Buffer
	for _, p := range parts {
		for _, g := range p.found.Similar {
			for _, r := range g.Rows {
				if shown[r] {
					continue
				}
				shown[r] = true
				public, err := r.Public()
				if err != nil {
					return fmt.Errorf("site: %w", err)
				}
				before := out.Len()
				err = s.similar.Execute(&out, similarEntry{public, status(g.List, public.Verified), why(public.Name, p.name), EntryPath(g.List, r.ID())})
				if err != nil {
					return fmt.Errorf("site: similar entry %s: %w", public.ID, err)
				}
				if out.Len() > room {
					out.Truncate(before)
					break
				}
			}
		}
	}
	if v.Similar = template.HTML(out.String()); v.Similar != "" {
		v.Verdict.Text += " Są jednak nazwy, które wyglądają podobnie: zobacz niżej."
	}
	return nil
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
func differences(p *CheckPage, nears []near) (all []differing, err error) {
	room := differRoom
	for _, n := range nears {
		public, err := n.row.Public()
		if err != nil {
			return nil, fmt.Errorf("site: %w", err)
		}
		d := differing{
			ChatID: public.ChatID, Link: EntryPath(n.list, n.row.ID()), Why: why(n.typed, public.Name),
			Status: status(n.list, public.Verified), Class: classOf(n.match),
		}
		d.Asked, d.Name = markDifferences(n.typed, public.Name)
		if room -= len(d.Asked) + len(d.Name) + 2*len(d.ChatID) + 600; room < 0 && len(all) > 0 {
			return all, nil
		}
		all = append(all, d)
	}
	return all, nil
}
