package readmodel

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold is the form in which texts are compared (API contract, lists): NFKC, full Unicode case
// folding, every run of white space one space. Any goroutine may call it.
func Fold(s string) string {
	if isFoldedASCII(s) {
		return s
	}
	// A Caser may keep state, so each call has its own.
	return oneSpace(cases.Fold().String(norm.NFKC.String(s)))
}

// isFoldedASCII says whether s is its own folded form without a closer look: most ids are.
func isFoldedASCII(s string) bool {
	space := false
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' || '\t' <= c && c <= '\r' || c == ' ' && space {
			return false
		}
		space = c == ' '
	}
	return true
}

// oneSpace makes every run of white space one space.
func oneSpace(s string) string {
	if isSpaced(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		if !unicode.IsSpace(r) {
			b.WriteRune(r)
		} else if !space {
			b.WriteByte(' ')
		}
		space = unicode.IsSpace(r)
	}
	return b.String()
}

// isSpaced says whether the only white space in s is single spaces.
func isSpaced(s string) bool {
	space := false
	for _, r := range s {
		if r != ' ' && unicode.IsSpace(r) || r == ' ' && space {
			return false
		}
		space = r == ' '
	}
	return true
}
