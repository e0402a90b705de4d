package site

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/readmodel"
)

// The site's own advice has something for every verdict that has an entry, and is folded where it
// is long.
func TestOwnAdvice(t *testing.T) {
	all, err := readAdvice("")
	require.NoError(t, err)
	for class, want := range map[string]struct{ steps, folded int }{"scam": {2, 1}, "risk": {2, 1}, "server": {2, 1}, "legit": {2, 1}, "none": {0, 1}} {
		a, ok := all[class]
		if !ok || len(a.Folded) != want.folded || strings.Count(string(a.Now), "<li>") != want.steps {
			t.Errorf("%s: %+v", class, a)
		}
	}
	for _, want := range []string{"Bank:", "Karta:", "Hasło", "Policja:", `href="tel:+48828828828"`, `href="https://incydent.cert.pl/"`, `href="sms:8080"`} {
		if !strings.Contains(string(all["scam"].Folded[0].Text), want) {
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
		"ewa zaufana": {"taką nazwę ma osoba zaufana", paidTitle, "Po fakcie"},
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
	if a := old.adviceFor("scam", true); a == nil || !strings.Contains(string(a.Now), "Osoba.") || old.adviceFor("risk", true).Now != "" {
		t.Errorf("without a part for servers: %+v", a)
	}
}

// People who have paid already are told what to do on every verdict, once: by the operator's words,
// else by the site's own, unless the operator has folded something of their own.
func TestPaidAlready(t *testing.T) {
	const bank = "infolinię swojego banku"
	for advice, want := range map[string]struct{ said, notSaid string }{
		"":                         {bank, "Basi"},
		"## Oszustwo\nNie płać.\n": {bank, "Basi"},
		"## Kto już zapłacił\nPowiedz Basi.\n":         {"Powiedz Basi.", bank},
		"Wszędzie.\n### Po fakcie\nZadzwoń do Basi.\n": {"Zadzwoń do Basi.", bank},
	} {
		cfg := full()
		cfg.Advice = advice
		w := newWorld(t, cfg, people()...)
		for search, value := range map[string]string{
			"100000000000000001": "accused", "ćma": "risk", "300000000000000001": "trusted", "ewa zaufana": "trusted-name",
			"zen0n lotr": "caution", "600 700 800": "unchecked", "nikt taki": "none",
		} {
			page := w.check(t, readmodel.CheckQuery{Search: search})
			text := seen(t, page)
			if !strings.Contains(page, `data-verdict="`+value+`"`) || !strings.Contains(text, want.said) || strings.Contains(text, want.notSaid) || strings.Count(page, "<details>") != 1 {
				t.Errorf("advice %q, %s: want %s, with %q, without %q: %s", advice, search, value, want.said, want.notSaid, text)
			}
		}
		if text := seen(t, w.check(t, readmodel.CheckQuery{})); !strings.Contains(text, want.said) {
			t.Errorf("advice %q: not on the first page", advice)
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
	if err := CheckAdvice(strings.Repeat("a", maxAdviceHTML-100)); err != nil {
		t.Error(err)
	}
}
