package paste

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel/lookalike"
)

// builder collects the readings of a paste.
type builder struct {
	rd      *Reader
	p       *Paste
	known   map[string]bool // cores
	whole   string          // the core of all words of the reading
	reading int
	lookups int
}

// read reads the text as it was typed, and without escapes, entities and invisible characters. Ids come
// first, so that a long text hides none.
func (b *builder) read(text, id string) {
	p := b.p
	typed := cut(text) + "\n" + cut(id)
	meant := cut(lookalike.Visible(lookalike.Unescaped(text))) + "\n" + cut(lookalike.Visible(lookalike.Unescaped(id)))
	shown := cut(lookalike.Visible(text)) + "\n" + cut(lookalike.Visible(id))
	texts := slices.Compact([]string{typed, shown, meant})
	for i, s := range texts {
		b.readDigits(s, i == 0)
		b.readNumbers(s)
	}
	b.lookups += 2*len(p.IDs) + len(p.Accuse) + len(p.Maybe) + len(p.Numbers) + len(p.Server) + 500 // and Near
	for _, l := range slices.Concat([]Literal{p.Whole}, p.Lines, p.Parts) {
		for _, form := range l {
			b.lookups += len(form.Forms)
		}
	}
	for i, s := range texts {
		b.reading = i
		b.readRuns(s)
	}
}

// cut returns the first MaxText code points of s.
func cut(s string) string {
	n := 0
	for at := range s {
		if n++; n > MaxText {
			return s[:at]
		}
	}
	return s
}

// digits is a run of digits.
type digits struct {
	Span
	run string // as 0 to 9
}

// readDigits collects every grouping of digits: successive runs without a letter between them. In the
// typed text, all digits of a longest run of digits and separators go to Accuse. The numbers of places
// are nobody's.
func (b *builder) readDigits(s string, typed bool) {
	places := b.rd.placesIn(s)
	inPlace := func(of Span) bool {
		return slices.ContainsFunc(places, func(p Span) bool { return p.From <= of.From && of.To <= p.To })
	}
	p := b.p
	if typed {
		for _, run := range wholeRuns(s, inPlace) {
			p.Accuse = appendNew(p.Accuse, run)
		}
	}
	seen := map[string]bool{}
	for _, id := range slices.Concat(p.Accuse, p.Maybe) {
		seen[id] = true
	}
	for _, chain := range chains(s) {
		for from := range chain {
			run := ""
			for to := from; to < len(chain) && len(run) <= MaxDigits; to++ {
				if run += chain[to].run; !isRun(run) {
					continue
				}
				p.HasID = true
				if !seen[run] && !inPlace(Span{chain[from].From, chain[to].To}) {
					seen[run] = true
					p.Maybe = append(p.Maybe, run)
				}
			}
		}
	}
}

// chains returns the runs of digits of any script that no letter parts.
func chains(s string) (all [][]digits) {
	var chain []digits
	parted := true // the next digit begins a run
	for at, r := range s {
		switch value, ok := digit(r); {
		case ok && parted:
			chain = append(chain, digits{Span{at, at + utf8.RuneLen(r)}, string(value)})
			parted = false
		case ok:
			last := &chain[len(chain)-1]
			last.run += string(value)
			last.To = at + utf8.RuneLen(r)
		default:
			if parted = true; unicode.IsLetter(r) && len(chain) > 0 {
				all, chain = append(all, chain), nil
			}
		}
	}
	return append(all, chain)
}

// wholeRuns returns the digits of the longest runs of digits and separators that have as many as an id.
func wholeRuns(s string, inPlace func(Span) bool) (all []string) {
	run := ""
	end := func() {
		if isRun(run) {
			all = append(all, run)
		}
		run = ""
	}
	for at, r := range s {
		value, ok := digit(r)
		switch {
		case ok && !inPlace(Span{at, at + 1}):
			if run += string(value); len(run) > MaxDigits {
				run = run[:MaxDigits+1]
			}
		case !ok && (unicode.IsSpace(r) || strings.ContainsRune("-._,/", r)):
		default:
			end()
		}
	}
	end()
	return all
}

// digit returns the value of a digit of any script.
func digit(r rune) (value byte, ok bool) {
	if r < utf8.RuneSelf {
		return byte(r), '0' <= r && r <= '9'
	}
	if !unicode.Is(unicode.Nd, r) {
		return 0, false
	}
	zero := r
	for unicode.Is(unicode.Nd, zero-1) { // scripts have their digits in tens, some next to each other
		zero--
	}
	return '0' + byte(r-zero)%10, true
}

// readNumbers collects the words that may be the number of a report, and the entries of addresses.
func (b *builder) readNumbers(s string) {
	p := b.p
	for _, m := range b.rd.entry.FindAllStringSubmatch(s, -1) {
		p.Numbers = appendNew(p.Numbers, strings.TrimRight(m[2], "-_"))
	}
	for _, number := range b.rd.number.FindAllString(s, -1) {
		if IsNumber(number) && !Digits(number) || Digits(number) && 4 <= len(number) && len(number) < MinDigits {
			p.Numbers = appendNew(p.Numbers, number)
		}
	}
	if IsNumber(p.Text) {
		p.Numbers = appendNew(p.Numbers, p.Text)
	}
}

// IsNumber reports whether a text may be the number of a report or an id that is no number: it has
// a digit, and at least four characters, and at most as many as a number may have.
func IsNumber(s string) bool {
	return strings.ContainsAny(s, "0123456789") && bounds.Longer(s, 3) && !bounds.Longer(s, bounds.MaxID)
}

// word is a word of a reading, or a mark that stands alone.
type word struct {
	Span
	core  lookalike.Keys
	alone bool // it is no word, but white space is around it
}

// readRuns collects the runs of words.
func (b *builder) readRuns(s string) {
	words := wordsOf(s)
	b.whole = key(coreOf(words))
	for size := 1; size <= MaxWords; size++ {
		for from := 0; from+size <= len(words); from++ {
			if size > 1 || !isPiece(s, words[from].Span) {
				b.addRun(s, words, from, from+size)
			}
		}
	}
	pieces := spacedWords(s, words) // up to six words with more pieces than that
	for from := range pieces {
		for to := from + 1; to <= len(pieces) && to-from <= MaxWords; to++ {
			if first, last := pieces[from].From, pieces[to-1].To; last-first > MaxWords {
				b.addRun(s, words, first, last)
			}
		}
	}
	if len(words) > MaxWords {
		b.addRun(s, words, 0, len(words))
	}
}

// isPiece reports whether a dot, a dash or an underscore joins a part of a text to another one: then it is
// a part of a word. Many nicks have a common name as a part.
func isPiece(s string, at Span) bool {
	joined := func(joint, next rune) bool {
		return (joint == '.' || joint == '-' || joint == '_') && lookalike.IsWordly(next)
	}
	before, size := utf8.DecodeLastRuneInString(s[:at.From])
	first, _ := utf8.DecodeLastRuneInString(s[:at.From-size])
	after, size := utf8.DecodeRuneInString(s[at.To:])
	last, _ := utf8.DecodeRuneInString(s[at.To+size:])
	return joined(before, first) || joined(after, last)
}

// coreOf returns the core of words in a row. Next to words, what stands alone is decoration.
func coreOf(words []word) lookalike.Keys {
	var shape, folded strings.Builder
	marks := !slices.ContainsFunc(words, func(w word) bool { return !w.alone })
	for _, w := range words {
		if !w.alone || marks {
			shape.WriteString(w.core.Shape)
			folded.WriteString(w.core.Folded)
		}
	}
	return lookalike.Keys{Shape: shape.String(), Folded: folded.String()}
}

func key(core lookalike.Keys) string { return core.Shape + "\n" + core.Folded }

// addRun adds the words from from to to, unless they were added before.
func (b *builder) addRun(s string, words []word, from, to int) {
	core := coreOf(words[from:to])
	k := key(core)
	if k == "\n" || b.known[k] {
		return
	}
	if b.lookups++; b.lookups > MaxLookups {
		return
	}
	b.known[k] = true
	at := Span{words[from].From, words[to-1].To}
	b.p.Runs = append(b.p.Runs, Run{
		Text: s[at.From:at.To], Core: core, Whole: k == b.whole, From: at.From, To: at.To, Reading: b.reading,
	})
}

// wordsOf returns the words of a text: its runs of letters, numbers and marks, and what stands alone
// between white space without any, also without quotes.
func wordsOf(s string) (words []word) {
	cores := map[string]lookalike.Keys{}
	coreOf := func(text string) lookalike.Keys {
		core, ok := cores[text]
		if !ok {
			core = lookalike.Core(text)
			cores[text] = core
		}
		return core
	}
	at := 0
	for piece := range strings.FieldsSeq(s) {
		at += strings.Index(s[at:], piece)
		if !strings.ContainsFunc(piece, lookalike.IsWordly) {
			bare := strings.Trim(piece, `"'„”“«»‚‘’()[]{}<>,;:`)
			if bare == "" {
				bare = piece
			}
			from := at + strings.Index(piece, bare)
			words = append(words, word{Span{from, from + len(bare)}, coreOf(bare), true})
		}
		from := -1
		for i, r := range piece + " " {
			switch wordly := lookalike.IsWordly(r); {
			case wordly && from < 0:
				from = i
			case !wordly && from >= 0:
				words = append(words, word{Span: Span{at + from, at + i}, core: coreOf(piece[from:i])})
				from = -1
			}
		}
		at += len(piece)
	}
	return words
}

// spacedWords returns the words between white space, as ranges of words.
func spacedWords(s string, words []word) (all []Span) {
	for i, w := range words {
		if i > 0 && !strings.ContainsFunc(s[words[i-1].To:w.From], unicode.IsSpace) {
			all[len(all)-1].To = i + 1
			continue
		}
		all = append(all, Span{i, i + 1})
	}
	return all
}
