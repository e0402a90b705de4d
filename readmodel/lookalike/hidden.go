package lookalike

import (
	"strings"
	"unicode"
)

// Hidden reports whether s has invisible characters that a disguise can use. Characters that form
// an emoji do not count: joiners and variation selectors next to symbols, and tags after a flag.
func Hidden(s string) bool {
	var before rune
	rest := []rune(s)
	for i, r := range rest {
		var after rune
		if i+1 < len(rest) {
			after = rest[i+1]
		}
		switch {
		case !ignorable(r):
		case r == '\u200d' && pictorial(before) && pictorial(after):
		case (r == '\ufe0e' || r == '\ufe0f') && (pictorial(before) || strings.ContainsRune("0123456789#*", before)):
			continue // the next character follows a symbol
		case r >= 0xe0020 && r <= 0xe007f && before == blackFlag:
			continue // England, Scotland, Wales
		default:
			return true
		}
		before = r
	}
	return false
}

// blackFlag begins the flags of parts of a country.
const blackFlag = '\U0001f3f4'

// pictorial reports whether r is a symbol, or a skin tone.
func pictorial(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sm) || r >= 0x1f3fb && r <= 0x1f3ff || r == '‼' || r == '⁉' || r == '〰'
}
