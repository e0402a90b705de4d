package lookalike

import (
	"strings"
	"unicode"
)

// Hidden reports whether s has invisible characters that a disguise can use. Characters that form
// an emoji do not count: joiners and variation selectors next to symbols, and tags after a flag.
func Hidden(s string) bool {
	var before rune
	runes := []rune(s)
	for i, r := range runes {
		var after rune
		if i+1 < len(runes) {
			after = runes[i+1]
		}

		isSelector := r == '\ufe0e' || r == '\ufe0f'
		if isSelector && (isPictorial(before) || strings.ContainsRune("0123456789#*", before)) {
			continue // the next character follows the symbol
		}

		isJoiner := r == '\u200d' && isPictorial(before) && isPictorial(after)
		isFlagTag := r >= 0xe0020 && r <= 0xe007f && before == blackFlag // England, Scotland, Wales
		if isFlagTag {
			continue // so that the next tag follows the flag
		}
		if IsInvisible(r) && !isJoiner {
			return true
		}
		before = r
	}
	return false
}

// blackFlag begins the flags of parts of a country.
const blackFlag = '\U0001f3f4'

// isPictorial reports whether r is a symbol, or a skin tone.
func isPictorial(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sm) || r >= 0x1f3fb && r <= 0x1f3ff || r == '‼' || r == '⁉' || r == '〰'
}
