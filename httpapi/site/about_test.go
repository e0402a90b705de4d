package site

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/readmodel"
)

func about(t *testing.T, cfg Config) string {
	t.Helper()
	return aboutWith(t, cfg, nil)
}

func aboutWith(t *testing.T, cfg Config, r *Record) string {
	t.Helper()
	page, err := newWorld(t, cfg).site.About(nil, r, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	return wellFormedTo(t, MaxPage, string(page))
}

// The operator's text is shown with its headings, and nothing of it can run.
func TestAbout(t *testing.T) {
	page := about(t, Config{About: "Prowadzi *Fundacja*.\n\n<script>x</script>\n\n## Kontakt & adres\n\n- [napisz](mailto:a@b.example)\n\n### Telefon\n\n[112](tel:112) [x](javascript:x)\n\n~~~\n## nic\n~~~\n"})
	for _, want := range []string{
		"<p>Prowadzi <em>Fundacja</em>.</p>", "<h2>Kontakt &amp; adres</h2>", `href="mailto:a@b.example"`, "<h3>Telefon</h3>", `href="tel:112"`, "## nic",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, page)
		}
	}
	for _, bad := range []string{"javascript:", "<script>x", "nie podał jeszcze"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q in the page", bad)
		}
	}
}

// Without a text the page says what the program does, and that the operator has written nothing.
func TestAboutWithoutAText(t *testing.T) {
	for name, cfg := range map[string]Config{"bare": {}, "full": full()} {
		page := about(t, cfg)
		for _, want := range []string{
			"Operator tego rejestru nie podał jeszcze, kim jest", "Jeśli wpis dotyczy Ciebie", "Co rejestr przechowuje", "ciasteczek", "sprzeciwu (art. 21)",
			"Nic o darczyńcy", "nie wyrok sądu", "<strong>Ryzyko:</strong>",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
		if linked := strings.Contains(page, `<p class="box"><a href="https://appeals.example.org/odwolanie?x=1&amp;nr=">`); linked != (cfg.AppealsURL != "") {
			t.Errorf("%s: an appeal is linked: %v", name, linked)
		}
	}
}

// The registry's record says what was taken off beside what was reported, and how long the oldest
// report waits. With the longest text the page is no longer than any other.
func TestAboutRecord(t *testing.T) {
	r := Record{Reports: Reports{Last: november(), Counts: make([]readmodel.Reports, ChartMonths), Gone: make([]int32, ChartMonths)}}
	cfg := full()
	cfg.About = strings.Repeat("&amp; *a*", 2_700)
	text := seen(t, aboutWith(t, cfg, &r))
	if !strings.Contains(text, "Żadne zgłoszenie nie czeka") || strings.Contains(text, "wąskie obok") {
		t.Errorf("of nothing: %s", text[max(0, len(text)-3000):])
	}
	for i := range ChartMonths {
		r.Reports.Counts[i], r.Reports.Gone[i] = readmodel.Reports{Verified: 1<<30 + 1, Risk: 1<<30 + 1}, 1<<30+1
	}
	r.Reports.Counts[11], r.Reports.Gone[11] = readmodel.Reports{}, 7
	r.OldestUnverified = time.Date(2026, 11, 8, 1, 0, 0, 0, time.UTC)
	page := aboutWith(t, cfg, &r)
	if !strings.Contains(page, "listopad 2026: potwierdzone 0, czekają 0, usunięte 7") || !strings.Contains(page, "<td>0</td><td>7</td></tr>") {
		t.Error(page)
	}
	if text := seen(t, page); !strings.Contains(text, "czeka 21\u00a0dni") {
		t.Errorf("%s", text[max(0, len(text)-3000):])
	}
}

func TestCheckAbout(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "x": "", " \n": "blank", "\xff": "UTF-8", "a\x00": "UTF-8", strings.Repeat("x", MaxAbout+1): "32768", strings.Repeat("x", MaxAbout): "",
		strings.Repeat("&", 30_000): "HTML", "## x\n" + strings.Repeat("*a* ", 8_000): "HTML",
	} {
		if err := CheckAbout(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q (%d bytes): %v", text, len(text), err)
		}
	}
}
