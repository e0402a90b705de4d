package paste

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// group is a run of digits in a text.
type group struct {
	Span
	run         string // its digits, as 0 to 9
	left, right bool   // a letter touches it
	loose       bool   // it stands in an address that is not the platform's
}

// digit returns the value of a decimal digit of any script.
func digit(r rune) (value byte, ok bool) {
	if r >= '0' && r <= '9' {
		return byte(r - '0'), true
	}
	if r < utf8.RuneSelf || !unicode.Is(unicode.Nd, r) {
		return 0, false
	}
	for zero := r; ; zero-- { // scripts have their digits in tens, some of them side by side
		if !unicode.Is(unicode.Nd, zero-1) {
			return byte(r-zero) % 10, true
		}
	}
}

// groups returns the runs of digits of a text. Letters that people write for digits count as digits
// in a word that has no others, and more digits than those.
func (rd *Reader) groups(text string) (all []group) {
	swapped := map[int]byte{}
	for _, m := range rd.swapped.FindAllStringIndex(text, -1) {
		word := text[m[0]:m[1]]
		if letters := len(word) - len(rd.digits.FindAllString(word, -1)); 0 < letters && letters <= len(word)/2 {
			for i := range len(word) {
				swapped[m[0]+i] = strings.NewReplacer("O", "0", "o", "0", "I", "1", "l", "1").Replace(word[i : i+1])[0] - '0'
			}
		}
	}
	var run []byte
	from := 0
	end := func(to int, after rune) {
		if len(run) > 0 {
			g := group{Span: Span{from, to}, run: string(run), right: lettered(after)}
			first, _ := utf8.DecodeLastRuneInString(text[:from])
			g.left = lettered(first) && !rd.glued.MatchString(text[max(0, from-4):from])
			_, odd := swapped[from]
			g.left = g.left || odd
			all, run = append(all, g), nil
		}
	}
	for i, r := range text {
		d, ok := digit(r)
		if s, is := swapped[i]; is {
			d, ok = s, true
		}
		if !ok {
			end(i, r)
		} else {
			if len(run) == 0 {
				from = i
			}
			run = append(run, d+'0')
		}
	}
	end(len(text), ' ')
	return all
}

func lettered(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// separates reports whether people write s between the digits of one id.
func separates(s string) bool {
	return utf8.RuneCountInString(s) <= 3 && strings.TrimFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || strings.ContainsRune("-.,_/\\'’‘`´()[]{}−", r)
	}) == ""
}

func isRun(s string) bool { return len(s) >= MinDigits && len(s) <= MaxDigits }

// readDigits seeks every grouping of digits that makes an id. A chain is groups with only separators
// between them. A group that has the digits of an id by itself is typed, and so are all of the
// others between two of those together; any other grouping only may be an id.
func (x *reading) readDigits() {
	groups := x.rd.groups(x.text)
	for len(groups) > 0 {
		n := 1
		for n < len(groups) && continues(groups[n-1], groups[n]) && separates(x.text[groups[n-1].To:groups[n].From]) && !x.barred(groups[n-1].To-1, groups[n].From+1) {
			n++
		}
		if !x.barred(groups[0].From, groups[0].To) {
			x.readChain(groups[:n])
		}
		groups = groups[n:]
	}
}

// continues reports whether a group may go on with the number of the one before. Digits at the end
// of a name do not belong to an id beside it that is whole.
func continues(before, g group) bool {
	return !before.right && !g.left && !(before.left && isRun(g.run))
}

// barred reports whether a stretch whose digits are nobody's id lies between two places.
func (x *reading) barred(from, to int) bool {
	for _, b := range x.bars {
		if b.From < to && from < b.To {
			return true
		}
	}
	return false
}

func (x *reading) readChain(chain []group) {
	for i := range chain {
		for _, l := range x.loose {
			chain[i].loose = chain[i].loose || l.Covers(chain[i].Span)
		}
	}
	for from := 0; from < len(chain); {
		to := from + 1
		for !isRun(chain[from].run) && !chain[from].left && to < len(chain) && !isRun(chain[to].run) && !chain[to].right {
			to++
		}
		x.readNumber(chain[from:to])
		from = to
	}
	for from := range chain {
		run := ""
		for to := from; to < len(chain) && len(run) <= MaxDigits; to++ {
			if run += chain[to].run; isRun(run) {
				x.seekID(run, Maybe, Span{chain[from].From, chain[to].To})
			}
		}
	}
}

// readNumber reads groups that are one number together.
func (x *reading) readNumber(groups []group) {
	run, typed := "", true
	for _, g := range groups {
		run += g.run
		typed = typed && !g.left && !g.right && !g.loose
	}
	span := Span{groups[0].From, groups[len(groups)-1].To}
	kind := numberKind(run, strings.HasSuffix(x.text[:span.From], "+") || strings.HasPrefix(run, "00"))
	if isRun(run) && typed {
		x.seekID(run, Typed, span)
	}
	switch {
	case isRun(run):
		for _, g := range groups {
			kind = max(kind, numberKind(g.run, false))
		}
		x.claim(span, Identity, kind)
		return
	case kind != Plain && typed:
		x.claim(span, Unchecked, kind)
		return
	}
	for _, g := range groups {
		if kind := numberKind(g.run, false); kind != Plain && typed {
			x.claim(g.Span, Unchecked, kind)
		} else if len(g.run) > MaxDigits {
			x.claim(g.Span, Unchecked, Number)
		}
	}
}
