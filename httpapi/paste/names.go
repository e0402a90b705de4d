package paste

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/readmodel/casefold"
	"example.org/registry/readmodel/lookalike"
)

// around has the characters that people put around a name: quotes, brackets, and marks of bold
// text.
const around = "\"'`´‘’‚‛“”„‟«»‹›()[]{}<>*"

// readNames finds the names of a text: the whole, its parts, quoted names and names after an @, and
// then every run of words.
func (x *reading) readNames() {
	for _, s := range slices.Clone(x.p.Sought) { // a name may be digits, too
		if s.How == Typed && s.ID != "" {
			x.add(Sought{Names: []string{s.ID}, Raw: []string{s.ID}, Spans: slices.Clone(s.Spans)})
		}
	}
	x.seekName(x.text, []string{x.p.Text}, []Span{{0, len(x.text)}})
	x.readParts(Span{0, len(x.text)}, ",;|\r\n")
	without := func(separators string, leave func(Stretch) bool) { // some stretches
		pieces := x.pieces(leave)
		var raw []string
		for _, s := range pieces {
			raw = append(raw, x.raw(s))
		}
		x.seekName(x.joined(pieces), []string{strings.Join(raw, " ")}, pieces)
		for _, s := range pieces {
			x.readParts(s, ",;|\r\n")
			x.readParts(s, separators)
		}
	}
	without(",;|\r\n", func(s Stretch) bool { return s.What == Identity })
	without(",;|\r\n", func(s Stretch) bool { return s.What == Identity || s.What == Filler })
	without(",;|\r\n/", func(s Stretch) bool { return s.Kind != Figure })
	for _, m := range x.rd.quoted.FindAllStringSubmatchIndex(x.text, -1) {
		for i := 2; i < len(m); i += 2 {
			x.seekPart(Span{max(m[i], 0), max(m[i+1], 0)})
		}
	}
	for _, m := range x.rd.at.FindAllStringSubmatchIndex(x.text, -1) {
		if s := (Span{m[2], m[3]}); !within(x.masks, s) {
			x.seekPart(s)
		}
	}
	x.readRuns()
}

// pieces returns the text without the stretches that leave accepts.
func (x *reading) pieces(leave func(Stretch) bool) []Span {
	var without []Span
	for _, c := range x.claims {
		if leave(c) {
			without = append(without, c.Span)
		}
	}
	slices.SortFunc(without, byPlace)
	return x.outside(Span{0, len(x.text)}, without)
}

// outside returns the parts of a span outside others, which are sorted.
func (x *reading) outside(s Span, others []Span) (left []Span) {
	add := func(from, to int) {
		if piece := x.trimmed(Span{from, to}); piece.From < piece.To {
			left = append(left, piece)
		}
	}
	at := s.From
	for _, o := range others {
		if o.From < s.To && o.To > at {
			add(at, o.From)
			at = o.To
		}
	}
	add(at, s.To)
	return left
}

func byPlace(a, b Span) int { return a.From - b.From }

// trimmed returns a span without white space around it.
func (x *reading) trimmed(s Span) Span {
	if s.From >= s.To {
		return s
	}
	text := x.text[s.From:s.To]
	s.From += len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	s.To = s.From + len(strings.TrimSpace(text))
	return s
}

// readParts finds the parts of a span between separators.
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

// seekPart adds a part of the text, unless it is only punctuation. Next to an id, a part that is
// only a label is no name.
func (x *reading) seekPart(s Span) {
	text := x.text[s.From:s.To]
	if !x.parts[s] && strings.ContainsFunc(text, wordly) && (x.ids == 0 || x.rd.label.FindString(text) != text) {
		x.seekName(text, []string{x.raw(s)}, []Span{s})
	}
	x.parts[s] = true
}

// seekName adds a typed name, in all of its readings.
func (x *reading) seekName(text string, raw []string, at []Span) {
	s := Sought{Spans: at}
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
			x.add(Sought{ID: r, Short: true, Spans: at})
		}
	}
}

func isName(s string) bool { return s != "" && utf8.RuneCountInString(s) <= maxName }

// readings returns the ways to read a single name: as it is, and without a label, an @, quotes and
// brackets.
func (rd *Reader) readings(text string) (all []string) {
	text = spaced(text)
	all = append(all, text)
	if !strings.ContainsAny(text, around+"@ .)-:") { // as most words are
		return all
	}
	at := "@"
	for range maxReadings {
		next := strings.TrimSpace(strings.Trim(text, around))
		next = next[len(rd.listed.FindString(next)):]
		if label := rd.label.FindString(next); label != "" && label != next {
			next = next[len(label):]
		}
		if at := rd.trailing.FindStringIndex(next[max(0, len(next)-10):]); at != nil {
			next = next[:max(0, len(next)-10)+at[0]]
		}
		if after, ok := strings.CutPrefix(next, at); ok && at != "" {
			next, at = after, "" // one
		}
		if next = strings.TrimSpace(next); next == text || next == "" {
			return all
		}
		text = next
		all = append(all, text)
	}
	return all
}

// maxReadings bounds how often decoration is removed from a name. Its words are looked up anyway.
const maxReadings = 8

// word is a run of letters, digits, marks and underscores. Words without white space between them
// have the same number.
type word struct {
	Span
	number int  // counts words between white space
	odd    bool // the text before it looks like letters
	figure bool // it is a number
}

// maxPieces bounds the pieces of a run of words without white space between them.
const maxPieces = 3 * MaxWords

// readRuns finds every run of 1 to MaxWords words, whatever lies between them.
func (x *reading) readRuns() {
	slices.SortFunc(x.masks, byPlace)
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
			if x.seekRun(words[i : i+size+1]); x.lookups > MaxLookups {
				return
			}
		}
		if !found {
			return
		}
	}
}

func (x *reading) words() (all []word) {
	number, from := 0, -1
	end := func(to int) {
		if from >= 0 {
			w := word{Span: Span{from, to}, number: number, figure: !strings.ContainsFunc(x.text[from:to], unicode.IsLetter)}
			if n := len(all); n > 0 {
				w.figure = w.figure && all[n-1].number < number
				w.odd = lookalike.KeysOf(x.text[all[n-1].To:from]).Joined() != lookalike.Keys{}
			}
			all = append(all, w)
		}
		from = -1
	}
	for at, r := range x.text {
		masked := within(x.masks, Span{at, at + 1})
		switch {
		case !masked && wordly(r):
			if from < 0 {
				from = at
			}
		default:
			if end(at); (masked || unicode.IsSpace(r) || strings.ContainsRune(",;|", r)) && len(all) > 0 && all[len(all)-1].number == number {
				number++
			}
		}
	}
	end(len(x.text))
	return all
}

// seekRun adds a run of words as it is. If the text between them looks like letters, or is a
// number, it also adds the words without that text. It also adds a name without the badge of a bot,
// which chats copy with it. A word of the language, a label or a number is no name by itself.
func (x *reading) seekRun(run []word) {
	at := Span{run[0].From, run[len(run)-1].To}
	pieces, how := x.outside(at, x.masks), Maybe
	if len(run) == 1 && x.isFiller(x.text[at.From:at.To]) {
		how = Word
	}
	x.seekWords(pieces, how)
	if n := len(pieces); n > 0 && x.rd.badge.MatchString(x.text[pieces[n-1].From:pieces[n-1].To]) {
		bare := slices.Clone(pieces)
		bare[n-1].To -= len("BOT")
		x.seekWords(bare, Maybe)
	}
	odd := false
	for i, w := range run {
		odd = odd || i > 0 && (w.odd || i < len(run)-1 && w.figure)
	}
	if odd {
		var words []Span
		for i, w := range run {
			if i == 0 || i == len(run)-1 || !w.figure {
				words = append(words, w.Span)
			}
		}
		x.seekWords(words, how)
	}
}

// readRemnants claims words of up to three letters outside the language: such a word can turn a
// person's name into another's.
func (x *reading) readRemnants() {
	for _, w := range x.words() {
		text, before := x.text[w.From:w.To], strings.TrimRight(x.text[:w.From], " ")
		if before == "" || strings.ContainsRune(".?!\n", rune(before[len(before)-1])) { // starts a sentence
			first, size := utf8.DecodeRuneInString(text)
			text = string(unicode.ToLower(first)) + text[size:]
		}
		letters := utf8.RuneCountInString(text)
		if letters <= 3 && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) &&
			(!x.isFiller(text) || letters == 1 && !strings.Contains("aiouwz", text)) {
			x.claim(w.Span, Unchecked, Remnant)
		}
	}
}

func (x *reading) seekWords(places []Span, how How) {
	if name := spaced(x.joined(places)); isName(name) {
		x.add(Sought{Names: []string{name}, How: how, Spans: places})
	}
}

// joined returns the text of spans, with spaces between them.
func (x *reading) joined(places []Span) string {
	if len(places) == 1 {
		return x.text[places[0].From:places[0].To]
	}
	var all []string
	for _, s := range places {
		all = append(all, x.text[s.From:s.To])
	}
	return strings.Join(all, " ")
}

// isFiller reports whether a word of a longer text is a name only if it is listed.
func (x *reading) isFiller(word string) bool {
	switch folded := casefold.String(word); {
	case !strings.ContainsFunc(word, unicode.IsLetter), x.rd.label.FindString(word) == word:
		return true
	case folded == "https", folded == "http", folded == "www":
		return true
	default:
		return x.rd.isWord != nil && !strings.ContainsFunc(word, unicode.IsUpper) && x.rd.isWord(folded)
	}
}
