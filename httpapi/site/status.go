package site

import (
	"fmt"
	"time"
)

// Component is the outcome of one check of the status (seed, status).
type Component struct {
	ID      string // database, guard, chat or coin
	Checked bool   // false: the operator has not said where it is
	OK      bool
	Latency time.Duration
}

// statusView is what the page /status shows.
type statusView struct {
	Components []statusRow
	Summary    string
	Time       string
	TimeISO    string
}

// statusRow is one component.
type statusRow struct {
	Name, About string
	Class, Mark string // of its look
	State       string // in words: not by colour alone
	Latency     string // empty: it took no time worth telling
}

// StatusPage is the page /status, of the round that /api/status tells, too.
func StatusPage(checks []Component, at time.Time) Page {
	v := statusView{Time: second(at), TimeISO: at.UTC().Format("2006-01-02T15:04:05.000Z")}
	checked, well := 0, 0
	for _, c := range checks {
		v.Components = append(v.Components, c.row())
		if c.Checked {
			checked++
		}
		if c.OK {
			well++
		}
	}
	v.Summary = "Wszystko działa."
	if well < checked {
		v.Summary = fmt.Sprintf("Nie wszystko działa: odpowiada %d z %d.", well, checked)
	}
	return Page{Title: "Stan usług", Path: "/status", About: "Czy rejestr i usługi, z których korzysta, działają.", Data: v}
}

func (c Component) row() statusRow {
	row := statusRow{Class: "fails", Mark: "✕", State: "Nie odpowiada"}
	switch {
	case c.OK:
		row = statusRow{Class: "works", Mark: "✓", State: "Działa"}
	case !c.Checked:
		row = statusRow{Class: "unchecked", Mark: "–", State: "Nie jest sprawdzane"}
	}
	if c.Latency > 0 {
		row.Latency = fmt.Sprintf("%d ms", c.Latency.Milliseconds())
	}
	row.Name, row.About = componentWords(c.ID)
	return row
}

// componentWords names a component and says what it is for.
func componentWords(id string) (name, about string) {
	switch id {
	case "database":
		return "Dane rejestru", "Własna baza i strumień zdarzeń, z którego rejestr powstaje. Gdy nie odpowiadają, listy pokazują ostatni znany stan albo czekają na dane."
	case "guard":
		return "Usługa ochronna", "Zewnętrzna usługa, z którą rejestr współpracuje."
	case "chat":
		return "Platforma czatu", "Stąd pochodzą awatary. Bez niej są rysowane."
	case "coin":
		return "Sieć kryptowaluty", "Przez nią przychodzą darowizny."
	}
	return id, ""
}

// second is a moment to the second.
func second(t time.Time) string {
	t = t.UTC()
	return fmt.Sprintf("%d %s %d, %s UTC", t.Day(), month(t.Month()), t.Year(), t.Format("15:04:05"))
}
