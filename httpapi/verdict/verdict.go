package verdict

import (
	"cmp"
	"embed"
	"slices"
	"strings"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
)

// Sources is this package. Pages of the site show what it decides, so their tags are made from it.
//
//go:embed *.go
var Sources embed.FS

// Value is the verdict in a word, as the page has it in data-verdict.
type Value string

// The values of a verdict.
const (
	Accused     Value = "accused"
	Caution     Value = "caution"
	Risk        Value = "risk"
	Trusted     Value = "trusted"
	TrustedName Value = "trusted-name"
	Unchecked   Value = "unchecked"
	None        Value = "none"
)

// Values returns all values, the gravest first.
func Values() []Value { return []Value{Accused, Caution, Risk, Trusted, TrustedName, Unchecked, None} }

// FoundNobody reports whether nobody was found.
func (v Value) FoundNobody() bool { return v == None || v == Unchecked }

func (v Value) gravity() int { return slices.Index(Values(), v) }

// Reason says which rule made the verdict.
type Reason uint8

// The reasons of a verdict. Among equal values the reason that is declared first wins.
const (
	ByID         Reason = iota // an id decides
	OtherName                  // a trusted person's id, beside the name of somebody else who is listed
	OtherAccount               // an id on no list, beside the name of an accused
	NotTheirs                  // an id on no list, beside a trusted person's name
	OtherID                    // a trusted person's id, and one on no list
	MaybeID                    // digits that may be a trusted person's id
	Shared                     // accused and trusted persons have this name
	ByName                     // a name decides
	LikeAccused                // the name looks like an accused's
	LikeTrusted                // the name looks like a trusted person's
	InSentence                 // a word of the text is somebody's name
	TooMany                    // there is more in the text than is looked at
	Unknown                    // the text is what no list has: see paste.Kind
	Sentence                   // the text is a sentence
	Nobody                     // nothing was found
)

// Nearness says how a name that was typed is an entry's.
type Nearness uint8

// How near a name is, the nearest first.
const (
	Same    Nearness = iota // equal, but for case and white space
	Dressed                 // equal but for its width, what is invisible, or what stands around it
	Alike                   // it looks the same, or does so without dots and dashes
	nowhere                 // not near at all
)

// Entry is what was found of somebody.
type Entry struct {
	List         events.List
	ID           string // of the entry, within its list
	ChatID, Name string
	Verified     bool
}

// Hit is an entry, and how near to what was typed it is. By an id, it is Same.
type Hit struct {
	Entry
	Near Nearness
	As   string // the reading of what was typed that is so near
}

// accused reports whether the entry says something bad about somebody.
func (e *Entry) accused() bool { return e.List != events.Legit }

// Subject is what was typed of one person or server, and what it alone says.
type Subject struct {
	paste.Subject
	Value  Value
	Reason Reason
	Hits   []Hit // the nearest first, of those the gravest
}

// Text returns what was typed in the reading that somebody has, or in its shortest.
func (s *Subject) Text() string {
	if len(s.Hits) > 0 && s.ID == "" {
		return s.Hits[0].As
	}
	return s.Subject.Text()
}

// As returns the name as it was typed, where a hit has a reading of it: what differs is to be seen.
// A text of which the name is only a part is not shown whole.
func (s *Subject) As(h *Hit) string {
	if s.ID != "" || s.HasParts || s.How != paste.Typed {
		return h.As
	}
	for _, n := range s.Names {
		if !n.Cleaned && strings.Contains(n.Text, h.As) || n.Text == h.As {
			return n.Text
		}
	}
	return s.Names[0].Text
}

// Verdict is what the page says.
type Verdict struct {
	Value    Value
	Reason   Reason
	Subjects []Subject // which were looked at and count, as in the paste
	// Namesake says that an accused has the name of the trusted person, or one like it, whom the
	// verdict is about.
	Namesake bool
}

// Decide makes the verdict of a paste. found has what was found of each of its subjects: of an id,
// who has it; of a name, who may be meant by any of its readings, and who has it as a chat id. It
// may hold more: what is not near is passed over.
func Decide(p paste.Paste, found [][]Entry) Verdict {
	q := newQuestion(p, found)
	v := Verdict{Subjects: q.subjects}
	v.Value, v.Reason = q.decide()
	if v.Value == Trusted || v.Value == TrustedName {
		v.Namesake = q.anyHit(func(s *Subject, h *Hit) bool { return h.accused() })
		if p.Omitted > 0 {
			v.Value, v.Reason = Caution, TooMany
		}
	}
	if v.Value == None {
		v.Value, v.Reason = q.unknown(v.Reason)
	}
	return v
}

// About reports whether the verdict says of this entry that it is who was meant.
func (v *Verdict) About(s *Subject, h *Hit) bool {
	decides := s.Value == v.Value && s.Reason == v.Reason
	switch v.Value {
	case Accused, Risk:
		return decides && h.accused() && h.Near <= Dressed
	case Trusted, TrustedName:
		return decides && !h.accused() && h.Near == Same
	}
	return false
}

// question is what was typed, and what was found of it.
type question struct {
	paste    paste.Paste
	subjects []Subject
}

func newQuestion(p paste.Paste, found [][]Entry) *question {
	q := &question{paste: p}
	meant := make([]bool, len(p.Subjects)) // by somebody's name
	for i, typed := range p.Subjects {
		s := Subject{Subject: typed, Value: None, Reason: Nobody}
		for _, e := range found[i] {
			if near, as := nearness(&typed, &e); near < nowhere {
				s.Hits = append(s.Hits, Hit{e, near, as})
			}
		}
		sortHits(s.Hits)
		meant[i] = len(s.Hits) > 0
		switch {
		case typed.Within >= 0 && meant[typed.Within], typed.How == paste.Guessed && !meant[i]:
			continue
		}
		s.takeShortID(p.Subjects)
		q.subjects = append(q.subjects, s)
	}
	for i := range q.subjects {
		q.subjects[i].judge()
	}
	return q
}

// takeShortID makes an id of a name of digits that is somebody's chat id, however short. Where the
// id counts by itself already, the name is only a name.
func (s *Subject) takeShortID(all []paste.Subject) {
	if s.ID != "" || s.How != paste.Typed || !paste.Digits(s.Names[0].Text) {
		return
	}
	id := s.Names[0].Text
	has := func(h Hit) bool { return h.ChatID == id }
	switch {
	case slices.ContainsFunc(all, func(other paste.Subject) bool { return other.ID == id }):
		s.Hits = slices.DeleteFunc(s.Hits, has)
	case slices.ContainsFunc(s.Hits, has):
		s.ID, s.Hits = id, slices.DeleteFunc(s.Hits, func(h Hit) bool { return !has(h) })
	}
}

// sortHits puts the nearest first, and the gravest of those.
func sortHits(hits []Hit) {
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(a.Near, b.Near), cmp.Compare(a.gravity(), b.gravity()), cmp.Compare(a.List, b.List))
	})
}

func (e *Entry) gravity() int {
	switch {
	case !e.accused():
		return 2
	case e.Verified:
		return 0
	}
	return 1
}

// judge says what the subject alone means.
func (s *Subject) judge() {
	accused, verified, trusted := nearest(s.Hits)
	switch {
	case len(s.Hits) == 0:
	case s.ID != "" && accused < nowhere:
		s.Value, s.Reason = graded(verified), ByID
	case s.ID != "" && s.How == paste.Guessed:
		s.Value, s.Reason = Caution, MaybeID
	case s.ID != "":
		s.Value, s.Reason = Trusted, ByID
	case s.How == paste.Guessed:
		s.Value, s.Reason = Caution, InSentence
	case accused <= Dressed && trusted <= accused:
		s.Value, s.Reason = Caution, Shared
	case accused <= Dressed:
		s.Value, s.Reason = graded(verified), ByName
	case trusted == Same && s.How == paste.Typed:
		s.Value, s.Reason = TrustedName, ByName
	case accused < nowhere:
		s.Value, s.Reason = Caution, LikeAccused
	case s.How == paste.Named && trusted == Same:
		s.Value, s.Reason = Caution, InSentence
	default:
		s.Value, s.Reason = Caution, LikeTrusted
	}
}

// nearest returns how near the nearest accused and trusted entries are, and whether an accused one
// that counts as typed is verified.
func nearest(hits []Hit) (accused Nearness, verified bool, trusted Nearness) {
	accused, trusted = nowhere, nowhere
	for _, h := range hits {
		if h.accused() {
			accused = min(accused, h.Near)
			verified = verified || h.Verified && h.Near <= Dressed
		} else {
			trusted = min(trusted, h.Near)
		}
	}
	return accused, verified, trusted
}

func graded(verified bool) Value {
	if verified {
		return Accused
	}
	return Risk
}

// decide applies the first table of the package doc.
func (q *question) decide() (Value, Reason) {
	accused := None
	typed, trusted, maybe := 0, 0, false
	for i := range q.subjects {
		switch s := &q.subjects[i]; {
		case s.ID == "":
		case s.Value == Accused || s.Value == Risk:
			accused = graver(accused, s.Value)
		case s.How == paste.Guessed:
			maybe = true
		default:
			typed++
			if s.Value == Trusted {
				trusted++
			}
		}
	}
	switch {
	case accused != None:
		return accused, ByID
	case typed > 0 && typed == trusted:
		if q.anyHit(func(s *Subject, h *Hit) bool { return s.ID == "" && !q.isTheirs(s) }) {
			return Caution, OtherName
		}
		return Trusted, ByID
	case typed > 0 && q.anyHit(func(s *Subject, h *Hit) bool { return s.ID == "" && h.accused() }):
		return Caution, OtherAccount
	case trusted > 0:
		return Caution, OtherID
	case typed > 0 && q.anyHit(func(s *Subject, h *Hit) bool { return s.ID == "" }):
		return Caution, NotTheirs
	case maybe && typed > 0:
		return Caution, MaybeID
	case typed > 0:
		return None, ByID
	}
	return q.gravest()
}

// gravest returns what the gravest subject says.
func (q *question) gravest() (v Value, r Reason) {
	v, r = None, Nobody
	for i := range q.subjects {
		s := &q.subjects[i]
		if s.Value.gravity() < v.gravity() || s.Value == v && s.Reason < r {
			v, r = s.Value, s.Reason
		}
	}
	return v, r
}

func graver(a, b Value) Value {
	if b.gravity() < a.gravity() {
		return b
	}
	return a
}

// anyHit reports whether f holds for a hit.
func (q *question) anyHit(f func(s *Subject, h *Hit) bool) bool {
	for i := range q.subjects {
		for j := range q.subjects[i].Hits {
			if f(&q.subjects[i], &q.subjects[i].Hits[j]) {
				return true
			}
		}
	}
	return false
}

// isTheirs reports whether a name is, however written, that of a person whose id was typed.
func (q *question) isTheirs(name *Subject) bool {
	return slices.ContainsFunc(name.Hits, func(h Hit) bool {
		return !h.accused() && slices.ContainsFunc(q.subjects, func(s Subject) bool { return s.ID != "" && s.ID == h.ChatID })
	})
}

// maxWords is how many words a text may have that could be a name, though nobody's.
const maxWords = 4

// unknown returns the value and reason of a text of which nothing was found.
func (q *question) unknown(why Reason) (Value, Reason) {
	ids := slices.ContainsFunc(q.subjects, func(s Subject) bool { return s.ID != "" })
	switch kind := q.paste.Kind; {
	case q.paste.Omitted > 0:
		return Unchecked, TooMany
	case kind == paste.Card, kind == paste.Account, kind != paste.Plain && !ids:
		return Unchecked, Unknown
	case q.paste.Words > maxWords && !ids:
		return Unchecked, Sentence
	}
	return None, why
}
