package site

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/httpapi/upstream"
)

func someRound() time.Time { return time.Date(2026, time.November, 21, 10, 15, 3, 0, time.UTC) }

// A state that is only colored is none; what nobody checks has not failed; the registry itself comes first.
func TestStatusWords(t *testing.T) {
	ok := func(id string) upstream.Component {
		return upstream.Component{ID: id, Configured: true, OK: true, LatencyMs: 3}
	}
	bad := func(id string) upstream.Component { return upstream.Component{ID: id, Configured: true} }
	for _, c := range []struct {
		checks        []upstream.Component
		answers       bool
		class, banner string
		states        []string
	}{
		{[]upstream.Component{ok("database"), {ID: "guard"}}, true, "legit", "Wszystko działa.", []string{"Działa (3\u00a0ms)", "Nie sprawdzamy"}},
		{[]upstream.Component{ok("database"), bad("chat"), bad("coin")}, true, "risk", "Nie odpowiada: Platforma czatu, Sieć kryptowaluty.", []string{"Działa (3\u00a0ms)", "Nie odpowiada", "Nie odpowiada"}},
		{[]upstream.Component{bad("database"), ok("coin")}, true, "risk", "Rejestr odpowiada, ale dane mogą być nieaktualne.", []string{"Nie odpowiada", "Działa (3\u00a0ms)"}},
		{[]upstream.Component{bad("database"), ok("coin")}, false, "scam", "Rejestr nie odpowiada.", []string{"Nie odpowiada", "Działa (3\u00a0ms)"}},
	} {
		v := StatusPage{c.checks, c.answers, someRound()}.page().Data.(statusView)
		if v.Class != c.class || !strings.Contains(v.Summary+" "+v.Hint, c.banner) {
			t.Errorf("%s: %q %q, want %q", v.Class, v.Summary, v.Hint, c.banner)
		}
		for i, row := range v.Components {
			if row.State != c.states[i] || row.Name == "" || row.About == "" || row.Class == "" {
				t.Errorf("%+v", row)
			}
		}
	}
}

// The page is whole.
func TestStatusPage(t *testing.T) {
	w := newWorld(t, full())
	checks := []upstream.Component{{ID: "database", Configured: true, OK: true, LatencyMs: 3}, {ID: "guard"}, {ID: "chat", Configured: true}, {ID: "coin"}}
	page, err := w.site.Append(nil, StatusPage{checks, true, someRound()})
	require.NoError(t, err)
	if text := seen(t, wellFormed(t, string(page))); !strings.Contains(text, "Sprawdzono 21 listopada 2026, 10:15:03 UTC.") || !strings.Contains(text, "Nie odpowiada: Platforma czatu.") {
		t.Error(text)
	}
}
