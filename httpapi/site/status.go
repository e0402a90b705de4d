package site

import (
	"fmt"
	"time"
)

// Component is the outcome of one check of the status (seed, status).
type Component struct {
	ID      string // database, guard, chat or coin
	OK      bool
	Latency time.Duration
}

// statusView is what the page /status shows.
type statusView struct {
	Components []statusRow
	Summary    string
	Well       bool // all of them answer
	Time       string
	TimeISO    string
}

// statusRow is one component.
type statusRow struct {
	Name, About string
	OK          bool
	State       string // in words: not by colour alone
	Latency     string
}

// StatusPage is the page /status, of the round that /api/status tells, too. A component whose address the
// operator has not given is not ok and took no time.
func StatusPage(checks []Component, at time.Time) Page {
	s := statusView{Well: true, Time: second(at), TimeISO: at.UTC().Format("2006-01-02T15:04:05.000Z")}
	failed := 0
	for _, c := range checks {
		row := statusRow{OK: c.OK, State: "Działa", Latency: fmt.Sprintf("%d ms", c.Latency.Milliseconds())}
		row.Name, row.About = componentWords(c.ID)
		if !c.OK {
			failed++
			row.State = "Nie odpowiada"
			if c.Latency == 0 {
				row.State, row.Latency = "Nie odpowiada albo nie jest sprawdzane", ""
			}
		}
		s.Components = append(s.Components, row)
	}
	s.Well = failed == 0
	s.Summary = "Wszystko działa."
	if failed > 0 {
		s.Summary = fmt.Sprintf("Odpowiada %d z %d składników.", len(checks)-failed, len(checks))
	}
	return Page{Title: "Stan usług", Path: "/status", About: "Czy rejestr i usługi, z których korzysta, działają.", Data: s}
}

// componentWords names a component and says what it is for.
func componentWords(id string) (name, about string) {
	switch id {
	case "database":
		return "Dane rejestru", "Własna baza i strumień zdarzeń, z którego rejestr powstaje. Gdy nie odpowiadają, listy pokazują ostatni znany stan."
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
