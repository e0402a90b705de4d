package site

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func about(t *testing.T, cfg Config) string {
	t.Helper()
	page, err := newWorld(t, cfg).site.About(nil)
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
