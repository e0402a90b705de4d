package site

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/httpapi/uptime"
)

func someRound() time.Time { return time.Date(2026, time.November, 21, 10, 15, 3, 0, time.UTC) }

// A state that is only colored is none; what nobody checks has not failed; the registry itself
// comes first.
func TestStatusWords(t *testing.T) {
	ok := func(id string) Component {
		return Component{ID: id, Checked: true, OK: true, Latency: 3 * time.Millisecond}
	}
	bad := func(id string) Component { return Component{ID: id, Checked: true} }
	for _, c := range []struct {
		checks        []Component
		answers       bool
		class, banner string
		states        []string
	}{
		{[]Component{ok("database"), {ID: "guard"}}, true, "legit", "Wszystko działa.", []string{"Działa", "Nie sprawdzamy"}},
		{[]Component{ok("database"), bad("chat"), bad("coin")}, true, "risk", "Nie odpowiada: Platforma czatu, Sieć kryptowaluty.", []string{"Działa", "Nie odpowiada", "Nie odpowiada"}},
		{[]Component{bad("database"), ok("coin")}, true, "risk", "Rejestr odpowiada, ale dane mogą być nieaktualne.", []string{"Nie odpowiada", "Działa"}},
		{[]Component{bad("database"), ok("coin")}, false, "scam", "Rejestr nie odpowiada.", []string{"Nie odpowiada", "Działa"}},
	} {
		v := StatusPage(c.checks, c.answers, someRound()).Data.(statusView)
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

// history is what a component went through: of the 90 days, the last are as given.
func history(days ...uptime.Day) uptime.Component {
	c := uptime.Component{Days: make([]uptime.Day, uptime.Days)}
	for i := range c.Days {
		c.Days[i].Start = someRound().Truncate(24*time.Hour).AddDate(0, 0, i-uptime.Days+1)
	}
	for i, d := range days {
		at := &c.Days[uptime.Days-len(days)+i]
		d.Start, *at = at.Start, d
		at.Start = d.Start
	}
	return c
}

// Every day is a bar of one kind, and days with failures are told in words too.
func TestStatusHistory(t *testing.T) {
	c := history(uptime.Day{Checks: 1000, Latency: 4 * time.Millisecond}, uptime.Day{}, uptime.Day{Checks: 1000, Failures: 3, Latency: 8 * time.Millisecond}, uptime.Day{Checks: 10, Failures: 10})
	h := newHistoryView(c)
	for path, want := range map[string]int{h.Good: 1, h.Some: 1, h.Bad: 1, h.Unknown: uptime.Days - 3} {
		if n := strings.Count(path, "M"); n != want {
			t.Errorf("%d bars, want %d: %s", n, want, path)
		}
	}
	if whole := newHistoryView(uptime.Component{Days: []uptime.Day{{Checks: 1}}}); h.Of != "dane z 3\u00a0dni" || whole.Of != "" || newHistoryView(history(uptime.Day{Checks: 1})).Of != "dane z 1\u00a0dnia" {
		t.Errorf("of how many days: %q, %q", h.Of, whole.Of)
	}
	if h.Share != "99,35%" {
		t.Errorf("%+v", h)
	}
	if want := "21\u00a0listopada\u00a02026 (bez odpowiedzi 10 z 10 prób), 20\u00a0listopada\u00a02026 (bez odpowiedzi 3 z 1000 prób)"; h.Trouble != want {
		t.Errorf("%q, want %q", h.Trouble, want)
	}
	bad := uptime.Day{Checks: 1, Failures: 1}
	if many := newHistoryView(history(bad, bad, bad, bad, bad)); !strings.HasPrefix(many.Trouble, "21\u00a0listopada") || !strings.HasSuffix(many.Trouble, " i jeszcze 2\u00a0dni") {
		t.Errorf("many outages: %q", many.Trouble)
	}
	for _, s := range []struct {
		part, whole int
		want        string
	}{{5, 5, "100%"}, {99_999, 100_000, "99,99%"}, {0, 3, "0,00%"}, {1, 3, "33,33%"}} {
		if got := share(s.part, s.whole); got != s.want {
			t.Errorf("%d of %d: %s, want %s", s.part, s.whole, got, s.want)
		}
	}
}

// The page is whole in each state, and no longer than a page may be.
func TestStatusPages(t *testing.T) {
	w := newWorld(t, full())
	var worst []uptime.Day
	for i := range uptime.Days {
		worst = append(worst, uptime.Day{Checks: 100_000, Failures: 99_998 * (i % 2), Latency: time.Duration(i) * time.Second})
	}
	at := someRound()
	for name, checks := range map[string][]Component{
		"status": {{ID: "database", Checked: true, OK: true, Latency: 3 * time.Millisecond, History: history(uptime.Day{Checks: 5, Latency: 2 * time.Millisecond}, uptime.Day{Checks: 40, Failures: 1, Latency: time.Millisecond})},
			{ID: "guard"}, {ID: "chat", Checked: true, History: uptime.Component{Days: history().Days, Last: uptime.Incident{From: at.Add(-time.Hour)}}}, {ID: "coin"}},
		"status_worst": {{ID: "database", Checked: true, OK: true, History: history(worst...)}, {ID: "guard", Checked: true, History: history(worst...)},
			{ID: "chat", Checked: true, History: history(worst...)},
			{ID: "coin", Checked: true, History: uptime.Component{Days: history(worst...).Days, Last: uptime.Incident{From: at.Add(-50 * time.Hour), To: at.Add(-time.Hour)}}}},
	} {
		page, err := w.site.Append(nil, "status", StatusPage(checks, true, at))
		require.NoError(t, err)
		wellFormed(t, string(page))
		if name == "status" {
			golden(t, name, string(page))
		} else if text := seen(t, string(page)); !strings.Contains(text, "(2\u00a0dni)") {
			t.Errorf("how long it lasted is not said: %s", text)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Second: "poniżej minuty", time.Minute: "1\u00a0minuta", 119 * time.Minute: "119\u00a0minut",
		5 * time.Hour: "5\u00a0godzin", 47 * time.Hour: "47\u00a0godzin", 48 * time.Hour: "2\u00a0dni"} {
		if got := duration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
