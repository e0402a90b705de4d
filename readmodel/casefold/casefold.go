// Package casefold implements full Unicode case folding. Every comparison of the registry uses it.
// It differs from golang.org/x/text/cases only in Cherokee. Unicode added Cherokee's small letters
// after its capitals, so CaseFolding.txt folds them to the capitals. x/text swaps the two.
package casefold

import (
	"strings"

	"golang.org/x/text/cases"
)

// String returns the full case folding of s, which must be valid UTF-8. Any goroutine may call it.
func String(s string) string {
	folded := cases.Fold().String(s) // a Caser may keep state, so each call has its own
	return strings.Map(cherokeeCapital, folded)
}

// cherokeeCapital returns the capital of a small Cherokee letter, and any other rune unchanged.
func cherokeeCapital(r rune) rune {
	if 'ꭰ' <= r && r <= 'ꮿ' {
		return r - 'ꭰ' + 'Ꭰ'
	}
	if 'ᏸ' <= r && r <= 'ᏽ' {
		return r - 'ᏸ' + 'Ᏸ'
	}
	return r
}
