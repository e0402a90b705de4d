package site

import (
	"strings"
	"time"

	"example.org/registry/httpapi/upstream"
)

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

// components has the words for each component, by its id.
var components = map[string]statusRow{
	"database": {Name: "Dane rejestru", About: "Własna baza i strumień zdarzeń, z którego rejestr powstaje. Gdy nie działają, listy pokazują ostatni znany stan albo czekają na dane."},
	"guard":    {Name: "Usługa ochronna", About: "Zewnętrzna usługa, z którą rejestr współpracuje."},
	"chat":     {Name: "Platforma czatu", About: "Stąd pochodzą awatary. Gdy nie działa, pokazujemy rysunek zastępczy."},
	"coin":     {Name: "Sieć kryptowaluty", About: "Przez nią przychodzą darowizny."},
}

// StatusPage is the page /status for a round of probes.
type StatusPage struct {
	Components []upstream.Component
	Answers    bool // lists and checks are served
	CheckedAt  time.Time
}

func (p StatusPage) page() page {
	v := statusView{Class: "legit", Summary: "Wszystko działa.", CheckedAt: p.CheckedAt}
	isDatabaseDown := false
	var silent []string // the names of the other components that do not answer
	for _, c := range p.Components {
		row := newStatusRow(c)
		v.Components = append(v.Components, row)
		if !c.OK && c.ID == "database" {
			isDatabaseDown = true
		} else if !c.OK && c.Configured {
			silent = append(silent, row.Name)
		}
	}

	// The registry itself comes first: it works without the other services.
	if !p.Answers {
		v.Class = "scam"
		v.Summary = "Rejestr nie odpowiada."
		v.Hint = "Nie ma jeszcze danych. To nie znaczy, że kogoś nie ma na liście."
	} else if isDatabaseDown {
		v.Class = "risk"
		v.Summary = "Rejestr odpowiada, ale dane mogą być nieaktualne."
	} else if len(silent) > 0 {
		v.Class = "risk"
		v.Summary = "Rejestr działa, ale nie wszystko wokół niego."
		v.Hint = "Nie odpowiada: " + strings.Join(silent, ", ") + "."
	}

	return page{template: "status", Title: "Stan usług", Path: "/status", About: "Czy rejestr i usługi, z których korzysta, działają.", Data: v}
}

func newStatusRow(c upstream.Component) statusRow {
	row := components[c.ID]
	row.Class = "fails"
	row.State = "Nie odpowiada"
	if c.OK {
		row.Class = "works"
		row.State = "Działa (" + formatNumber(int(c.LatencyMs)) + "\u00a0ms)"
	} else if !c.Configured {
		row.Class = "unchecked"
		row.State = "Nie sprawdzamy"
	}

	return row
}
