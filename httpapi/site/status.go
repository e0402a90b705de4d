package site

import (
	"strings"
	"time"
)

// Component is the outcome of one probe.
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
	Class       string // of the style
	State       string // in words, because color alone is not enough
}

// StatusPage returns the page /status for a round of probes. answers means that lists and checks are served.
func StatusPage(checks []Component, answers bool, at time.Time) Page {
	v := statusView{Class: "legit", Summary: "Wszystko działa.", CheckedAt: at}
	data := true
	var silent []string
	for _, c := range checks {
		row := c.row()
		switch {
		case c.OK:
		case c.ID == "database":
			data = false
		case c.Checked:
			silent = append(silent, row.Name)
		}
		v.Components = append(v.Components, row)
	}

	// The registry itself comes first: it works without the other services.
	switch {
	case !answers:
		v.Class, v.Summary, v.Hint = "scam", "Rejestr nie odpowiada.", "Nie ma jeszcze danych. To nie znaczy, że kogoś nie ma na liście."
	case !data:
		v.Class, v.Summary = "risk", "Rejestr odpowiada, ale dane mogą być nieaktualne."
	case len(silent) > 0:
		v.Class, v.Summary, v.Hint = "risk", "Rejestr działa, ale nie wszystko wokół niego.", "Nie odpowiada: "+strings.Join(silent, ", ")+"."
	}
	return Page{Title: "Stan usług", Path: "/status", About: "Czy rejestr i usługi, z których korzysta, działają.", Data: v}
}

func (c Component) row() (row statusRow) {
	row.Class, row.State = "fails", "Nie odpowiada"
	switch {
	case c.OK:
		row.Class, row.State = "works", "Działa ("+number(int(c.Latency.Milliseconds()))+"\u00a0ms)"
	case !c.Checked:
		row.Class, row.State = "unchecked", "Nie sprawdzamy"
	}

	switch c.ID {
	case "database":
		row.Name, row.About = "Dane rejestru", "Własna baza i strumień zdarzeń, z którego rejestr powstaje. Gdy nie działają, listy pokazują ostatni znany stan albo czekają na dane."
	case "guard":
		row.Name, row.About = "Usługa ochronna", "Zewnętrzna usługa, z którą rejestr współpracuje."
	case "chat":
		row.Name, row.About = "Platforma czatu", "Stąd pochodzą awatary. Gdy nie działa, pokazujemy rysunek zastępczy."
	case "coin":
		row.Name, row.About = "Sieć kryptowaluty", "Przez nią przychodzą darowizny."
	}
	return row
}
