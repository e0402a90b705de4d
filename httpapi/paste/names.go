package paste

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/readmodel/casefold"
	"example.org/registry/readmodel/lookalike"
)

// around is what people put around a name: quotes, brackets, and what makes text bold.
const around = "\"'`´‘’‚‛“”„‟«»‹›()[]{}<>*"

// readNames seeks the names of a text: the whole, its parts, what is quoted or after an @, and then
// every run of words.
func (x *reading) readNames() {
	for _, s := range slices.Clone(x.p.Sought) { // a name may be digits, too
		if s.How == Typed && s.ID != "" {
			x.add(Sought{Names: []string{s.ID}, Raw: []string{s.ID}, Spans: slices.Clone(s.Spans)})
		}
	}
	whole := Span{0, len(x.text)}
	x.seekName(x.text, []string{x.p.Text}, whole)
	without := func(separators string, leave func(Stretch) bool) { // some stretches
		pieces := x.pieces(leave)
		var left, raw []string
		for _, s := range pieces {
			left, raw = append(left, x.text[s.From:s.To]), append(raw, x.raw(s))
		}
		if whole := strings.Join(left, " "); len(left) > 0 {
			x.seekName(whole, []string{strings.Join(raw, " ")}, Span{pieces[0].From, pieces[len(pieces)-1].To})
		}
		for _, s := range pieces {
			x.readParts(s, ",;|\r\n")
			x.readParts(s, separators)
		}
	}
	without(",;|\r\n", func(s Stretch) bool { return s.What == Identity })
	without(",;|\r\n", func(s Stretch) bool { return s.What == Identity || s.What == Filler })
	without(",;|\r\n/", func(Stretch) bool { return true })
	for _, m := range x.rd.quoted.FindAllStringSubmatchIndex(x.text, -1) {
		for i := 2; i < len(m); i += 2 {
			x.seekPart(Span{max(m[i], 0), max(m[i+1], 0)})
		}
	}
	for _, m := range x.rd.at.FindAllStringSubmatchIndex(x.text, -1) {
		if !x.masked(m[2]) {
			x.seekPart(Span{m[2], m[3]})
		}
	}
	x.readRuns()
}

// pieces returns what is left of the text without the stretches that leave accepts.
func (x *reading) pieces(leave func(Stretch) bool) (left []Span) {
	claims := slices.DeleteFunc(slices.Clone(x.claims), func(s Stretch) bool { return !leave(s) })
	slices.SortFunc(claims, func(a, b Stretch) int { return a.From - b.From })
	at := 0
	for _, c := range append(claims, Stretch{Span: Span{len(x.text), len(x.text)}}) {
		if s := x.trimmed(Span{at, c.From}); s.From < s.To {
			left = append(left, s)
		}
		at = c.To
	}
	return left
}

// trimmed returns a place without white space around it.
func (x *reading) trimmed(s Span) Span {
	text := x.text[s.From:s.To]
	s.From += len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	s.To = s.From + len(strings.TrimSpace(text))
	return s
}

// readParts seeks the parts of a place between separators.
func (x *reading) readParts(s Span, separators string) {
	for at := s.From; at <= s.To; {
		size := strings.IndexAny(x.text[at:s.To], separators)
		if size < 0 {
			size = s.To - at
		}
		part := x.trimmed(Span{at, at + size})
		x.seekPart(part)
		x.p.Sentence = x.p.Sentence || len(strings.Fields(x.text[part.From:part.To])) > MaxWords
		at += size + 1
	}
}

// seekPart seeks a part of the text, unless it is nothing but punctuation, or a label of an id: "ID
// 9900…" names nobody.
func (x *reading) seekPart(s Span) {
	text := x.text[s.From:s.To]
	if x.parts[s] {
		return
	}
	x.parts[s] = true
	if strings.ContainsFunc(text, wordly) && (x.ids == 0 || x.rd.label.FindString(text) != text) {
		x.seekName(text, []string{x.raw(s)}, s)
	}
}

// seekName seeks a name that was typed, in all of its readings.
func (x *reading) seekName(text string, raw []string, at Span) {
	s := Sought{Spans: []Span{at}}
	all := x.rd.readings(text)
	for _, reading := range all {
		if name := lookalike.Bare(reading); isName(name) && !slices.Contains(s.Names, name) {
			s.Names = append(s.Names, name)
		}
	}
	for _, r := range raw {
		readings := all
		if r != text {
			readings = x.rd.readings(r)
		}
		for _, reading := range readings {
			if isName(reading) {
				s.Raw = append(s.Raw, reading)
			}
		}
	}
	if len(s.Names) > 0 {
		x.add(s)
	}
	for _, r := range s.Raw {
		if Digits(r) && len(r) <= maxID && !isRun(r) {
			x.add(Sought{ID: r, Short: true, Spans: []Span{at}})
		}
	}
}

func isName(s string) bool { return s != "" && utf8.RuneCountInString(s) <= maxName }

// readings returns the ways to understand a name that stands alone: as it is, and without a label,
// an @, quotes and brackets.
func (rd *Reader) readings(text string) (all []string) {
	text = spaced(text)
	all = append(all, text)
	if !strings.ContainsAny(text, around+"@ .)-:") { // as most words are
		return all
	}
	at := "@"
	for {
		next := strings.TrimSpace(strings.Trim(text, around))
		next = next[len(rd.listed.FindString(next)):]
		if label := rd.label.FindString(next); label != "" && label != next {
			next = next[len(label):]
		}
		next = rd.trailing.ReplaceAllString(next, "")
		if after, ok := strings.CutPrefix(next, at); ok && at != "" {
			next, at = after, "" // one
		}
		if next = strings.TrimSpace(next); next == text || next == "" {
			return all
		}
		text = next
		all = append(all, text)
	}
}

// word is a word of the text: a run of what words are made of. Several of them may stand without
// white space between them; then they count as one.
type word struct {
	Span
	number int // counts words between white space, and on past what no name reaches over
}

// maxPieces is how many pieces a run of words has at most, where no white space parts them.
const maxPieces = 3 * MaxWords

// readRuns seeks every run of 1 to MaxWords words.
func (x *reading) readRuns() {
	words := x.words()
	for size := range len(words) {
		found := false
		for i := 0; i+size < len(words); i++ {
			first, last := words[i], words[i+size]
			if last.number-first.number >= MaxWords {
				continue
			}
			if found = true; size == maxPieces {
				x.p.Omitted = true
				return
			}
			if x.isCode(Span{first.From, last.To}) {
				continue
			}
			if x.seekRun(Span{first.From, last.To}, size == 0); x.lookups > MaxLookups {
				return
			}
		}
		if !found {
			return
		}
	}
}

// isCode reports whether a place is of the code of an invitation, which is nobody's name.
func (x *reading) isCode(s Span) bool {
	return slices.ContainsFunc(x.claims, func(c Stretch) bool { return c.Kind == Invitation && c.From < s.From && c.Covers(s) })
}

func (x *reading) words() (all []word) {
	number, within, from := 0, false, 0
	end := func(to int) {
		if within {
			all = append(all, word{Span{from, to}, number})
		}
		within = false
	}
	for at, r := range x.text {
		switch {
		case x.masked(at):
			if end(at); len(all) > 0 && all[len(all)-1].number >= number {
				number += MaxWords
			}
		case wordly(r):
			if !within {
				within, from = true, at
			}
		default:
			if end(at); (unicode.IsSpace(r) || strings.ContainsRune(",;|", r)) && len(all) > 0 && all[len(all)-1].number == number {
				number++
			}
		}
	}
	end(len(x.text))
	return all
}

// seekRun seeks a run of words. A number, a label or a part of an address is no name by itself.
func (x *reading) seekRun(at Span, single bool) {
	name, how := x.text[at.From:at.To], Maybe
	if single {
		folded := casefold.String(name)
		switch {
		case !strings.ContainsFunc(name, unicode.IsLetter), x.rd.label.FindString(name) == name, slices.Contains([]string{"https", "http", "www"}, folded):
			return
		case x.rd.isWord != nil && !strings.ContainsFunc(name, unicode.IsUpper) && x.rd.isWord(folded):
			how = Word
		}
	}
	if name = spaced(name); isName(name) {
		x.add(Sought{Names: []string{name}, How: how, Spans: []Span{at}})
	}
}
