// Package paste reads what people paste into the search field of the site: a mention, an address, a
// tag, an id with dashes in it, several names, a sentence. It says under which ids and names
// somebody may be meant, and how each of them stands in the text.
//
// # Promises
//
//   - The text as it was typed is a name, whatever else it is, unless it is nothing but ids or
//     longer than any name.
//   - There are at most [MaxIDs] ids and [MaxNames] names beside the whole text; [Paste.Omitted]
//     says how many more were typed.
//   - Nothing is found twice. A name has 1 to [MaxName] code points, an id 1 to 64 digits.
//   - Only the first [MaxText] code points are read, in time linear in them.
//
// # Why
//
// A search that finds nobody because of a comma is a false all-clear. One that tidies a name up and
// then trusts it vouches for impostors. So every reading says whether it was typed or made of what
// was typed; package verdict decides what follows from that.
//
// The API takes its parameters literally, since programs can clean up their own texts; the page
// cannot expect that of people.
//
// # The parts
//
//   - paste.go: Paste and its subjects.
//   - split.go: Reader, which takes ids and addresses out of a text and parts the rest.
//   - names.go: the names in the rest.
//   - unknown.go: what the registry does not keep, such as telephone numbers.
package paste

import (
	"embed"
	"html"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel/casefold"
	"example.org/registry/readmodel/lookalike"
)

// Sources is this package. Pages of the site show what it reads, so their tags are made from it.
//
//go:embed *.go
var Sources embed.FS

// The bounds of a paste.
const (
	MaxText  = bounds.MaxValue // code points
	MaxIDs   = 20              // that are looked up
	MaxNames = 20              // that are looked up
	MaxName  = 200             // code points: no entry's name is longer
	maxID    = bounds.MaxID    // digits of an id that an address or a mention names

	maxGuesses = 60 // names that are words of sentences, beside the others
)

// How says how a subject stands in the text.
type How uint8

// The ways in which a subject stands in a text.
const (
	// Typed is the whole text or one of its parts, or an id that is nothing else.
	Typed How = iota
	// Named is an @word of a sentence.
	Named
	// Guessed is a word of a sentence, or two or three; of ids, digits that only may be one.
	Guessed
)

// Name is one way to understand a name.
type Name struct {
	Text    string
	Cleaned bool // it was typed with something around it or inside it that is left out here
}

// Subject is somebody whom the text may mean: an id, or a name. One of ID and Names is set.
type Subject struct {
	ID    string // exact
	Names []Name // one name in several readings, the typed ones first
	How   How
	// HasParts says that it is the whole text, or what is left of it without ids and addresses, and
	// that the text has several parts, which are subjects of their own.
	HasParts bool
	// Within is the number of the subject of which this one is a word, or -1. A word counts only if
	// the whole is nobody's name.
	Within int
}

// Text returns the subject as people know it.
func (s *Subject) Text() string {
	if s.ID != "" {
		return s.ID
	}
	return s.Names[len(s.Names)-1].Text
}

// Paste is a text with its subjects, in the order in which they stand in it, ids first.
type Paste struct {
	Text     string // as typed, without surrounding white space
	Kind     Kind   // what is in it that no list has
	Subjects []Subject
	Omitted  int // ids and names that are not among Subjects; 1 more where the text was not read to its end
	Words    int // of the text without ids and addresses
}

// Read reads a text, which is valid UTF-8.
func (rd *Reader) Read(text string) Paste { return rd.ReadWithID(text, "") }

// ReadWithID reads a text and what was typed beside it in a field for an id. Either may be empty.
func (rd *Reader) ReadWithID(text, id string) Paste {
	p := Paste{Text: strings.TrimSpace(text)}
	beside := rd.split(lookalike.Visible(id))
	if id = strings.TrimSpace(id); id != "" && len(beside.ids) == 0 {
		beside.ids = []string{id}
	}
	if p.Text == "" {
		p.Text = id
	}
	raw := p.readable()
	if text == "" {
		raw = ""
	}
	plain := html.UnescapeString(rd.emoji.ReplaceAllString(raw, " "))
	clean := lookalike.Visible(plain)
	seen := rd.split(clean)
	for _, id := range append(beside.ids, seen.ids...) {
		p.addID(id, Typed)
	}
	for _, id := range append(beside.maybe, seen.maybe...) {
		p.addID(id, Guessed)
	}
	p.Kind = rd.kindOf(clean, &seen)
	if raw != "" {
		var typed content // what stands between emoji and entities was not typed as a name
		if plain == raw {
			typed = rd.split(raw)
		}
		p.addNames(rd, &typed, &seen)
	}
	return p
}

// addNames adds the names of a text. typed is the text as it is, split; seen is the same without
// what is invisible or only drawn.
func (p *Paste) addNames(rd *Reader, typed, seen *content) {
	if len(seen.ids) > 0 && len(seen.parts) == 0 {
		return // nothing but ids
	}
	readings := rd.readings(p.Text, false)
	if len(typed.parts) == 1 { // all that is named
		readings = append(readings, rd.readings(typed.parts[0], false)...)
	}
	if whole := p.addName(readings, Typed, -1); whole >= 0 {
		p.Subjects[whole].HasParts = len(typed.parts) > 1
	}
	if len(typed.parts) > 1 {
		if left := p.addName(rd.readings(typed.left, false), Typed, -1); left >= 0 {
			p.Subjects[left].HasParts = true
		}
	}
	before := p.Omitted
	parts := p.addParts(rd, typed.parts, false)
	omitted := p.Omitted
	p.Omitted = before
	parts = append(parts, p.addParts(rd, seen.parts, true)...)
	p.Omitted = max(p.Omitted, omitted) // the parts are mostly the same
	p.Words = len(strings.FieldsFunc(seen.left, func(r rune) bool { return strings.ContainsRune(" ,;|/", r) }))
	for _, part := range parts {
		rd.addWords(p, part)
	}
}

// readable returns as much of the text as is read.
func (p *Paste) readable() string {
	n := 0
	for at := range p.Text {
		if n++; n > MaxText {
			p.Omitted++
			return p.Text[:at]
		}
	}
	return p.Text
}

// part is a part of a text that was added as a subject.
type part struct {
	text    string
	subject int
}

// addParts adds what is left of a text, part by part, and returns what it added.
func (p *Paste) addParts(rd *Reader, texts []string, cleaned bool) (added []part) {
	for _, text := range texts {
		if i := p.addName(rd.readings(text, cleaned), Typed, -1); i >= 0 {
			added = append(added, part{text, i})
		}
	}
	return added
}

// addID adds an id unless it is there already.
func (p *Paste) addID(id string, how How) {
	known := 0
	for i := range p.Subjects {
		if s := &p.Subjects[i]; s.ID == id {
			return
		} else if s.ID != "" {
			known++
		}
	}
	switch {
	case len(id) > maxID:
	case known == MaxIDs:
		p.Omitted++
	default:
		p.Subjects = append(p.Subjects, Subject{ID: id, How: how, Within: -1})
	}
}

// addName adds a name, or the readings of it that are new to the same name, and returns its number.
// It is -1 if no reading is one that a name can have, or if there are too many names.
func (p *Paste) addName(readings []Name, how How, within int) int {
	readings = slices.DeleteFunc(readings, func(n Name) bool { return n.Text == "" || utf8.RuneCountInString(n.Text) > MaxName })
	if len(readings) == 0 {
		return -1
	}
	typed, guessed := 0, 0
	for i := range p.Subjects {
		s := &p.Subjects[i]
		switch {
		case s.ID != "":
			continue
		case s.How == Guessed:
			guessed++
		case !s.HasParts:
			typed++
		}
		if !s.has(readings) {
			continue
		}
		if s.How > how {
			s.How, s.Within = how, within
		}
		for _, r := range readings {
			s.add(r)
		}
		return i
	}
	if how == Guessed && guessed >= maxGuesses {
		return -1 // they were not typed as names
	}
	if how != Guessed && typed >= MaxNames {
		p.Omitted++
		return -1
	}
	s := Subject{How: how, Within: within}
	for _, r := range readings {
		s.add(r)
	}
	p.Subjects = append(p.Subjects, s)
	return len(p.Subjects) - 1
}

// has reports whether a name is the subject's already: as it is, or, if it was cleaned, in any
// reading.
func (s *Subject) has(readings []Name) bool {
	if !readings[0].Cleaned {
		readings = readings[:1]
	}
	return slices.ContainsFunc(readings, func(r Name) bool {
		return slices.ContainsFunc(s.Names, func(n Name) bool { return Equal(n.Text, r.Text) })
	})
}

// add adds a reading unless it is there already. What was typed stays ahead of what was cleaned.
func (s *Subject) add(n Name) {
	for i := range s.Names {
		if s.Names[i].Text == n.Text {
			s.Names[i].Cleaned = s.Names[i].Cleaned && n.Cleaned
			return
		}
	}
	s.Names = append(s.Names, n)
	slices.SortStableFunc(s.Names, func(a, b Name) int {
		switch {
		case a.Cleaned == b.Cleaned:
			return 0
		case b.Cleaned:
			return -1
		}
		return 1
	})
}

// Equal reports whether two texts are one name: equal in NFC, but for case and white space.
func Equal(a, b string) bool { return a == b || folded(a) == folded(b) }

func folded(s string) string { return spaced(casefold.String(norm.NFC.String(s))) }

// spaced returns s with one space for each run of white space, and none around it.
func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// Digits reports whether s is one or more of 0 to 9.
func Digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
