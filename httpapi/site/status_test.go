package site

import (
	"testing"
	"time"
)

// A state that is only coloured is none; what nobody checks has not failed.
func TestStatusWords(t *testing.T) {
	at := time.Date(2026, time.November, 21, 10, 15, 3, 0, time.UTC)
	for _, c := range []struct {
		checks  []Component
		summary string
		states  []string
	}{
		{[]Component{{"database", true, true, 3 * time.Millisecond}, {"guard", false, false, 0}}, "Wszystko działa.", []string{"Działa", "Nie jest sprawdzane"}},
		{[]Component{{"database", true, false, 0}, {"coin", true, true, time.Second}}, "Nie wszystko działa: odpowiada 1 z 2.", []string{"Nie odpowiada", "Działa"}},
	} {
		v := StatusPage(c.checks, at).Data.(statusView)
		if v.Summary != c.summary || v.Time != "21 listopada 2026, 10:15:03 UTC" {
			t.Errorf("%q, %q", v.Summary, v.Time)
		}
		for i, row := range v.Components {
			if row.State != c.states[i] || row.Name == "" || row.About == "" || row.Class == "" {
				t.Errorf("%+v", row)
			}
		}
	}
}
