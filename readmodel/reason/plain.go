package reason

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/lookalike"
)

// maxMarks is how many non-spacing marks a letter may carry where it is shown. More of them paint
// over the lines around it.
const maxMarks = 2

// Plain returns s, a text of a stranger, as it may be shown: in NFC, with at most two non-spacing
// marks on a letter, and without bidirectional controls, which reorder the text around them.
func Plain(s string) string { return withoutMarks(norm.NFC.String(s)) }

// withoutMarks drops bidirectional controls, and marks beyond maxMarks.
func withoutMarks(s string) string {
	if isASCII(s) {
		return s
	}
	marks := 0
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x300: // the first mark
			marks = 0
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		case !unicode.In(r, unicode.Mn, unicode.Me):
			marks = 0
		default:
			if marks++; marks > maxMarks {
				return -1
			}
		}
		return r
	}, s)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// IsVisible reports whether s shows anything: a letter, a number, a punctuation mark or a symbol
// that is not displayed as nothing.
func IsVisible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		const blankBraille = '\u2800'
		return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && r != blankBraille && !lookalike.IsInvisible(r)
	})
}
