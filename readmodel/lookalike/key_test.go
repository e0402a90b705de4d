package lookalike

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKeys(t *testing.T) {
	for name, want := range map[string]Keys{
		"":               {"", ""},
		"adam":           {"adarn", "adarn"},
		"Łukasz":         {"lukasz", "lukasz"},
		"ŁUKASZ":         {"lukasz", "lukasz"},
		"Øđłħŧ":          {"odlht", "odlht"},
		"ȺɃȻɆǤƗɈȽⱣɌȾɄɎƵ": {"abcegljlprtuyz", "abcegijlprtuyz"}, // folding brings strokes back
		"żółć":           {"zolc", "zolc"},
		"аdmin":          {"adrnin", "adrnin"}, // Cyrillic
		"paypal":         {"paypal", "paypal"},
		"paypaI":         {"paypal", "paypai"},
		"PAYPAL":         {"paypal", "paypal"},
		"Ilona":          {"llona", "ilona"},
		"ILONA":          {"llona", "ilona"},
		"ig0r1":          {"igorl", "igOrl"}, // no folding after the skeleton
		"ａdｍiｎ":          {"adrnin", "adrnin"},
		"𝓪𝖉𝕒m":           {"adarn", "adarn"},
		"ﬃ ꜳ":            {"ffi aa", "ffi aa"},
		"Straße":         {"strasse", "strasse"},
		"pay\u00adpal":   {"paypal", "paypal"},
		"\u202epay\u2066pal\u200b\u034f\U000E0041": {"paypal", "paypal"},
		"p̷a⃝ÿ":        {"pay", "pay"},
		"ABC rn m":     {"abc rn rn", "abc rn rn"},
		"a  b":         {"a  b", "a  b"}, // white space is no part of the rule
		"\u200d\u0301": {"", ""},
		"35@$":         {"35@$", "35@$"}, // Unicode confuses only 0 and 1 with letters
	} {
		if got := KeysOf(name); got != want {
			t.Errorf("%+q: %+q, want %+q", name, got, want)
		}
	}
}

// TestPrototypes: a prototype has no prototype of its own, so one pass is enough.
func TestPrototypes(t *testing.T) {
	all := prototypes()
	for r, p := range all {
		for _, c := range p {
			if again, ok := all[c]; ok {
				t.Errorf("%+q looks like %+q, and %+q like %+q", r, p, c, again)
			}
		}
	}
	if len(all) != 6311 { // the total in the file
		t.Errorf("%d code points look like others, want 6311", len(all))
	}
}

// TestIsInvisible compares the derivation with the code points that Unicode lists.
func TestIsInvisible(t *testing.T) {
	file, err := os.ReadFile("unicode/DefaultIgnorable.txt")
	require.NoError(t, err)
	listed := map[rune]bool{}
	for line := range strings.Lines(string(file)) {
		codes, _, isEntry := strings.Cut(line, ";")
		if !isEntry || line[0] == '#' {
			continue
		}
		first, last, isRange := strings.Cut(codes, "..")
		if !isRange {
			last = first
		}
		for r := parseRunes(first)[0]; r <= parseRunes(last)[0]; r++ {
			listed[r] = true
		}
	}
	for r := range unicode.MaxRune + 1 {
		if got := IsInvisible(r); got != listed[r] {
			t.Errorf("%+q: %v, want %v", r, got, listed[r])
		}
	}
}

// TestVersionsAgree: normalization, properties and table are of one Unicode, or a name may have two keys.
func TestVersionsAgree(t *testing.T) {
	want := "# Version: " + norm.Version + "\n"
	if !strings.Contains(confusables, want) || norm.Version != unicode.Version {
		t.Errorf("norm is of Unicode %s and the library of %s; confusables.txt must be of the same", norm.Version, unicode.Version)
	}
}

// TestInvisible: what is shown as nothing, and marks, change no key, wherever they are put.
func TestInvisible(t *testing.T) {
	added := rapid.OneOf(
		rapid.SampledFrom([]rune("\u00ad\u034f\u061c\u115f\u180e\u200b\u200d\u202e\u2066\ufe0f\ufeff\U000E0100")),
		rapid.SampledFrom([]rune("\u0301\u0307\u0323\u0328\u0336\u0338\u0489\u20dd")),
	)
	rapid.Check(t, func(t *rapid.T) {
		name := []rune(someText().Draw(t, "name"))
		want := KeysOf(string(name))
		for range rapid.IntRange(1, 40).Draw(t, "times") {
			name = slices.Insert(name, rapid.IntRange(0, len(name)).Draw(t, "at"), added.Draw(t, "added"))
		}
		if got := KeysOf(string(name)); got != want {
			t.Fatalf("%+q: %+q, want %+q", string(name), got, want)
		}
	})
}

// someText is letters of the scripts that confuse, digits and anything.
func someText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringOf(rapid.SampledFrom([]rune("aAąlIłŁ1oO0øßmMﬁжЖаАσςΣ αΑıiİ｜ａ𝐀가ㄱ"))),
		rapid.String(),
	)
}

// TestForms: the normal form that a name comes in changes no key.
func TestForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := someText().Draw(t, "name")
		want := KeysOf(name)
		for _, f := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
			if got := KeysOf(f.String(name)); got != want {
				t.Fatalf("%+q in form %d: %+q, want %+q", name, f, got, want)
			}
		}
	})
}

// FuzzKeys: whatever the name, keys are text without marks and without what is shown as nothing. A name of
// Latin letters has the keys that the five steps make.
func FuzzKeys(f *testing.F) {
	for first := range rune(0x180) {
		f.Add(string([]rune{first, 'm', 0x17f - first}))
	}
	for _, s := range []string{"", "Łukasz", "аdmin", "paypaI", "\u200b", "\ufdfa\ufdfa", "p̷a⃝ÿ", "\u0345", "각ᆨ", "\U000E0041"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "")
		keys := KeysOf(s)
		if want := anyKeysOf(Visible(s)); keys != want {
			t.Fatalf("%+q has the keys %+q, want %+q", s, keys, want)
		}
		for _, k := range [...]string{keys.Shape, keys.Folded} {
			if !utf8.ValidString(k) || strings.ContainsFunc(k, func(r rune) bool { return unicode.IsMark(r) || IsInvisible(r) }) {
				t.Fatalf("%+q has the key %+q", s, k)
			}
		}
	})
}

// TestHidden: invisible characters hide, and those that belong to an emoji do not.
func TestHidden(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "żabcia": false, "a\u200bb": true, "\u202egnp": true, "a\u200db": true, "a\ufe0f": true, "\u200d": true, "\u00ad": true,
		"❤️": false, "👩‍👧": false, "👩🏽‍🚀": false, "🏳️‍🌈": false, "1️⃣": false, "‼️": false, "☺︎": false,
		"🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f": false, "x\U000e0067": true,
		"👩\u200d": true, "\u200d👧": true, "❤️\u200b": true, "👩\u200da": true,
	} {
		if got := Hidden(s); got != want {
			t.Errorf("Hidden(%+q) = %v", s, got)
		}
	}
}

// BenchmarkKeysOf makes the keys of a plain name and of a disguised one.
func BenchmarkKeysOf(b *testing.B) {
	for name, s := range map[string]string{"plain": "Jan Kowalski 77", "disguised": "Аdmin 𝖔𝖋 Тrаdе żółw"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				KeysOf(s)
			}
		})
	}
}

// BenchmarkTables reads the tables: what the first check after a start waits for.
func BenchmarkTables(b *testing.B) {
	for b.Loop() {
		parseConfusables(confusables)
	}
}
