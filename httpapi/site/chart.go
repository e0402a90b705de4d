package site

import (
	"fmt"

	"example.org/registry/readmodel"
)

// ChartMonths is how many months a chart of reports has.
const ChartMonths = 12

// Reports is how many reports there were in each of the months up to Last, oldest first.
type Reports struct {
	Last   readmodel.Month
	Counts []readmodel.Reports // at most ChartMonths
	Gone   []int32             // entries delisted in each month; nil if not shown
}

// chart is the data of _chart.html. The zero value shows nothing.
type chart struct {
	Title          string
	Bars           []bar
	Verified, Risk string // of all months
	Gone           string // delisted in all months; empty if not shown
	Most           string // the value of the highest bar, if bars have no numbers
	Height, Bottom int    // total height, and position of the baseline
	Label          int    // position of the names of the months
}

// bar is one month. Lengths are in CSS pixels and in percent of the width.
type bar struct {
	Name, Short               string // of the month
	Verified, Risk, Gone      int32
	Total                     string // above the bar; empty if there is no room
	X, Middle, Width          string
	GoneX, GoneWidth          string // of the second bar
	Top, Between, Solid, Open int    // Between is where the pending part ends and the confirmed one begins
	GoneTop, GoneHeight       int
	Above                     int // position of the number
}

// The parts of a chart in CSS pixels.
const (
	chartTop   = 16 // room for a number above the highest bar
	chartLabel = 16 // from the bottom of the bars to the names of the months
	chartEnd   = 6  // below those
	tallChart  = 96 // height of the highest bar if there is room
	lowChart   = 60 // and if other content comes first
)

// newChart draws the months of r, with the highest bar height pixels high.
func newChart(title string, r Reports, height int) chart {
	highest, verified, risk, gone := 0, 0, 0, 0
	for _, n := range r.Counts {
		highest = max(highest, int(n.Verified)+int(n.Risk))
		verified += int(n.Verified)
		risk += int(n.Risk)
	}
	for _, n := range r.Gone {
		highest = max(highest, int(n))
		gone += int(n)
	}
	if highest == 0 {
		return chart{}
	}
	bottom := chartTop + height
	c := chart{Title: title, Height: bottom + chartLabel + chartEnd, Bottom: bottom, Label: bottom + chartLabel, Verified: number(verified), Risk: number(risk)}
	if r.Gone != nil {
		c.Gone = number(gone)
	}
	if highest >= 1000 { // four digits are wider than a bar on a phone
		c.Most = number(highest)
	}
	for i, n := range r.Counts {
		b := newBar(r.Last-readmodel.Month(len(r.Counts)-1-i), n, height, highest)
		if r.Gone != nil {
			b.Gone, b.GoneHeight = r.Gone[i], barLength(r.Gone[i], height, highest)
		}
		b.stand(bottom)
		b.place(i, len(r.Counts), r.Gone != nil)
		if total := int(n.Verified) + int(n.Risk); c.Most == "" && total > 0 {
			b.Total = number(total)
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

func newBar(m readmodel.Month, n readmodel.Reports, height, highest int) bar {
	at := m.Start()
	b := bar{Name: monthName(at.Month()) + " " + fmt.Sprint(at.Year()), Short: shortMonth(at.Month()), Verified: n.Verified, Risk: n.Risk}
	b.Solid, b.Open = barLength(n.Verified, height, highest), barLength(n.Risk, height, highest)
	return b
}

func barLength(n int32, height, highest int) int {
	if n == 0 {
		return 0
	}
	return max(1, int(n)*height/highest) // a small value stays visible
}

// stand places the bar on the baseline at bottom.
func (b *bar) stand(bottom int) {
	b.Between = bottom - b.Solid
	b.Top = b.Between - b.Open
	b.Above = b.Top - 4
	b.GoneTop = bottom - b.GoneHeight
}

// place puts the bar into the i-th of n columns, with or without room for the bar of delistings
// beside it.
func (b *bar) place(i, n int, beside bool) {
	column := 100 / float64(n)
	percent := func(x float64) string { return fmt.Sprintf("%.2f%%", x) }
	b.X, b.Middle, b.Width = percent(column*(float64(i)+.17)), percent(column*(float64(i)+.5)), percent(column*.66)
	if beside {
		b.X, b.Middle, b.Width = percent(column*(float64(i)+.1)), percent(column*(float64(i)+.35)), percent(column*.5)
		b.GoneX, b.GoneWidth = percent(column*(float64(i)+.66)), percent(column*.22)
	}
}
