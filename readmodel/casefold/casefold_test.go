package casefold

import (
	"strings"
	"testing"
	"unicode"
)

// TestString folds what CaseFolding.txt lists with a status of its own: full foldings, Cherokee,
// and letters that only Turkic languages fold otherwise.
func TestString(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "Ala": "ala", "ŻÓŁĆ": "żółć", "Straße": "strasse", "ẞ": "ss", "ﬁ": "fi", "ΣΑΣ": "σασ", "ς": "σ", "İI": "i̇i", "ı": "ı",
		"Ꭰ": "Ꭰ", "ꭰ": "Ꭰ", "ꮿ": "Ꮿ", "Ᏽ": "Ᏽ", "ᏸᏽ": "ᏰᏵ", "Aꭰ": "aᎠ",
	} {
		if got := String(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestEveryLetter folds each code point like all that differ from it in case only, and once and
// for all.
func TestEveryLetter(t *testing.T) {
	for r := range unicode.MaxRune + 1 {
		folded := String(string(r))
		if other := unicode.SimpleFold(r); String(string(other)) != folded {
			t.Errorf("%U folds to %+q, and %U to %+q", r, folded, other, String(string(other)))
		}
		if any := foldAny(string(r)); any != folded {
			t.Errorf("%U folds to %+q alone, want %+q as in any text", r, folded, any)
		}
		if twice := String(folded); twice != folded {
			t.Errorf("%U folds to %+q, and that to %+q", r, folded, twice)
		}
	}
}

// FuzzString: texts that are folded a character at a time fold like any text.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "Żółć „x” 😀", "Straße\u0300İ", "ΣΑΣ", "Ꭰꭰ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "")
		if got, want := String(s), foldAny(s); got != want {
			t.Fatalf("%+q folds to %+q, want %+q", s, got, want)
		}
	})
}
