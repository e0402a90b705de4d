// Package casefold implements full Unicode case folding. Every comparison of the registry uses it.
// It differs from golang.org/x/text/cases only in Cherokee. Unicode added Cherokee's small letters
// after its capitals, so CaseFolding.txt folds the small letters to the capitals, and keeps the
// capitals. x/text also folds the capitals, to the small letters.
package casefold

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
)

// String returns the full case folding of s, which must be valid UTF-8. Any goroutine may call it.
func String(s string) string {
	isFolded := true // each character so far is in the table latin, or has no case
	folded := strings.Map(func(r rune) rune {
		if int(r) < len(latin) && latin[r] > 0 {
			return latin[r]
		}

		isFolded = isFolded && isCaseless(r)
		return r
	}, s)
	if isFolded {
		return folded
	}
	return foldAny(s)
}

// foldAny folds any text. It takes five times as long as the table latin.
func foldAny(s string) string {
	folded := cases.Fold().String(s) // a Caser may keep state, so each call has its own
	return strings.Map(cherokeeCapital, folded)
}

// latin has the folding of each character up to Latin Extended-A; most texts have no others. It has 0 for the few
// characters that fold to two.
var latin = func() (table [0x180]rune) {
	for r := range rune(len(table)) {
		if folded := []rune(foldAny(string(r))); len(folded) == 1 {
			table[r] = folded[0]
		}
	}
	return table
}()

// isCaseless reports whether r is in a block of punctuation or emoji, which have no case.
func isCaseless(r rune) bool {
	return 0x2000 <= r && r < 0x2100 || 0x1f300 <= r && r < 0x1fb00
}

// cherokeeCapital returns the capital of a small Cherokee letter, and any other rune unchanged.
func cherokeeCapital(r rune) rune {
	if unicode.Is(unicode.Cherokee, r) {
		return unicode.ToUpper(r)
	}
	return r
}
