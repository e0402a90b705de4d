package site

import (
	"strings"
	"testing"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// An operator's texts are shown whole, without HTML, scripts and a byte order mark, and what cannot be one is refused.
func TestOperatorsTexts(t *testing.T) {
	const text = "\ufeff# Bank\n\nZadzwoń do **banku**.<b>x</b> [klik](javascript:alert)\n\n## Policja\n\nPotem tam.\n"
	cfg := full()
	cfg.Advice, cfg.About = text, text
	w := newWorld(t, cfg, people()...)
	about, err := w.site.Append(nil, AboutPage{})
	if err != nil {
		t.Fatal(err)
	}
	for heading, page := range map[string]string{"h3": w.check(t, readmodel.CheckQuery{Search: "ćma"}), "h2": wellFormed(t, string(about))} {
		for _, want := range []string{"<" + heading + ">Bank<", "Zadzwoń do <strong>banku</strong>.", "<" + heading + ">Policja<", "Potem tam."} {
			if !strings.Contains(page, want) || strings.Contains(page, "javascript:") || strings.Contains(page, "<b>x</b>") || strings.Contains(page, "\ufeff") {
				t.Errorf("%s: %q is missing, or something else is not: %s", heading, want, page)
			}
		}
	}
	for text, want := range map[string]string{"\xff": "UTF-8", "a\x00b": "UTF-8", " \n": "blank", "\ufeff": "blank", "Dzwoń.": ""} {
		if err := CheckText(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What to do after a payment is on every answer, open where somebody is accused.
func TestPaidAlready(t *testing.T) {
	w := newWorld(t, full(), people()...)
	pages := map[string]string{"entry": w.entry(t, events.Scammers, "s1"), "trusted entry": w.entry(t, events.Legit, "l1"), "home": w.check(t, readmodel.CheckQuery{})}
	for search, value := range map[string]string{
		"100000000000000001": "accused", "ćma": "risk", "300000000000000001": "trusted", "ewa zaufana": "trusted-name",
		"zen0n lotr": "caution", "600 700 800": "unchecked", "712345678901234567": "none",
	} {
		pages[value] = w.check(t, readmodel.CheckQuery{Search: search})
		if !strings.Contains(pages[value], `data-verdict="`+value+`"`) {
			t.Errorf("%s is not %s", search, value)
		}
	}
	for name, page := range pages {
		open := name == "accused" || name == "risk" || name == "entry"
		if strings.Count(page, `id="po-wplacie"`) != 1 || strings.Contains(page, `<details class="paid" open>`) != open || !strings.Contains(page, "Zadzwoń do swojego banku") {
			t.Errorf("%s: no card, or not as it should be", name)
		}
	}
}
