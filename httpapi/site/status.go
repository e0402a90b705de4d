package site

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.org/registry/httpapi/uptime"
)

// Component is the outcome of one probe (httpapi/CONTRACT.md#status), and the history of earlier
// ones.
type Component struct {
	ID      string // database, guard, chat or coin
	Checked bool   // false if no address is configured
	OK      bool
	Latency time.Duration
	History uptime.Component
}

// statusView is the data of the page /status.
type statusView struct {
	Class         string // of the banner
	Summary, Hint string
	Components    []statusRow
	Incident      incident
	CheckedAt     time.Time
	Days          int
	WithHistory   bool // at least one component has a history
}

// statusRow is one component.
type statusRow struct {
	Name, About string
	Class, Mark string // for the style
	State       string // in words, because color alone is not enough
	Latency     string // empty below a millisecond, or without a response
	History     *historyView
}

// historyView is the days of a component.
type historyView struct {
	Good, Some, Bad, Unknown string // paths: a square for each day of that kind
	Share                    string // of the successful probes; empty if there were none
	Of                       string // the days with probes, in words; empty if all have some
	Trouble                  string // the latest days with failures, in words
}

// incident is the last failure of a component. The zero value is none.
type incident struct {
	Name, Lasted string
	From, To     time.Time // To is zero while it lasts
}

// StatusPage returns the page /status for a round of probes. answers means that lists and checks
// are served.
func StatusPage(checks []Component, answers bool, at time.Time) Page {
	v := statusView{CheckedAt: at, Days: uptime.Days}
	var silent []string
	for _, c := range checks {
		row := c.row()
		if c.Checked && !c.OK && c.ID != "database" {
			silent = append(silent, row.Name)
		}
		if c.Checked && len(c.History.Days) > 0 {
			row.History = newHistoryView(c.History)
			v.WithHistory = true
			v.Incident.consider(row.Name, c.History.Last)
		}
		v.Components = append(v.Components, row)
	}
	v.Class, v.Summary, v.Hint = summary(answers, checks, silent)
	return Page{Title: "Stan usług", Path: "/status", About: "Czy rejestr i usługi, z których korzysta, działają.", Data: v}
}

// summary returns the banner. The registry itself comes first: it works without the other services.
func summary(answers bool, checks []Component, silent []string) (class, said, hint string) {
	data := true
	for _, c := range checks {
		data = data && (c.ID != "database" || c.OK)
	}
	switch {
	case !answers:
		return "scam", "Rejestr nie odpowiada.", "Wczytujemy jeszcze dane. To nie znaczy, że kogoś nie ma na liście."
	case !data:
		return "risk", "Rejestr odpowiada, ale dane mogą być nieaktualne.", ""
	case len(silent) > 0:
		return "risk", "Rejestr działa, ale nie wszystko wokół niego.", "Nie odpowiada: " + strings.Join(silent, ", ") + "."
	}
	return "legit", "Wszystko działa.", ""
}

func (c Component) row() statusRow {
	row := statusRow{Class: "fails", Mark: "✕", State: "Nie odpowiada"}
	switch {
	case c.OK:
		row = statusRow{Class: "works", Mark: "✓", State: "Działa"}
	case !c.Checked:
		row = statusRow{Class: "unchecked", Mark: "–", State: "Nie sprawdzamy"}
	}
	if c.OK {
		row.Latency = millis(c.Latency)
	}
	row.Name, row.About = componentWords(c.ID)
	return row
}

// millis formats d, and returns "" below a millisecond.
func millis(d time.Duration) string {
	if d < time.Millisecond {
		return ""
	}
	return number(int(d.Milliseconds())) + "\u00a0ms"
}

// The picture of a history has a fixed number of units a day, and is stretched. Squares differ in
// shape, too: a short outage splits one, a long one fills the whole height, and an unknown day is
// low.
const (
	dayWidth   = 4
	fewOf      = 20 // fewer than one failure in this number is few
	maxTrouble = 3
)

func newHistoryView(c uptime.Component) *historyView {
	h := &historyView{}
	var good, some, bad, unknown strings.Builder
	var troubled []string
	checks, failures, days := 0, 0, 0
	for i, d := range c.Days {
		into, shape := &good, "M%d 4v28"
		switch {
		case d.Checks == 0:
			into, shape = &unknown, "M%d 22v10"
		case d.Failures*fewOf >= d.Checks:
			into, shape = &bad, "M%d 0v32"
		case d.Failures > 0:
			into, shape = &some, "M%d 4v11m0 6v11"
		}
		fmt.Fprintf(into, shape, i*dayWidth+dayWidth/2)
		if d.Failures > 0 {
			troubled = append(troubled, fmt.Sprintf("%s (bez odpowiedzi %s z %s prób)", day(d.Start), number(d.Failures), number(d.Checks)))
		}
		if d.Checks > 0 {
			days++
		}
		checks, failures = checks+d.Checks, failures+d.Failures
	}
	h.Good, h.Some, h.Bad, h.Unknown = good.String(), some.String(), bad.String(), unknown.String()
	if checks > 0 {
		h.Share = share(checks-failures, checks)
		if days < len(c.Days) {
			h.Of = "dane z " + forms{"dnia", "dni", "dni"}.count(days)
		}
	}
	slices.Reverse(troubled)
	h.Trouble = strings.Join(troubled[:min(len(troubled), maxTrouble)], ", ")
	if more := len(troubled) - maxTrouble; more > 0 {
		h.Trouble += " i jeszcze " + forms{"dzień", "dni", "dni"}.count(more)
	}
	return h
}

// share returns part of whole in percent. It returns 100% only if nothing is missing.
func share(part, whole int) string {
	if part == whole {
		return "100%"
	}
	hundredths := part * 10_000 / whole
	return fmt.Sprintf("%d,%02d%%", hundredths/100, hundredths%100)
}

// consider keeps the later of two incidents.
func (i *incident) consider(name string, last uptime.Incident) {
	if last.From.IsZero() || !last.From.After(i.From) {
		return
	}
	*i = incident{Name: name, From: last.From, To: last.To}
	if !last.To.IsZero() {
		i.Lasted = duration(last.To.Sub(last.From))
	}
}

// duration formats a duration in its most significant unit.
func duration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "poniżej minuty"
	case d < 2*time.Hour:
		return forms{"minuta", "minuty", "minut"}.count(int(d.Minutes()))
	case d < 48*time.Hour:
		return forms{"godzina", "godziny", "godzin"}.count(int(d.Hours()))
	}
	return forms{"dzień", "dni", "dni"}.count(int(d.Hours() / 24))
}

// componentWords returns the Polish name and purpose of a component.
func componentWords(id string) (name, about string) {
	switch id {
	case "database":
		return "Dane rejestru", "Własna baza i strumień zdarzeń, z którego rejestr powstaje. Gdy nie działają, listy pokazują ostatni znany stan albo czekają na dane."
	case "guard":
		return "Usługa ochronna", "Zewnętrzna usługa, z którą rejestr współpracuje."
	case "chat":
		return "Platforma czatu", "Stąd pochodzą awatary. Gdy nie działa, pokazujemy rysunek zastępczy."
	case "coin":
		return "Sieć kryptowaluty", "Przez nią przychodzą darowizny."
	}
	return id, ""
}
