package site

import (
	"bytes"
	"fmt"
	"html/template"
	"slices"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
	"example.org/registry/readmodel"
)

// CheckPage is the content of the person check. All of it belongs to one view.
type CheckPage struct {
	Paste   paste.Paste          // zero: the empty form
	Answers []Answer             // to each of its readings
	Entries [events.NumLists]int // how many each list shows, in the order of events.Lists
	Reports Reports              // of the lists that accuse
	AsOf    time.Time
}

// Answer is what was found of one reading of a paste.
type Answer struct {
	paste.Reading
	Found readmodel.CheckResult
	// Trusted is who of legit matches, also where Found leaves that list out.
	Trusted []*readmodel.Row
}

// checkView is what check.html shows.
type checkView struct {
	Form       string // where the search is asked
	Asked      string // as typed
	Understood []paste.Reading
	Counts     []string
	Chart      chart
	Verdict    verdict
	Advice     *advice       // nil: none for this verdict
	Single     *single       // who it is, where only one matches
	Appeal     *entry        // whose appeal stands beside the answer
	Exact      template.HTML // entries with exactly this id or name, where several match
	Namesakes  template.HTML // entries with exactly this name, where others have the id
	Partial    template.HTML // entries whose name or id contains what was asked for
	PartialOf  string        // what they contain
	Imitated   []imitated
	Similar    template.HTML
	Rest       []option // lists that may have more matches: link and text
	Left       bool     // more matches were found than the page has room for
	ByID       bool     // an id was asked for
	Words      string   // for ranked search, where this search found nothing or much; empty: no use
}

// single is the one entry that matches.
type single struct {
	*entry
	Reason template.HTML
	More   bool // Reason is not the whole
}

// Room for what a check shows of a paste, in bytes. What is left is for the frame, the advice, and the paste itself in
// every link.
const (
	checkRoom    = MaxPage - 26_000
	imitatedRoom = 8_000
	singleReason = 6_000
)

// Check appends the page of the person check.
func (s *Site) Check(dst []byte, p CheckPage) ([]byte, error) {
	v := checkView{Form: "/", Asked: p.Paste.Text}
	page := Page{Title: "Sprawdź, zanim zapłacisz", Path: "/", AsOf: p.AsOf, Finds: true,
		About: "Wpisz nick, ID, wzmiankę albo link do profilu i sprawdź, czy ktoś zgłosił to konto lub serwer jako oszustwo."}
	if v.Asked == "" {
		page.Canonical, page.Share = "/", &Share{page.Title, page.About}
		v.Counts, v.Chart = counts(p.Entries), newChart("Zgłoszenia w ostatnich 12 miesiącach", p.Reports, tallChart)
	} else if err := s.answer(&v, &p); err != nil {
		return dst, err
	} else {
		page.Title, page.About = v.Verdict.Title, ""
	}
	page.Data = v
	return s.Append(dst, "check", page)
}

// counts says how many entries each list shows.
func counts(n [events.NumLists]int) (said []string) {
	for i, l := range events.Lists() {
		said = append(said, wordsOf(l).Noun.count(n[i]))
	}
	return said
}

// match is a row that was found, and its list.
type match struct {
	list events.List
	row  *readmodel.Row
}

// The ranks of a match, best first: by the id, by exactly the name, by a part of one of them.
const (
	byID = iota
	byName
	byPart
	numMatches
)

// answer fills in what was found.
func (s *Site) answer(v *checkView, p *CheckPage) error {
	found := sort(p.Answers)
	v.ByID = slices.ContainsFunc(p.Answers, func(a Answer) bool { return a.ID != "" })
	v.Understood = understood(p)
	main, others := found[byID], found[byName]
	if len(main) == 0 {
		main, others = found[byName], nil
	}
	var err error
	if v.Imitated, err = imitations(p.Answers, found[byName]); err != nil {
		return err
	}
	switch {
	case len(main) > 0:
		v.Verdict = verdictOf(main, len(found[byID]) > 0, endless(p.Answers))
		if v.ByID && len(found[byID]) == 0 {
			v.Verdict.Text = "Podanego ID nie ma na żadnej liście, ale jest na niej nazwa. " + v.Verdict.Text
		}
	case len(v.Imitated) > 0:
		v.Verdict = verdict{"risk", "Ostrożnie! Ta nazwa tylko przypomina nazwę osoby zaufanej",
			"To nie jest ta nazwa. Ktoś może podszywać się pod osobę zaufaną: porównaj nazwy litera po literze, a najlepiej porównaj ID."}
	default:
		v.Verdict = nobody(p.Paste.Kind, found[byPart], v.ByID)
	}
	if a, ok := s.advice[v.Verdict.Class]; ok {
		v.Advice = &a
	}
	return s.show(v, p, main, others, found[byPart])
}

// show renders what was found, the most important first, as far as it fits.
func (s *Site) show(v *checkView, p *CheckPage, main, others, partial []match) (err error) {
	room := checkRoom
	if len(v.Imitated) > 0 {
		room -= imitatedRoom
	}
	if len(main) == 1 {
		if v.Single, err = s.single(main[0]); err != nil {
			return err
		}
		if v.Single.Accused() {
			v.Appeal = v.Single.entry
		}
		room -= len(v.Single.Reason)
		main = nil
	}
	for _, part := range []struct {
		found []match
		into  *template.HTML
	}{{main, &v.Exact}, {others, &v.Namesakes}, {partial, &v.Partial}} {
		pieces, err := s.matches(part.found)
		if err != nil {
			return err
		}
		var shown, used int
		*part.into, shown, used = fillMost(pieces, room)
		v.Left = v.Left || shown < len(pieces)
		room -= used
	}
	v.PartialOf = partialOf(p.Answers)
	v.Rest = rest(p.Answers, v.Left)
	if (len(v.Rest) > 0 || v.Verdict.Class == "none") && !v.ByID {
		v.Words = searchable(v.Asked)
	}
	return s.appendSimilar(v, p.Answers, room)
}

// single renders who it is.
func (s *Site) single(m match) (*single, error) {
	e, err := s.entry(m.list, m.row)
	if err != nil {
		return nil, err
	}
	v := &single{entry: e}
	read := beginning(e.DescHTML)
	reason, _, more := sanitise(s.policy, read).part(place{}, singleReason)
	v.Reason, v.More = template.HTML(reason), more || len(read) < len(e.DescHTML)
	return v, nil
}

// sort sorts what was found of all readings by the ranks, each entry once. Within a rank the gravest come first: who
// reads only one should read that.
func sort(answers []Answer) (found [numMatches][]match) {
	best := map[match]int{}
	var order []match
	add := func(m match, rank int) {
		before, known := best[m]
		if !known {
			order = append(order, m)
		}
		if !known || rank < before {
			best[m] = rank
		}
	}
	for _, a := range answers {
		for _, g := range a.Found.Groups {
			for _, r := range g.Rows {
				add(match{g.List, r}, a.rank(r))
			}
		}
		for _, r := range a.Trusted {
			if rank := a.rank(r); rank < byPart {
				add(match{events.Legit, r}, rank)
			}
		}
	}
	for _, m := range order {
		found[best[m]] = append(found[best[m]], m)
	}
	for _, rank := range found[:byPart] {
		slices.SortStableFunc(rank, func(a, b match) int { return gravity(a) - gravity(b) })
	}
	return found
}

// rank returns how r matches the reading.
func (a *Answer) rank(r *readmodel.Row) int {
	switch {
	case a.ID != "" || r.ChatID() == a.Name:
		return byID
	case r.ExactMatch(a.Name):
		return byName
	}
	return byPart
}

func gravity(m match) int {
	return slices.Index([]string{"scam", "risk", "legit"}, class(m.list, m.row.Verified()))
}

// understood returns the readings beyond what was typed.
func understood(p *CheckPage) (other []paste.Reading) {
	for _, a := range p.Answers {
		if a.ID != p.Paste.Text && a.Name != p.Paste.Text {
			other = append(other, a.Reading)
		}
	}
	return other
}

// nobody returns the verdict without exact matches.
func nobody(kind paste.Kind, partial []match, byID bool) verdict {
	switch {
	case len(partial) > 0:
		return verdict{"none", "Nie ma wpisu o dokładnie takiej nazwie",
			"Ten tekst jest częścią nazwy lub ID innych wpisów. To mogą być inne osoby, więc porównaj ID."}
	case kind == paste.Invitation:
		return verdict{"none", "Z zaproszenia nie da się odczytać serwera",
			"Zaproszenie nie mówi, do którego serwera prowadzi. Wklej nazwę serwera albo jego ID: w ustawieniach włącz tryb dewelopera, " +
				"kliknij nazwę serwera prawym przyciskiem i wybierz „Kopiuj ID serwera”."}
	case kind == paste.Place:
		return verdict{"none", "Z tego nie da się odczytać osoby ani serwera",
			"To odnośnik do roli, kanału albo rozmowy. Wklej nick osoby, nazwę serwera albo ID."}
	case kind == paste.Foreign:
		return verdict{"none", "Tego rejestr nie sprawdza",
			"Na listach są konta i serwery na czacie, a nie strony, adresy e-mail, numery telefonów ani rachunków. Wklej nick albo ID."}
	case byID:
		return verdict{"none", "Nie ma na żadnej liście", "Nie mamy wpisu o tym ID. To nie znaczy, że można zaufać."}
	}
	return verdict{"none", "Nie ma na żadnej liście", "Nie mamy wpisu o tej nazwie. To nie znaczy, że można zaufać."}
}

// partialOf returns the first text that something contains.
func partialOf(answers []Answer) string {
	for _, a := range answers {
		for _, g := range a.Found.Groups {
			if slices.ContainsFunc(g.Rows, func(r *readmodel.Row) bool { return a.rank(r) == byPart }) {
				return a.Name
			}
		}
	}
	return ""
}

// rest returns the lists that may have more matches.
func rest(answers []Answer, left bool) (lists []option) {
	for _, a := range answers {
		for _, g := range a.Found.Groups {
			if !left && len(g.Rows) < readmodel.MaxGroup {
				continue
			}
			link := listLink(readmodel.ListQuery{List: g.List, ID: a.ID, Search: a.Name, Limit: usualPage})
			if text := wordsOf(g.List).Title; !slices.ContainsFunc(lists, func(o option) bool { return o.Text == text }) {
				lists = append(lists, option{Value: link, Text: text})
			}
		}
	}
	return lists
}

// endless reports whether a list has as many exact matches as a check shows, so that there may be more.
func endless(answers []Answer) bool {
	for _, a := range answers {
		for _, g := range a.Found.Groups {
			if len(g.Rows) == readmodel.MaxGroup && a.rank(g.Rows[readmodel.MaxGroup-1]) < byPart {
				return true
			}
		}
	}
	return false
}

func (s *Site) matches(found []match) ([]piece, error) {
	pieces := make([]piece, len(found))
	for i, m := range found {
		var err error
		if pieces[i], err = s.piece(m.list, m.row); err != nil {
			return nil, err
		}
	}
	return pieces, nil
}

// similarEntry is what _similar.html shows of an entry whose name only looks like the one asked for.
type similarEntry struct {
	readmodel.PublicEntry
	Status, Why, Link string
}

// appendSimilar renders the entries of similar names into the room that is left. An entry that matches some reading is
// not similar to another.
func (s *Site) appendSimilar(v *checkView, answers []Answer, room int) error {
	shown := map[*readmodel.Row]bool{}
	for _, rank := range sort(answers) {
		for _, m := range rank {
			shown[m.row] = true
		}
	}
	var out bytes.Buffer
	for _, a := range answers {
		for _, g := range a.Found.Similar {
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
				err = s.similar.Execute(&out, similarEntry{public, status(g.List, public.Verified), why(public.Name, a.Name), EntryPath(g.List, r.ID())})
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
	v.Similar = template.HTML(out.String())
	switch class := v.Verdict.Class; {
	case v.Similar == "":
	case class == "none":
		v.Verdict.Text += " Są jednak nazwy, które wyglądają podobnie: zobacz niżej."
	case class == "legit": // a green answer must not hide an impostor
		v.Verdict.Text += " Zgłoszono też kogoś o podobnej nazwie: zobacz niżej."
	}
	return nil
}

// imitated is a trusted person whose looks a name takes. The differing characters are marked in both names.
type imitated struct {
	Asked, Name template.HTML
	ChatID      string
	Link        string
	Why         string
}

// imitations returns whom the readings imitate, unless they name that very person.
func imitations(answers []Answer, named []match) (all []imitated, err error) {
	room := imitatedRoom
	seen := map[*readmodel.Row]bool{}
	for _, m := range named {
		seen[m.row] = true
	}
	for _, a := range answers {
		for _, r := range a.Found.Imitates {
			if seen[r] {
				continue
			}
			seen[r] = true
			public, err := r.Public()
			if err != nil {
				return nil, fmt.Errorf("site: %w", err)
			}
			i := imitated{ChatID: public.ChatID, Link: EntryPath(events.Legit, r.ID()), Why: why(a.Name, public.Name)}
			i.Asked, i.Name = markDifferences(a.Name, public.Name)
			if room -= len(i.Asked) + len(i.Name) + 2*len(i.ChatID) + 500; room < 0 && len(all) > 0 {
				return all, nil
			}
			all = append(all, i)
		}
	}
	return all, nil
}
