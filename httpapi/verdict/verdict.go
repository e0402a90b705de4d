package verdict

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
)

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

// Gravity orders values: the gravest is 0.
func (v Value) Gravity() int { return slices.Index(Values(), v) }

// Reason says which rule made the verdict.
type Reason uint8

// The reasons of a verdict. Among equal values the reason that is declared first wins.
const (
	ByID         Reason = iota // an id decides
	OtherName                  // a trusted person's id, beside the name of somebody else who is listed
	OtherAccount               // an id on no list, beside the name of an accused
	NotTheirs                  // an id on no list, beside a trusted person's name
	OtherID                    // a trusted person's id, and one on no list
	MaybeID                    // digits that may be a trusted person's id, or another one beside it
	Shared                     // accused and trusted persons have this name
	ByName                     // a name decides
	LikeAccused                // the name looks like an accused's
	LikeTrusted                // the name looks like a trusted person's
	InSentence                 // words of the text are somebody's name
	Beside                     // a trusted person's id, beside what no list has
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

// gravity orders entries, the gravest first.
func (e *Entry) gravity() int {
	switch {
	case !e.accused():
		return 2
	case e.Verified:
		return 0
	}
	return 1
}

// Subject is what was typed of one person or server, and what it alone says.
type Subject struct {
	paste.Sought
	Value  Value
	Reason Reason
	Hits   []Hit // the nearest first, of those the gravest
	// HasParts says that a name that was typed stands within this one.
	HasParts bool
}

// IsID reports whether the subject is an id, or leads to an entry as one does.
func (s *Subject) IsID() bool { return s.ID != "" || s.Number != "" }

// Text returns what was typed in the reading that somebody has, or in its shortest.
func (s *Subject) Text() string {
	if len(s.Hits) > 0 && !s.IsID() {
		return s.Hits[0].As
	}
	return s.Sought.Text()
}

// Verdict is what the page says.
type Verdict struct {
	Value    Value
	Reason   Reason
	Subjects []Subject // what was looked up and counts, ids first
	// Unchecked is what nobody looked up, since no list has it.
	Unchecked []paste.Stretch
	// Omitted says that there is more than was looked up.
	Omitted bool
	// Namesake says that an accused has the name of the trusted person, or one like it, whom the
	// verdict is about.
	Namesake bool
}

// Decide makes the verdict of a paste and of what was found of it.
func Decide(p *paste.Paste, found Found) Verdict {
	q := newQuestion(p, found)
	v := Verdict{Subjects: q.subjects, Omitted: p.Omitted || !found.Complete}
	v.Value, v.Reason = q.decide()
	least := paste.Number
	if v.Value == Trusted { // not even a price or a letter stays unexplained
		least = paste.Remnant
	}
	v.Unchecked = q.unchecked(least)
	words := q.any(func(s *Subject) bool { return s.How == paste.Word })
	switch {
	case v.Value == Trusted && len(v.Unchecked) > 0:
		v.Value, v.Reason = Caution, Beside
	case v.Value == Trusted && q.word, v.Value == TrustedName && (words || q.like):
		v.Value, v.Reason = Caution, InSentence
	case (v.Value == Trusted || v.Value == TrustedName) && v.Omitted:
		v.Value, v.Reason = Caution, TooMany
	case v.Value == Trusted, v.Value == TrustedName:
		v.Namesake = q.anyHit(func(_ *Subject, h *Hit) bool { return h.accused() })
	case !v.Value.FoundNobody():
	case v.Omitted:
		v.Value, v.Reason = Unchecked, TooMany
	case len(v.Unchecked) > 0:
		v.Value, v.Reason = Unchecked, Unknown
	case words, q.word, p.Sentence && !q.any(func(s *Subject) bool { return s.IsID() }):
		v.Value, v.Reason = Unchecked, Sentence
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
	paste    *paste.Paste
	subjects []Subject
	unknown  []string // names in the text, of words that the dictionary does not know, that nobody has
	word     bool     // a word of a sentence is the name of somebody else, if it is one
	like     bool     // such a word looks like a trusted person's name, and is not
}

// newQuestion keeps the subjects that count. Words within a name that somebody has are not another
// name, unless they are an accused's and the whole is only a trusted person's: nobody hides behind a
// longer name. But a person whose id is there has all of their own name.
func newQuestion(p *paste.Paste, found Found) *question {
	q := &question{paste: p}
	for i, sought := range p.Sought {
		s := Subject{Sought: sought, Hits: found.Hits[i]}
		s.decide()
		if len(s.Hits) == 0 && s.How != paste.Word {
			q.unknown = append(q.unknown, s.Names...)
		}
		q.subjects = append(q.subjects, s)
	}
	q.word = q.any(func(s *Subject) bool { return s.How == paste.Word && len(s.Hits) > 0 && q.theirs(s) > Dressed })
	q.like = q.any(func(s *Subject) bool {
		_, _, trusted := nearest(s.Hits)
		return s.How == paste.Word && trusted == Alike
	})
	var kept []Subject
	for i := range q.subjects {
		if q.counts(&q.subjects[i]) {
			kept = append(kept, q.subjects[i])
		}
	}
	q.subjects = kept
	q.findParts()
	return q
}

// findParts finds the names that have others in them.
func (q *question) findParts() {
	var typed []*Subject
	for i := range q.subjects {
		if s := &q.subjects[i]; !s.IsID() && s.How == paste.Typed {
			typed = append(typed, s)
		}
	}
	for i := range q.subjects {
		s := &q.subjects[i]
		s.HasParts = !s.IsID() && slices.ContainsFunc(typed, func(part *Subject) bool { return part != s && within(part, s) })
	}
}

// counts reports whether a subject is not only a part of another.
func (q *question) counts(s *Subject) bool {
	accuses := slices.ContainsFunc(s.Hits, func(h Hit) bool { return h.accused() })
	switch {
	case s.IsID() && len(s.Hits) == 0: // unless the digits are a part of an id that was typed
		return !s.Short && s.Number == "" && (s.How == paste.Typed ||
			!covered(s, q.subjects, func(o *Subject) bool { return o.ID != "" && o.How == paste.Typed }))
	case s.How == paste.Typed && !s.IsID() && len(s.Hits) == 0: // unless it is a part of a name that was found
		return !covered(s, q.subjects, func(o *Subject) bool { return !o.IsID() && len(o.Hits) > 0 })
	case s.IsID(), s.How == paste.Typed:
		return true
	case len(s.Hits) == 0, s.How == paste.Word && !accuses:
		return false
	}
	return !covered(s, q.subjects, func(o *Subject) bool {
		return !o.IsID() && o.How != paste.Word && len(o.Hits) > 0 &&
			(s.How != paste.Word || strings.Contains(paste.Folded(o.Text()), paste.Folded(s.Text()))) && // not only their label
			(!accuses || q.theirs(o) <= Dressed || slices.ContainsFunc(o.Hits, func(h Hit) bool { return h.accused() }))
	})
}

// covered reports whether each place of a subject lies within a longer one of others that f accepts.
func covered(s *Subject, others []Subject, f func(*Subject) bool) bool {
	for _, at := range s.Spans {
		in := false
		for i := range others {
			if in = covers(&others[i], at) && f(&others[i]); in {
				break
			}
		}
		if !in {
			return false
		}
	}
	return true
}

// within reports whether each place of a part lies within a longer one of a subject.
func within(part, s *Subject) bool {
	for _, at := range part.Spans {
		if !covers(s, at) {
			return false
		}
	}
	return true
}

// covers reports whether a place lies within a longer one of a subject.
func covers(s *Subject, at paste.Span) bool {
	for _, in := range s.Spans {
		if in != at && in.Covers(at) {
			return true
		}
	}
	return false
}

// unchecked returns the stretches of a kind, least or greater, that no list has, but for those that
// turned out to be somebody.
func (q *question) unchecked(least paste.Kind) []paste.Stretch {
	return slices.DeleteFunc(slices.Clone(q.paste.Stretches), func(at paste.Stretch) bool {
		return at.Kind < least || q.any(func(s *Subject) bool {
			return len(s.Hits) > 0 && slices.ContainsFunc(s.Spans, func(in paste.Span) bool { return in.Covers(at.Span) })
		})
	})
}

// decide sets the verdict of the subject alone.
func (s *Subject) decide() {
	slices.SortStableFunc(s.Hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(a.Near, b.Near), cmp.Compare(a.gravity(), b.gravity()), cmp.Compare(a.List, b.List))
	})
	s.Value, s.Reason = None, Nobody
	accused, verified, trusted := nearest(s.Hits)
	switch {
	case len(s.Hits) == 0:
	case s.IsID() && accused < nowhere:
		s.Value, s.Reason = graded(verified), ByID
	case s.IsID() && s.How != paste.Typed:
		s.Value, s.Reason = Caution, MaybeID
	case s.IsID():
		s.Value, s.Reason = Trusted, ByID
	case s.How == paste.Word:
		s.Value, s.Reason = Unchecked, InSentence
	case s.How == paste.Maybe:
		s.Value, s.Reason = Caution, InSentence
	case accused <= Dressed && trusted <= accused:
		s.Value, s.Reason = Caution, Shared
	case accused <= Dressed:
		s.Value, s.Reason = graded(verified), ByName
	case trusted == Same:
		s.Value, s.Reason = TrustedName, ByName
	case accused < nowhere:
		s.Value, s.Reason = Caution, LikeAccused
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
	typed, trusted, maybe, others := 0, 0, false, false
	for i := range q.subjects {
		switch s := &q.subjects[i]; {
		case !s.IsID():
		case s.Value == Accused || s.Value == Risk:
			accused = graver(accused, s.Value)
		case s.How == paste.Typed:
			typed++
			if s.Value == Trusted {
				trusted++
			}
		case s.Value == None:
			others = true
		default:
			maybe = true
		}
	}
	name := func(f func(s *Subject, h *Hit) bool) bool {
		return q.anyHit(func(s *Subject, h *Hit) bool { return !s.IsID() && f(s, h) })
	}
	isAccused := func(s *Subject, h *Hit) bool { return h.accused() && s.How != paste.Word }
	switch {
	case accused != None:
		return accused, ByID
	case typed > 0 && typed == trusted:
		switch {
		case q.any(func(s *Subject) bool { return !s.IsID() && len(s.Hits) > 0 && q.theirs(s) == nowhere }):
			return Caution, OtherName
		case q.any(func(s *Subject) bool { return !s.IsID() && len(s.Hits) > 0 && q.theirs(s) == Alike }):
			return Caution, LikeTrusted
		case others || maybe:
			return Caution, MaybeID
		case q.grown():
			return Caution, LikeTrusted
		}
		return Trusted, ByID
	case typed > 0 && name(isAccused):
		return Caution, OtherAccount
	case trusted > 0:
		return Caution, OtherID
	case typed > 0 && name(func(s *Subject, _ *Hit) bool { return s.How != paste.Word }):
		return Caution, NotTheirs
	case maybe && typed > 0:
		return Caution, MaybeID
	case typed > 0:
		return None, ByID
	}
	v, r := q.mostSevere()
	if v == TrustedName && others {
		return Caution, NotTheirs
	}
	return v, r
}

// grown reports whether words of the text are a trusted person's name with letters more or fewer at
// an end, such as another account has.
func (q *question) grown() bool {
	odd := func(r rune) bool {
		return !unicode.IsOneOf([]*unicode.RangeTable{unicode.L, unicode.M, unicode.N}, r) && !strings.ContainsRune(" _.-", r)
	}
	return q.anyHit(func(s *Subject, h *Hit) bool {
		if !s.IsID() {
			return false
		}
		own := paste.Folded(h.Name)
		return slices.ContainsFunc(q.unknown, func(name string) bool {
			if strings.Count(name, " ") != strings.Count(own, " ") || strings.ContainsFunc(name, odd) {
				return false
			}
			name = paste.Folded(name)
			return strings.Contains(name, own) || len(own)-len(name) <= 2 && len(name) > 2 && strings.Contains(own, name)
		})
	})
}

// mostSevere returns the value and reason of the most severe subject.
func (q *question) mostSevere() (v Value, r Reason) {
	v, r = None, Nobody
	for i := range q.subjects {
		s := &q.subjects[i]
		if s.Value.Gravity() < v.Gravity() || s.Value == v && s.Reason < r {
			v, r = s.Value, s.Reason
		}
	}
	return v, r
}

func graver(a, b Value) Value {
	if b.Gravity() < a.Gravity() {
		return b
	}
	return a
}

func (q *question) any(f func(s *Subject) bool) bool {
	return slices.ContainsFunc(q.subjects, func(s Subject) bool { return f(&s) })
}

// anyHit reports whether f holds for a hit.
func (q *question) anyHit(f func(s *Subject, h *Hit) bool) bool {
	return q.any(func(s *Subject) bool {
		return slices.ContainsFunc(s.Hits, func(h Hit) bool { return f(s, &h) })
	})
}

// theirs returns how near a name is to that of a person whose id was typed: nowhere if it is nearer
// to an accused's, or as near to one that is written in another way and so may be nearer without what
// stands around it.
func (q *question) theirs(name *Subject) Nearness {
	own, names := nowhere, map[string]bool{}
	for _, h := range name.Hits {
		if !h.accused() && q.any(func(s *Subject) bool {
			return s.IsID() && s.How == paste.Typed && slices.ContainsFunc(s.Hits, func(o Hit) bool { return !o.accused() && o.ChatID == h.ChatID })
		}) {
			own = min(own, h.Near)
			names[paste.Folded(h.Name)] = true
		}
	}
	if slices.ContainsFunc(name.Hits, func(h Hit) bool {
		return h.accused() && (h.Near < own || h.Near == own && own > Same && !(own == Dressed && names[paste.Folded(h.Name)]))
	}) {
		return nowhere
	}
	return own
}
