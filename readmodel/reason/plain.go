package reason

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/lookalike"
)

// maxMarks is how many non-spacing marks a shown letter may carry. More marks would paint over the lines around
// the letter.
const maxMarks = 2

// Plain makes s, a text of a stranger, safe to show: in NFC, with at most two non-spacing marks on a letter, and
// without bidirectional controls, which reorder the text around them.
func Plain(s string) string { return dropMarks(norm.NFC.String(s)) }

// dropMarks drops bidirectional controls, and from each run of non-spacing marks all but the first maxMarks.
func dropMarks(s string) string {
	const firstMark = 0x300 // the first mark; the first bidirectional control comes later
	marks := 0              // in the current run
	return strings.Map(func(r rune) rune {
		if r < firstMark { // most characters, which need no look-up
			marks = 0
			return r
		}
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}

		if !unicode.In(r, unicode.Mn, unicode.Me) {
			marks = 0
			return r
		}
		marks++
		if marks > maxMarks {
			return -1
		}
		return r
	}, s)
}

// IsVisible reports whether s shows anything: a letter, a number, a punctuation mark or a symbol. The blank
// braille pattern and invisible characters do not count.
func IsVisible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		const blankBraille = '\u2800'
		return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && r != blankBraille && !lookalike.IsInvisible(r)
	})
}
