package reason

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/lookalike"
)

// maxMarks is how many non-spacing marks a letter may carry where it is shown. More of them paint
// over the lines around it.
const maxMarks = 2

// Plain returns s, a text of a stranger, as it may be shown: in NFC, with at most two non-spacing
// marks on a letter, and without bidirectional controls, which reorder the text around them.
func Plain(s string) string { return dropMarks(norm.NFC.String(s)) }

// dropMarks drops bidirectional controls, and from each run of non-spacing marks all but the first maxMarks.
func dropMarks(s string) string {
	const firstDropped = 0x300 // no mark and no control comes before it, so most characters need no look-up
	marks := 0
	return strings.Map(func(r rune) rune {
		if r >= firstDropped && unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}

		// Count the marks of a run, which any other character ends.
		if r < firstDropped || !unicode.In(r, unicode.Mn, unicode.Me) {
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

// IsVisible reports whether s shows anything: a letter, a number, a punctuation mark or a symbol,
// except for the few of them that are displayed as nothing.
func IsVisible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		const blankBraille = '\u2800'
		return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && r != blankBraille && !lookalike.IsInvisible(r)
	})
}
