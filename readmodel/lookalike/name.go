package lookalike

import (
	"html"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/casefold"
)

// Literal returns a name in NFC and in full case folding, with one space for each run of white space and none
// at the ends. Names that are equal in this form count as the same name.
func Literal(name string) string {
	return strings.Join(strings.Fields(casefold.String(norm.NFC.String(name))), " ")
}

// Core returns the joined keys of a name without its decoration: only its letters, numbers and marks count. Core removes
// the other characters before it takes the skeleton, since the skeleton turns some symbols into letters. From a name
// that is only decoration, it removes only the white space. The core of a text is the cores of its words, put together.
func Core(name string) Keys {
	name = Visible(name)
	undecorated := keysOf(KeepWordly(name)).Joined()
	if undecorated.Shape != "" && undecorated.Folded != "" {
		return undecorated
	}
	return keysOf(strings.Join(strings.Fields(name), "")).Joined()
}

// Cores returns the cores under which a name is found: the core of the name; of the name without symbols such as
// ™, which NFKC turns into letters; and of the unescaped name.
func Cores(name string) []Keys {
	all := []Keys{Core(name)}
	if bare := KeepWordly(name); bare != "" && bare != name {
		all = append(all, Core(bare))
	}
	if unescaped := Unescaped(name); unescaped != name {
		all = append(all, Core(unescaped))
	}
	return all
}

// Unescaped returns a text with its HTML entities and the percent escapes of its URLs decoded.
func Unescaped(s string) string {
	s = html.UnescapeString(s)
	if plain, err := url.PathUnescape(s); err == nil && utf8.ValidString(plain) {
		s = plain
	}
	return s
}

// KeepWordly returns the letters, numbers and marks of s.
func KeepWordly(s string) string {
	return strings.Map(func(r rune) rune {
		if IsWordly(r) {
			return r
		}
		return -1
	}, s)
}

// IsWordly reports whether r is part of a word: a letter, a number or a mark.
func IsWordly(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// smallCapitals replaces the small capitals in a key by their letters. ʍ becomes rn, as m does in every skeleton.
var smallCapitals = strings.NewReplacer("ᴀ", "a", "ʙ", "b", "ᴅ", "d", "ᴇ", "e", "ꜰ", "f", "ɢ", "g", "ʜ", "h", "ᴊ", "j", "ĸ", "k",
	"ʟ", "l", "ʍ", "rn", "ɴ", "n", "ᴘ", "p", "ꞯ", "q", "ʀ", "r", "ᴛ", "t")

// Hidden reports whether s has invisible characters that a disguise can use. Characters that form
// an emoji do not count: joiners and variation selectors next to symbols, and tags after a flag.
func Hidden(s string) bool {
	var before rune
	runes := append([]rune(s), 0) // so that a rune follows each character of s
	for i, r := range runes[:len(runes)-1] {
		isSelector := r == '\ufe0e' || r == '\ufe0f'
		isOfSymbol := isSelector && (isPictorial(before) || strings.ContainsRune("0123456789#*", before))
		isFlagTag := r >= 0xe0020 && r <= 0xe007f && before == blackFlag // England, Scotland, Wales
		if isOfSymbol || isFlagTag {
			continue // keep the symbol or flag in before, since a joiner or another tag may come next
		}

		isJoiner := r == '\u200d' && isPictorial(before) && isPictorial(runes[i+1])
		if IsInvisible(r) && !isJoiner {
			return true
		}
		before = r
	}
	return false
}

// blackFlag begins the flags of parts of a country.
const blackFlag = '\U0001f3f4'

// isPictorial reports whether r is a symbol, a skin tone, or a punctuation mark that can be an emoji.
func isPictorial(r rune) bool {
	isSkinTone := r >= 0x1f3fb && r <= 0x1f3ff
	return isSkinTone || unicode.In(r, unicode.So, unicode.Sm) || strings.ContainsRune("‼⁉〰", r)
}
