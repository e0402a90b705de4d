package site

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"example.org/registry/httpapi/uptime"
)

// Component is the outcome of one probe (httpapi/CONTRACT.md#status), and what is known of earlier
// ones.
type Component struct {
	ID      string // database, guard, chat or coin
	Checked bool   // false: no address is configured
	OK      bool
	Latency time.Duration
	History uptime.Component
}

// statusView is what the page /status shows.
type statusView struct {
	Class         string // of the banner
	Summary, Hint string
	Components    []statusRow
	Incident      incident
	CheckedAt     time.Time
	Days          int
	WithHistory   bool // there is a history of something
}

// statusRow is one component.
type statusRow struct {
	Name, About string
	Class, Mark string // for the style
	State       string // in words, because colour alone is not enough
	Latency     string // empty: below a millisecond, or no answer
	History     *historyView
}

// historyView is the days of a component.
type historyView struct {
	Good, Some, Bad, Unknown string // paths: a bar for each day of that kind
	Share                    string // of the probes that were answered; empty: there were none
	Of                       string // the days that there are probes of, in words; empty: all
	Trouble                  string // the days with failures, in words
	Line                     string // path of the latencies
	Today, Longest           string // latencies; empty: none
}

// incident is the last time that something did not answer. The zero value is none.
type incident struct {
	Name, Lasted string
	From, To     time.Time // To zero: it goes on
}

// StatusPage returns the page /status for a round of probes. answers says that lists and checks are
// answered.
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

// summary is the banner. The registry itself comes first: it answers without the other services.
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

// millis is empty below a millisecond.
func millis(d time.Duration) string {
	if d < time.Millisecond {
		return ""
	}
	return number(int(d.Milliseconds())) + "\u00a0ms"
}

// The pictures of a history are as wide as many units a day, and stretched.
const (
	dayWidth   = 4
	barHeight  = 32
	lineHeight = 36
	fewOf      = 20 // failures of less than one in so many are few
)

func newHistoryView(c uptime.Component) *historyView {
	h := &historyView{}
	var good, some, bad, unknown strings.Builder
	var troubled []string
	var longest time.Duration
	checks, failures, days := 0, 0, 0
	for i, d := range c.Days {
		into, height := &good, 24
		switch {
		case d.Checks == 0:
			into, height = &unknown, 3
		case d.Failures*fewOf >= d.Checks:
			into, height = &bad, barHeight
		case d.Failures > 0:
			into, height = &some, 28
		}
		fmt.Fprintf(into, "M%d %dv%d", i*dayWidth+dayWidth/2, barHeight-height, height)
		if d.Failures > 0 {
			troubled = append(troubled, fmt.Sprintf("%s (bez odpowiedzi %s z %s prób)", day(d.Start), number(d.Failures), number(d.Checks)))
		}
		if d.Checks > 0 {
			days++
		}
		checks, failures, longest = checks+d.Checks, failures+d.Failures, max(longest, d.Latency)
	}
	h.Good, h.Some, h.Bad, h.Unknown = good.String(), some.String(), bad.String(), unknown.String()
	if checks > 0 {
		h.Share = share(checks-failures, checks)
		if days < len(c.Days) {
			h.Of = "dane z " + forms{"dnia", "dni", "dni"}.count(days)
		}
	}
	h.Trouble = strings.Join(troubled, ", ")
	if today := c.Days[len(c.Days)-1]; today.Checks > today.Failures {
		h.Today = cmp.Or(millis(today.Latency), "poniżej 1\u00a0ms")
	}
	h.Longest, h.Line = millis(longest), latencyLine(c.Days, longest)
	return h
}

// latencyLine is a path through the days' latencies, if there are several. Days without one
// interrupt it.
func latencyLine(days []uptime.Day, longest time.Duration) string {
	var b strings.Builder
	step, points := byte('M'), 0
	for i, d := range days {
		if d.Checks == d.Failures {
			step = 'M'
			continue
		}
		y := lineHeight - 2 - int(d.Latency*(lineHeight-4)/max(longest, time.Millisecond))
		fmt.Fprintf(&b, "%c%d %d", step, i*dayWidth+dayWidth/2, y)
		if step == 'M' {
			b.WriteString("h0") // a day between two without one is a dot
		}
		step = 'L'
		points++
	}
	if points < 2 {
		return "" // a dot is no line
	}
	return b.String()
}

// share returns part of whole in percent. It is 100% only if nothing is missing.
func share(part, whole int) string {
	if part == whole {
		return "100%"
	}
	hundredths := part * 10_000 / whole
	return fmt.Sprintf("%d,%02d%%", hundredths/100, hundredths%100)
}

// consider keeps the later one of two incidents.
func (i *incident) consider(name string, last uptime.Incident) {
	if last.From.IsZero() || !last.From.After(i.From) {
		return
	}
	*i = incident{Name: name, From: last.From, To: last.To}
	if !last.To.IsZero() {
		i.Lasted = duration(last.To.Sub(last.From))
	}
}

// duration says how long something took, in the one unit that matters.
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

// componentWords returns the Polish name of a component and what it is for.
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
