package paste

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// group is a run of digits in a text.
type group struct {
	Span
	run      string // its digits, as 0 to 9, with ? for other numbers
	lettered bool   // a letter touches it, or replaces one of its digits
	loose    bool   // it is in an address that is not the platform's
	aside    bool   // part of a time, a date or a list, or only letters that may replace digits
}

// isOne reports whether the group may be an id by itself, or a part of one, that was typed.
func (g *group) isOne() bool { return !g.lettered && !g.loose && !g.aside }

// digit returns the digit value of a number of any script, or ? for another number.
func digit(r rune) (value byte, ok bool) {
	switch {
	case r >= '0' && r <= '9':
		return byte(r), true
	case r < utf8.RuneSelf || !unicode.IsNumber(r):
		return 0, false
	case unicode.Is(unicode.Nd, r):
		zero := r
		for unicode.Is(unicode.Nd, zero-1) { // scripts have their digits in tens, some next to each other
			zero--
		}
		return '0' + byte(r-zero)%10, true
	case r == '⓿', r == '🄋', r == '🄌':
		return '0', true
	}
	for _, one := range "❶➀➊⓵" { // circled digits without a compatibility mapping
		if r >= one && r < one+9 {
			return '1' + byte(r-one), true
		}
	}
	return '?', true
}

// swapped returns the letters that replace digits: those in words made only of such letters and
// digits.
func swapped(text string) map[int]byte {
	all, at := map[int]byte{}, 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		at += strings.Index(text[at:], word)
		if strings.Trim(word, "0123456789OoIl") == "" {
			for i := range len(word) {
				switch word[i] {
				case 'O', 'o':
					all[at+i] = '0'
				case 'I', 'l':
					all[at+i] = '1'
				}
			}
		}
		at += len(word)
	}
	return all
}

// chains returns the runs of digits of a text, in chains without a letter in between. Marks within
// a run, such as that of a keycap, do not end it.
func (x *reading) chains() (all [][]group) {
	swaps := swapped(x.text)
	var chain []group
	var g group
	var run []byte
	letters := 0 // letters of the run that replace digits
	end := func(to int, after rune) {
		if len(run) == 0 {
			return
		}
		g.To, g.run = to, string(run)
		g.lettered = g.lettered || unicode.IsLetter(after) || letters > 0
		g.aside = letters == len(run) || within(x.asides, g.Span)
		g.loose = within(x.loose, g.Span)
		chain, run, letters = append(chain, g), nil, 0
	}
	before := ' '
	for i, r := range x.text {
		d, ok := digit(r)
		if s, is := swaps[i]; is {
			d, ok = s, true
			letters++
		}
		switch {
		case within(x.bars, Span{i, i + 1}):
			end(i, ' ')
			before = ' '
			continue
		case ok && len(run) == 0:
			g = group{Span: Span{From: i}, lettered: lettered(before) && !x.rd.glued.MatchString(x.text[max(0, i-4):i])}
			run = []byte{d}
		case ok:
			run = append(run, d)
		case unicode.IsMark(r) && len(run) > 0:
		case unicode.IsLetter(r):
			if end(i, r); len(chain) > 0 {
				all, chain = append(all, chain), nil
			}
		default:
			end(i, r)
		}
		before = r
	}
	if end(len(x.text), ' '); len(chain) > 0 {
		all = append(all, chain)
	}
	return all
}

func lettered(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// within reports whether a span lies within one of others.
func within(others []Span, s Span) bool {
	for _, o := range others {
		if o.Covers(s) {
			return true
		}
	}
	return false
}

func isRun(s string) bool { return len(s) >= MinDigits && len(s) <= MaxDigits && Digits(s) }

// maxGap is the maximum number of code points between two groups of one number.
const maxGap = 3

// readDigits finds every grouping of digits that makes an id, whatever lies between them except
// letters. A group with the digits of an id is typed, and so are the groups between two such groups
// together; any other grouping only may be an id. If a grouping includes a time, or digits of a
// word, it counts only if that id is listed.
func (x *reading) readDigits() {
	chains, left := x.chains(), 0
	for _, chain := range chains {
		for from := 0; from < len(chain); {
			to := from + 1
			for to < len(chain) && x.continues(&chain[to-1], &chain[to]) {
				to++
			}
			left += x.readNumber(chain[from:to])
			from = to
		}
		for from := range chain {
			run, odd := "", false
			for to := from; to < len(chain) && len(run) <= MaxDigits; to++ {
				odd = odd || chain[to].aside || chain[to].lettered
				if run += chain[to].run; isRun(run) {
					x.seekID(Sought{ID: run, Short: chain[to].aside || odd && from < to, How: Maybe, Spans: []Span{{chain[from].From, chain[to].To}}})
				}
			}
		}
	}
	if left >= MinDigits { // words among the digits of an id do not invalidate it
		for i, c := range x.claims {
			if c.Kind == Figure {
				x.claims[i].Kind = Number
			}
		}
	}
}

// continues reports whether two groups of a chain belong to one number, as people write numbers.
func (x *reading) continues(a, b *group) bool {
	return a.isOne() && b.isOne() && !isRun(a.run) && !isRun(b.run) && utf8.RuneCountInString(x.text[a.To:b.From]) <= maxGap
}

// readNumber reads groups that form one number, and returns how many digits remain unclassified.
func (x *reading) readNumber(groups []group) (left int) {
	run, typed := "", true
	for _, g := range groups {
		run += g.run
		typed = typed && g.isOne()
	}
	span := Span{groups[0].From, groups[len(groups)-1].To}
	kind := numberKind(run, strings.HasSuffix(x.text[:span.From], "+") || strings.HasPrefix(run, "00"))
	switch {
	case isRun(run) && typed:
		for _, g := range groups {
			if kind = max(kind, numberKind(g.run, false)); strings.HasSuffix(x.text[:g.From], "+") {
				kind = Telephone
			}
		}
		x.seekID(Sought{ID: run, Spans: []Span{span}})
		if len(groups) == 1 { // several groups may be parts of names
			x.masks = append(x.masks, span)
		}
		x.claim(span, Identity, kind)
	case kind != Plain && typed:
		x.claim(span, Unchecked, kind)
	default:
		for _, g := range groups {
			switch kind := numberKind(g.run, false); {
			case len(g.run) > MaxDigits || !Digits(g.run):
				x.claim(g.Span, Unchecked, Number)
			case kind != Plain && typed:
				x.claim(g.Span, Unchecked, kind)
			case typed:
				x.claim(g.Span, Unchecked, Figure)
				left += len(g.run)
			case g.lettered && !g.aside: // a part of a name, or of an id with letters in it
				x.claim(g.Span, Unchecked, Figure)
			}
		}
	}
	return left
}
