package terms

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func analyzer(t testing.TB) *Analyzer {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return s.Analyzer()
}

func terms(a *Analyzer, text string) (terms []string) {
	for _, token := range a.Tokens(nil, text) {
		terms = append(terms, token.Term)
	}
	return terms
}

// TestOneTerm: words of one line have one term, and no two lines have the same.
func TestOneTerm(t *testing.T) {
	a := analyzer(t)
	seen := map[string]string{}
	for line := range strings.Lines(`
		oszukał oszukała oszukali oszukać OSZUKAŁ oszukuje oszukany
		oszust oszusta oszustem oszuści oszustów
		oszustwo oszustwa oszustwem oszustw oszustwie
		konto konta kont kontem koncie kontach
		użytkownik użytkownika użytkowników użytkownicy użytkownikiem
		skin skina skiny skinów skinami skinach
		przelew przelewu przelewy przelewów przelewem przelewie
		serwer serwera serwery serwerów serwerze serwerach
		link linka linki linków linkiem linku linkach
		discord discorda discordzie discordem discordowy
		token tokena tokeny tokenów tokenem
		kod kodu kody kodów kodem kodzie
		bot bota boty botów botem
		phishing phishingu phishingiem phishingowy
		zaliczka zaliczki zaliczkę zaliczką zaliczek
		kradzież kradzieży kradzieże
		ukradł ukradła
		pieniądze pieniędzy pieniędzmi
		wysłał wysłała wysłać
		zapłacił zapłaciła zapłacić
		podszywa podszywał podszywanie
		administrator administratora administratorem
		fałszywy fałszywa fałszywe fałszywego fałszywych
		zablokował zablokowała
		strona strony stronę stronie stron
		logowanie logowania logowaniu
		hasło hasła haseł hasłem
		karta karty kartę kart kartą
		numer numeru numery numerów
		bitcoin bitcoina bitcoiny bitcoinów
		steam steama steamie
		ofiara ofiary ofiar ofiarę
		zdjęcie zdjęcia zdjęć zdjęciami
		wirus wirusa wirusy wirusów
		multikonto multikonta multikont
		szantaż szantażu
		nie NIE
		cs2`) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		first := terms(a, words[0])[0]
		if other, ok := seen[first]; ok {
			t.Errorf("%s and %s are one term, %s", other, words[0], first)
		}
		seen[first] = words[0]
		for _, word := range words[1:] {
			if got := terms(a, word); len(got) == 0 || got[0] != first {
				t.Errorf("%s is %q, %s is %q", word, got, words[0], first)
			}
		}
	}
}

// TestOgonek: a word that was typed without the ogonek of its last letter has the term of the word that was meant.
func TestOgonek(t *testing.T) {
	a := analyzer(t)
	for typed, meant := range map[string]string{
		"nagrode": "nagroda", "zaliczke": "zaliczka", "paczke": "paczka", "karte": "kart", "strone": "stron", "oferte": "oferta", "firme": "firma",
		"wplate": "wpłata", "umowe": "umowę", "kradna": "kraść", "robia": "robić", "oszukuja": "oszukać", "wysylaja": "wysyłać", "sprzedaja": "sprzedawać",
	} {
		if got, ok := a.Ogonek(typed); !ok || got != a.Term(meant) {
			t.Errorf("%s is %q (%v), %s is %q", typed, got, ok, meant, a.Term(meant))
		}
	}
	for _, typed := range []string{"", "konto", "nagrodę", "2013"} {
		if got, ok := a.Ogonek(typed); ok {
			t.Errorf("%s is %q", typed, got)
		}
	}
}

// TestTokens: what parts words, what is a word, and where it stands.
func TestTokens(t *testing.T) {
	a := analyzer(t)
	for text, want := range map[string][]Token{
		"":                        nil,
		"się i na się":            nil,
		"!?… -+*~^:()/\"":         nil,
		"😀 🏳️‍🌈":                  nil,
		"Nie oddał!":              {{"nie", "nie", 0, 3, false, ""}, {"oddac", "oddal", 4, 9, false, ""}},
		"xX_Kot_Xx":               {{"xx", "xx", 0, 2, false, ""}, {"kot", "kot", 3, 6, false, ""}, {"xx", "xx", 7, 9, false, ""}},
		"żabcia2013":              {{"zabcia2013", "zabcia2013", 0, 10, false, ""}, {"zabcia", "zabcia", 0, 6, true, ""}, {"2013", "2013", 6, 10, true, ""}},
		"ﬁrma ＡＢＣ":                {{"firma", "firma", 0, 4, false, ""}, {"abc", "abc", 5, 8, false, ""}},
		"900000000000000000001":   {{"900000000000000000001", "900000000000000000001", 0, 21, false, ""}},
		"ZŁODZIEJ z\u0301le":      {{"zlodziej", "zlodziej", 0, 8, false, ""}, {"zle", "zle", 9, 13, false, ""}},
		"мошенник":                {{"мошенник", "мошенник", 0, 8, false, ""}},
		strings.Repeat("a", 1000): {{strings.Repeat("a", 1000), strings.Repeat("a", 1000), 0, 1000, false, ""}},
	} {
		got := a.Tokens(nil, text)
		for i := range got {
			if withoutMarks(got[i].Folded) != got[i].Plain || a.Term(got[i].Folded) != got[i].Term {
				t.Errorf("%.40q: folded is %q, of %+v", text, got[i].Folded, got[i])
			}
			got[i].Folded = ""
		}
		if !slices.Equal(got, want) {
			t.Errorf("%.40q: %+v, want %+v", text, got, want)
		}
	}
}

// TestForgetting: a term is the same however often it is asked for.
func TestForgetting(t *testing.T) {
	a := analyzer(t)
	for i := range maxRemembered + 10 {
		a.terms[strings.Repeat("x", 40)+string(rune('가'+i%10000))+string(rune('가'+i/10000))] = ""
		if len(a.terms) >= maxRemembered {
			break
		}
	}
	if got := terms(a, "oszukała"); !slices.Equal(got, []string{"oszukac"}) || len(a.terms) > maxRemembered {
		t.Errorf("%q, %d remembered", got, len(a.terms))
	}
}

// TestPlaces: tokens stand in order within the text, parts within their token, and what stands there is the word.
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
			if fold(part) == "" || token.Term == "" && token.Plain != "" {
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
				t.Errorf("%q: %+v", text, token)
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
