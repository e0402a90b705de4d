package site

import (
	"fmt"
	"strings"
	"time"

	"example.org/registry/events"
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

// grade has the style and the words of an entry by its list and verification: an unverified report
// must not look like a verified one.
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

// Long reports whether the name may be truncated where it first appears.
func (e *entry) Long() bool { return len(e.Name) > 60 }

// Accused reports whether the entry is an accusation.
func (e *entry) Accused() bool { return !e.List.Trusted() }

// Server reports whether the entry is a server.
func (e *entry) Server() bool { return e.List == events.Servers }

// Yours returns the question to the entry's owner.
func (e *entry) Yours() string {
	if e.Server() {
		return "To Twój serwer"
	}
	return "To Ty"
}

// Gist returns what an accused entry is accused of in a line: the first bold words of the reason,
// else its beginning.
func (e *entry) Gist() string {
	if !e.Accused() {
		return ""
	}
	return gist(e.DescHTML)
}

// Blank reports whether there is no reason.
func (e *entry) Blank() bool { return strings.TrimSpace(e.DescHTML) == "" }

// Avatar returns the address of the picture, or "" if the chat id cannot have one.
func (e *entry) Avatar() string {
	if !events.IsID(e.ChatID) {
		return ""
	}
	return "/api/chat/avatar/" + e.ChatID + "?size=128"
}

// shownName returns a name as pages show it (events/CONTRACT.md#mapping).
func shownName(name string) string {
	if !markdown.IsVisible(name) {
		return "(nazwa bez widocznych znaków)"
	}
	return markdown.Plain(name)
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
