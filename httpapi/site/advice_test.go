package site

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// The site's own advice has something for every verdict that has an entry, and the emergency card
// begins with whom to call.
func TestOwnAdvice(t *testing.T) {
	all, err := readAdvice("")
	require.NoError(t, err)
	for class, steps := range map[string]int{"scam": 2, "risk": 2, "server": 2, "legit": 2, "paid": 3} {
		if n := strings.Count(string(all[class].Now), "<li>"); n != steps {
			t.Errorf("%s: %d steps", class, n)
		}
	}
	for _, want := range []string{"swojego banku", `href="tel:+48828828828"`, `href="tel:112"`} {
		if !strings.Contains(string(all["paid"].Now), want) {
			t.Errorf("%q is not said", want)
		}
	}
	var folded strings.Builder
	for _, f := range all["paid"].Folded {
		folded.WriteString(f.Title + string(f.Text))
	}
	for _, want := range []string{"BLIK", "paysafecard", "PayPal", "Kryptowaluty", "Skiny", "Hasło", "PESEL", "Policja", `href="https://incydent.cert.pl/"`, `href="sms:8080"`} {
		if !strings.Contains(folded.String(), want) {
			t.Errorf("%q is not said", want)
		}
	}
}

// An operator's advice is shown where its headings say.
func TestAdviceOfAnOperator(t *testing.T) {
	cfg := full()
	cfg.Advice = "Wstęp.\n\n## Oszustwo\nNie płać <b>nigdy</b>. [x](javascript:alert(1))\n### Po fakcie\nDzwoń: [1](tel:1)\n```\n## Ryzyko\n```\n## Brak wpisu\nUważaj.\n"
	w := newWorld(t, cfg, people()...)
	for search, want := range map[string][3]string{
		"zenon łotr":  {"Nie płać nigdy", "Po fakcie", "Uważaj"},
		"kowalski":    {"Uważaj", "Wstęp.", "Nie płać nigdy"},
		"ewa zaufana": {"taką nazwę ma osoba zaufana", "Zadzwoń do swojego banku", "Po fakcie"},
		"ćma":         {"Na liście ryzyka", "", "Wstęp"},
	} {
		page := w.check(t, readmodel.CheckQuery{Search: search})
		text := seen(t, page)
		if !strings.Contains(text, want[0]) || !strings.Contains(text, want[1]) || strings.Contains(text, want[2]) || strings.Contains(page, "javascript:") {
			t.Errorf("%s: %s", search, text)
		}
	}
	cfg.Advice = "# Moja rada\n\nZadzwoń do Basi.\n"
	w = newWorld(t, cfg, people()...)
	for _, search := range []string{"zenon łotr", "ćma", "ewa zaufana", "kowalski"} {
		if !strings.Contains(seen(t, w.check(t, readmodel.CheckQuery{Search: search})), "Zadzwoń do Basi.") {
			t.Errorf("%s: not said", search)
		}
	}
}

// Who was cheated on a server is not sent to those who run it.
func TestAdviceForServers(t *testing.T) {
	own := newWorld(t, Config{}).site
	for _, class := range []string{"scam", "risk"} {
		if a := own.adviceFor(class, true); a == nil || !strings.Contains(string(a.Now), "Nie pytaj jego moderacji") || strings.Contains(string(a.Now), "zablokuj rozmówcę") {
			t.Errorf("%s: %+v", class, a)
		}
		if a := own.adviceFor(class, false); a == nil || strings.Contains(string(a.Now), "opuść serwer") {
			t.Errorf("%s of a person: %+v", class, a)
		}
	}
	old := newWorld(t, Config{Advice: "## Oszustwo\nOsoba.\n"}).site
	if a := old.adviceFor("scam", true); a == nil || !strings.Contains(string(a.Now), "Osoba.") || old.adviceFor("risk", true) != nil {
		t.Errorf("without a part for servers: %+v", a)
	}
}

// People who have paid already are told what to do on every verdict, on the first page and where
// the registry cannot answer: by the operator's words, else by the site's own.
func TestPaidAlready(t *testing.T) {
	const bank = "Zadzwoń do swojego banku"
	for advice, want := range map[string]struct{ said, notSaid string }{
		"":                         {bank, "Basi"},
		"## Oszustwo\nNie płać.\n": {bank, "Basi"},
		"## Kto już zapłacił\nPowiedz Basi.\n": {"Powiedz Basi.", bank},
		"Wszędzie.\n": {bank, "Basi"},
	} {
		cfg := full()
		cfg.Advice = advice
		w := newWorld(t, cfg, people()...)
		pages := map[string]string{"home": w.check(t, readmodel.CheckQuery{}), "entry": w.entry(t, events.Scammers, "s1"), "trusted entry": w.entry(t, events.Legit, "l1")}
		for _, status := range []int{404, 429, 503} {
			pages[strconv.Itoa(status)] = failure(t, w, Failed{Status: status, Path: "/"})
		}
		for search, value := range map[string]string{
			"100000000000000001": "accused", "ćma": "risk", "300000000000000001": "trusted", "ewa zaufana": "trusted-name",
			"zen0n lotr": "caution", "600 700 800": "unchecked", "712345678901234567": "none",
		} {
			pages[value] = w.check(t, readmodel.CheckQuery{Search: search})
			if !strings.Contains(pages[value], `data-verdict="`+value+`"`) || !strings.Contains(pages[value], `href="#po-wplacie"`) {
				t.Errorf("%s is not %s with a way to the card", search, value)
			}
		}
		for name, page := range pages {
			if text := seen(t, page); !strings.Contains(text, want.said) || strings.Contains(text, want.notSaid) || strings.Count(page, `id="po-wplacie"`) != 1 {
				t.Errorf("advice %q, %s: want %q without %q: %s", advice, name, want.said, want.notSaid, text)
			}
		}
	}
}

func TestBadAdvice(t *testing.T) {
	for advice, want := range map[string]string{
		"\xff":                           "UTF-8",
		"a\x00b":                         "UTF-8",
		" \n":                            "blank",
		"## Oszustwo\n## Oszustwa":       `"Oszustwa"`,
		strings.Repeat("a", MaxAdvice+1): "at most 32768 bytes",
		"## Ryzyko\n" + strings.Repeat("- a\n", 1_500):           "HTML",
		"## Kto już zapłacił\n" + strings.Repeat("- a\n", 1_500): "HTML",
	} {
		if err := CheckAdvice(advice); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v", advice, err)
		}
	}
	require.NoError(t, CheckAdvice(strings.Repeat("a", maxAdviceHTML-100)))
}
