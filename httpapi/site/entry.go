package site

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
	markdown "example.org/registry/readmodel/reason"
)

// entry is an entry for the templates.
type entry struct {
	readmodel.PublicEntry
	grade
	List     events.List
	Reported time.Time
	Hidden   bool // the name has invisible characters

	proofsShown bool // by /proofs/{id}
}

func (s *Site) entry(r *readmodel.Row) (*entry, error) {
	public, err := r.Public()
	if err != nil {
		return nil, fmt.Errorf("site: %w", err)
	}
	hidden := lookalike.Hidden(public.Name)
	public.Name = shownName(public.Name)
	return &entry{PublicEntry: public, grade: gradeOf(r), List: r.List(), Reported: r.Reported(), Hidden: hidden, proofsShown: s.cfg.Proofs}, nil
}

func (s *Site) entries(rows []*readmodel.Row) (all []*entry, err error) {
	for _, r := range rows {
		e, err := s.entry(r)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// shownName returns a name as pages show it.
func shownName(name string) string {
	if !markdown.IsVisible(name) {
		return "(nazwa bez widocznych znaków)"
	}
	return markdown.Plain(name)
}

// grade has the style and the words of an entry by its list and verification: an unverified report must not look like a
// verified one.
type grade struct {
	Class    string // of the style
	Status   string // in a few words
	standing string // for the title of a page
	Meaning  string // in a sentence
	on, from string // the list, after "na" and after "z"
	call     string // begins an answer
}

// grades returns the grades, the most severe first.
func grades() [3]grade {
	return [...]grade{
		{"scam", "Potwierdzone", "zgłoszenie potwierdzone", "Moderacja potwierdziła to zgłoszenie.", "liście oszustów", "listy oszustów", "Uwaga! "},
		{"risk", "Niesprawdzone", "zgłoszenie niesprawdzone", "Jest zgłoszenie, ale moderacja jeszcze go nie sprawdziła.", "liście ryzyka", "listy ryzyka", "Ostrożnie! "},
		{"legit", "Zaufana osoba", "osoba zaufana",
			"Moderacja nie miała zastrzeżeń do tego konta w dniu wpisu. Sama transakcja nadal jest na Twoje ryzyko.", "liście zaufanych", "listy zaufanych", ""},
	}
}

// gravity orders entries by their grades: 0 is the most severe.
func gravity(r *readmodel.Row) int {
	switch {
	case r.List().Trusted():
		return 2
	case r.Verified():
		return 0
	}
	return 1
}

// ungraded is the gravity of no entry.
const ungraded = 3

// gravest returns the gravity of the gravest of some entries.
func gravest(rows []*readmodel.Row) int {
	worst := ungraded
	for _, r := range rows {
		worst = min(worst, gravity(r))
	}
	return worst
}

func gradeOf(r *readmodel.Row) grade { return grades()[gravity(r)] }

// gradeNamed returns the grade with a class, or an empty one if there is none.
func gradeNamed(class string) (g grade) {
	for _, g := range grades() {
		if g.Class == class {
			return g
		}
	}
	return g
}

// value returns the verdict of an entry of this grade, if nothing else is known.
func (g grade) value() verdict.Value {
	switch g.Class {
	case "scam":
		return verdict.Accused
	case "risk":
		return verdict.Risk
	}
	return verdict.Trusted
}

// EntryPath returns the address of an entry's page.
func EntryPath(l events.List, entryID string) string {
	return "/wpis/" + string(l) + "/" + url.PathEscape(entryID)
}

// Path returns the address of the entry's page.
func (e *entry) Path() string { return EntryPath(e.List, e.ID) }

// Accused reports whether the entry is an accusation.
func (e *entry) Accused() bool { return !e.List.Trusted() }

// Server reports whether the entry is a server.
func (e *entry) Server() bool { return e.List == events.Servers }

// Long reports whether the name may be truncated where it first appears.
func (e *entry) Long() bool { return len(e.Name) > 60 }

// Gist returns what an accused entry is accused of in a line: the first bold words of the reason, else its beginning.
func (e *entry) Gist() string {
	if !e.Accused() {
		return ""
	}
	return gist(e.DescHTML)
}

// Excerpt returns the beginning of the reason as text.
func (e *entry) Excerpt() string { return excerpt(e.DescHTML) }

// Reason returns the whole reason.
func (e *entry) Reason() template.HTML { return shown(e.DescHTML) }

// Avatar returns the address of the picture, or "" if the chat id cannot have one.
func (e *entry) Avatar() string {
	if !events.IsID(e.ChatID) {
		return ""
	}
	return "/api/chat/avatar/" + e.ChatID + "?size=128"
}

// When returns the label of the entry's date.
func (e *entry) When() string {
	if e.Accused() {
		return "Zgłoszono"
	}
	return "Na liście od"
}

// Number returns the label of the report's number.
func (e *entry) Number() string {
	if e.Accused() {
		return "Nr zgłoszenia"
	}
	return "Nr wpisu"
}

// Yours returns the question to the entry's owner.
func (e *entry) Yours() string {
	if e.Server() {
		return "To Twój serwer"
	}
	return "To Ty"
}

// evidence describes the proofs. Link is empty if they are not shown.
type evidence struct{ Text, Link string }

// Evidence returns nil if there are no proofs.
func (e *entry) Evidence() *evidence {
	switch {
	case e.PrivateProofs:
		return &evidence{Text: "niepubliczne"}
	case e.ProofsID == nil:
		return nil
	case e.proofsShown:
		return &evidence{"Zobacz dowody", "/proofs/" + *e.ProofsID}
	}
	return &evidence{Text: "ma moderacja"}
}

// EntryPage is the content of the page of one entry.
type EntryPage struct {
	Row  *readmodel.Row
	AsOf time.Time // as in Page
}

// entryView is the data of entry.html.
type entryView struct {
	*entry
	Form    string // action of the next search
	Asked   string // its initial text: empty
	Words   listWords
	Title   string // as in the verdict of its id
	Warning *warning
	Report  bool // whether to offer a report: never, since the entry is one
}

// Entry appends the page of one entry.
func (s *Site) Entry(dst []byte, p EntryPage) ([]byte, error) {
	e, err := s.entry(p.Row)
	if err != nil {
		return dst, err
	}
	v := entryView{entry: e, Form: "/", Words: wordsOf(e.List), Title: e.onList(e.Server()), Warning: warningOf(e.value(), true, []*readmodel.Row{p.Row})}
	page := Page{
		Title: e.Name + " – " + e.standing, AsOf: p.AsOf, Finds: true, Named: true, Canonical: e.Path(), Data: v,
		Preview: v.Title, About: "Otwórz i porównaj całe ID: link niczego nie dowodzi.",
	}
	if !e.Accused() { // a chat is no place to vouch for anybody
		page.Preview = "Sprawdź to ID w rejestrze"
	}
	return s.Append(dst, "entry", page)
}

// Blank reports whether there is no reason.
func (e *entry) Blank() bool { return strings.TrimSpace(e.DescHTML) == "" }
