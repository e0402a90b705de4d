// Package casefold implements full Unicode case folding. Every comparison of the registry uses it:
// lists, look-alike keys, ranked search, the person check and its pages. A change raises
// RenderVersion and the Version of package terms.
//
// It differs from golang.org/x/text/cases only in Cherokee. Unicode added Cherokee's small letters
// after its capitals, so CaseFolding.txt folds them to the capitals. x/text swaps the two.
package casefold

import (
	"strings"

	"golang.org/x/text/cases"
)

// String returns the full case folding of s, which is valid UTF-8. Any goroutine may call it.
func String(s string) string {
	s = cases.Fold().String(s) // a Caser may keep state, so each call has its own
	if !strings.ContainsFunc(s, func(r rune) bool { return capital(r) != r }) {
		return s
	}
	return strings.Map(capital, s)
}

// capital returns the capital of a small Cherokee letter, and any other rune unchanged.
func capital(r rune) rune {
	switch {
	case 'ꭰ' <= r && r <= 'ꮿ':
		return r - 'ꭰ' + 'Ꭰ'
	case 'ᏸ' <= r && r <= 'ᏽ':
		return r - 'ᏸ' + 'Ᏸ'
	}
	return r
}
