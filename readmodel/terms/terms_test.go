package terms

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/readmodel/lookalike"
)

func analyzer(t testing.TB) *Analyzer {
	t.Helper()
	return New().Analyzer()
}

// oneTerm reports whether words have a term in common.
func oneTerm(a, b []string) bool {
	return slices.ContainsFunc(a, func(term string) bool { return slices.Contains(b, term) })
}

// paradigms reads a file of words with their forms, by kind.
func paradigms(t *testing.T, name string) map[string][][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	of := map[string][][]string{}
	for words := range lines(string(text)) {
		of[words[0]] = append(of[words[0]], words[1:])
	}
	return of
}

// TestPairs: a query for one form of a word finds every other, with and without marks;
// unrelated words are kept apart.
func TestPairs(t *testing.T) {
	a := analyzer(t)
	for _, file := range []string{"hand.txt", "sample.txt"} { // what people write, and what the lexicon was made from
		var written, bare []map[string]bool // the terms of each word, and without marks
		for kind, words := range paradigms(t, file) {
			pairs := 0
			for _, forms := range words {
				all, allBare := map[string]bool{}, map[string]bool{}
				for _, one := range forms {
					for _, term := range a.Terms(one) {
						all[term] = true
					}
					for _, term := range a.Terms(lookalike.DropMarks(one)) {
						allBare[term] = true
					}
					for _, other := range forms {
						for _, asked := range []string{one, lookalike.DropMarks(one)} {
							pairs++
							if !oneTerm(a.Terms(asked), a.Terms(other)) {
								t.Errorf("%q is %q, %q is %q", asked, a.Terms(asked), other, a.Terms(other))
							}
						}
					}
				}
				written, bare = append(written, all), append(bare, allBare)
			}
			t.Logf("%s: %s: %d words, %d pairs", file, kind, len(words), pairs)
		}
		pairs, merged, mergedBare := 0, 0, 0
		for i := range written {
			for j := range written {
				if i != j {
					pairs++
					merged += shared(written[i], written[j])
					mergedBare += shared(bare[i], written[j])
				}
			}
		}
		t.Logf("%s: of %d pairs of words, some form of one finds some form of the other in %d, without marks in %d", file, pairs, merged, mergedBare)
		if 1000*mergedBare > pairs {
			t.Errorf("%s: of %d pairs of unrelated words %d are one", file, pairs, mergedBare)
		}
	}
}

// shared is 1 if two sets have something in common.
func shared(a, b map[string]bool) int {
	for x := range a {
		if b[x] {
			return 1
		}
	}
	return 0
}

// TestApart: words that look alike and mean something else, opposites above all.
func TestApart(t *testing.T) {
	a := analyzer(t)
	for words := range lines(`
		pewny niepewny
		uczciwy nieuczciwy
		legalny nielegalny
		bezpieczny niebezpieczny
		zaufany niezaufany
		oszukany nieoszukany
		zapłacony niezapłacony
		ogarniętowy nieogarniętowy
		dane dać
		konto kontakt
		bank bankiet
		kod kodeks
		klucz kluczyć
		sklep sklepienie
		zdjęcie zdjąć
		wpłata wypłata
		zapłacić wypłacić
		kupić skupić
		żądać zadać`) {
		if oneTerm(a.Terms(words[0]), a.Terms(words[1])) {
			t.Errorf("%q are one: %q, %q", words, a.Terms(words[0]), a.Terms(words[1]))
		}
	}
}

// TestGuess: words that nobody has written down are found in their inflections.
func TestGuess(t *testing.T) {
	a := analyzer(t)
	for words := range lines(`
		zorbit zorbita zorbitu zorbitem zorbity zorbitów zorbitow zorbitami zorbitowy zorbitowych zorbitować zorbitował zorbituje zorbitują zorbituja
		blanketka blanketki blanketkę blanketke blanketką blanketkami
		Dragonfix dragonfixa dragonfixowi dragonfixem
		xd
		qwe`) {
		for _, word := range words[1:] {
			if !oneTerm(a.Terms(fold(words[0])), a.Terms(word)) {
				t.Errorf("%s is %q, %s is %q", words[0], a.Terms(fold(words[0])), word, a.Terms(word))
			}
		}
	}
}

// TestTokens: what parts words, what is a word, and where it stands.
func TestTokens(t *testing.T) {
	a := analyzer(t)
	for text, want := range map[string][]Token{
		"":                                       nil,
		"się oddał na":                           {{[]string{"oddać"}, "oddal", 4, 9, false, ""}},
		"na":                                     {{[]string{"na"}, "na", 0, 2, false, ""}},
		"!?… -+*~^:()/\"":                        nil,
		"😀 🏳️‍🌈":                                 nil,
		"Nie oddał!":                             {{[]string{"nie"}, "nie", 0, 3, false, ""}, {[]string{"oddać"}, "oddal", 4, 9, false, ""}},
		"xX_Kot_Xx":                              {{[]string{"xx"}, "xx", 0, 2, false, ""}, {[]string{"kot", "kota"}, "kot", 3, 6, false, ""}, {[]string{"xx"}, "xx", 7, 9, false, ""}},
		"żabcia2013":                             {{[]string{"zabcia2013"}, "zabcia2013", 0, 10, false, ""}, {[]string{"żabcia"}, "zabcia", 0, 6, true, ""}, {[]string{"2013"}, "2013", 6, 10, true, ""}},
		"ﬁrma ＡＢＣ":                               {{[]string{"firma"}, "firma", 0, 4, false, ""}, {[]string{"abc"}, "abc", 5, 8, false, ""}},
		"900000000000000000001":                  {{[]string{"900000000000000000001"}, "900000000000000000001", 0, 21, false, ""}},
		"ZŁODZIEJ z\u0301le":                     {{[]string{"złodziej"}, "zlodziej", 0, 8, false, ""}, {[]string{"źle"}, "zle", 9, 13, false, ""}},
		"os\u200bzu\u00adst\ufe0f\u200b b\u2060": {{[]string{"oszust"}, "oszust", 0, 8, false, ""}, {[]string{"b"}, "b", 11, 12, false, ""}},
		"Ⓚⓐⓜⓘⓛ Sklep™":                           {{[]string{"kamil", "kamila"}, "kamil", 0, 5, false, ""}, {[]string{"sklep"}, "sklep", 6, 11, false, ""}, {[]string{"tm"}, "tm", 11, 12, false, ""}},
		"1\u0301\u0301":                          {{[]string{"1"}, "1", 0, 3, false, ""}},
		"miał moją forsę":                        {{[]string{"mieć"}, "mial", 0, 4, false, ""}, {[]string{"forsa"}, "forse", 10, 15, false, ""}},
		"мошенник":                               {{[]string{"мошенник"}, "мошенник", 0, 8, false, ""}},
		strings.Repeat("a", 1000):                {{[]string{strings.Repeat("a", 1000)}, strings.Repeat("a", 1000), 0, 1000, false, ""}},
	} {
		got := a.Tokens(nil, text)
		for i := range got {
			if lookalike.DropMarks(got[i].Folded) != got[i].Plain || !slices.Equal(a.Terms(got[i].Folded), got[i].Terms) {
				t.Errorf("%.40q: folded is %q, of %+v", text, got[i].Folded, got[i])
			}
			got[i].Folded = ""
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%.40q: %+v, want %+v", text, got, want)
		}
	}
}

// TestForgetting: a term is the same however often it is asked for.
func TestForgetting(t *testing.T) {
	a := analyzer(t)
	for i := range maxCached + 10 {
		a.terms[strings.Repeat("x", 40)+string(rune('가'+i%10000))+string(rune('가'+i/10000))] = nil
		if len(a.terms) >= maxCached {
			break
		}
	}
	if got := a.Terms("oszukała"); !slices.Equal(got, []string{"oszukać"}) || len(a.terms) > maxCached {
		t.Errorf("%q, %d remembered", got, len(a.terms))
	}
}

// TestPlaces: tokens stand in order within the text, parts within their token, and what stands
// there is the word.
func TestPlaces(t *testing.T) {
	a := analyzer(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("aąŁż1 9_-ﬁ😀\u0301éД½ⅷ"))).Draw(t, "text")
		end := 0
		for _, token := range a.Tokens(nil, text) {
			if !token.Part && token.Start < end || token.Start >= token.End || token.End > utf8.RuneCountInString(text) {
				t.Fatalf("%q: %+v after %d", text, token, end)
			}
			end = token.End
			part := string([]rune(text)[token.Start:token.End])
			if fold(part) == "" || slices.Contains(token.Terms, "") {
				t.Fatalf("%q: %+v is %q", text, token, part)
			}
		}
	})
}

func FuzzTokens(f *testing.F) {
	a := analyzer(f)
	f.Add("Oszukał na 50 zł, żabcia2013 ﬁ ½")
	f.Fuzz(func(t *testing.T, text string) {
		for _, token := range a.Tokens(nil, text) {
			if token.Start < 0 || token.End <= token.Start {
				t.Errorf("%q has a token of no place: %+v", text, token)
			}
		}
	})
}

func BenchmarkTokens(b *testing.B) {
	a := analyzer(b)
	text := strings.Repeat("oszust oszukał kupującego na kwotę 50 zł i zablokował po otrzymaniu przelewu na konto ", 3)
	var tokens []Token
	for range b.N {
		tokens = a.Tokens(tokens[:0], text)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(tokens)), "ns/token")
}
