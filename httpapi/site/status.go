package site

import (
	"strings"
	"time"
)

// Component is the outcome of one probe (httpapi/CONTRACT.md#status).
type Component struct {
	ID      string // database, guard, chat or coin
	Checked bool   // false if no address is configured
	OK      bool
	Latency time.Duration
}

// statusView is the data of the page /status.
type statusView struct {
	Class         string // of the banner
	Summary, Hint string
	Components    []statusRow
	CheckedAt     time.Time
}

// statusRow is one component.
type statusRow struct {
	Name, About string
	Class, Mark string // for the style
	State       string // in words, because color alone is not enough
	Latency     string // empty below a millisecond, or without a response
}

// StatusPage returns the page /status for a round of probes. answers means that lists and checks
// are served.
func StatusPage(checks []Component, answers bool, at time.Time) Page {
	v := statusView{CheckedAt: at}
	var silent []string
	for _, c := range checks {
		row := c.row()
		if c.Checked && !c.OK && c.ID != "database" {
			silent = append(silent, row.Name)
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
