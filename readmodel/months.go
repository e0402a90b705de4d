package readmodel

import (
	"time"

	"example.org/registry/events"
)

// Month is a calendar month in UTC, counted from January 1970, which is 0. Reports are of 1970 to
// 2200 (events/CONTRACT.md#data), so a list has fewer than 2 800 months.
type Month int

// MonthOf returns the month that t is in.
func MonthOf(t time.Time) Month {
	t = t.UTC()
	return Month((t.Year()-1970)*12 + int(t.Month()) - 1)
}

// Start returns the beginning of the month.
func (m Month) Start() time.Time { return time.Date(1970, time.Month(m+1), 1, 0, 0, 0, 0, time.UTC) }

// Reports is how many of the entries that a list shows were reported in one month.
type Reports struct {
	Verified int32
	Risk     int32 // not verified
}

// Reports counts the entries that the list shows by the month of their report: n months, of which
// the last is last. It looks up n numbers, however many entries there are.
func (v *View) Reports(l events.List, last Month, n int) []Reports {
	counts := make([]Reports, n)
	for i := range counts {
		if m := last - Month(n-1-i); m >= 0 {
			counts[i] = v.list(l).reports.get(uint32(m))
		}
	}
	return counts
}

// Delistings counts the tombstones of the list by the month of the delisting, as Reports counts
// entries. An entry that was listed again has no tombstone, and is not counted.
func (v *View) Delistings(l events.List, last Month, n int) []int32 {
	counts := make([]int32, n)
	for i := range counts {
		if m := last - Month(n-1-i); m >= 0 {
			counts[i] = v.goneMonths[listIndex(l)].get(uint32(m))
		}
	}
	return counts
}

// OldestUnverified returns the time of the oldest report on the list that is not verified; false if
// there is none.
func (v *View) OldestUnverified(l events.List) (time.Time, bool) {
	p := v.list(l).page(&ListQuery{List: l, Sort: Oldest, Status: StatusRisk, Limit: 1})
	if len(p.Rows) == 0 {
		return time.Time{}, false
	}
	return p.Rows[0].Reported(), true
}

// monthCounts counts the rows that a list shows by month. What a change costs does not depend on
// how many rows there are.
type monthCounts struct{ cowSlice[Reports] }

// apply follows a change of one row.
func (c *monthCounts) apply(ch rowChange) {
	if ch.old != nil && ch.row != nil && ch.old.month() == ch.row.month() && ch.old.filter == ch.row.filter {
		return
	}
	c.add(ch.old, -1)
	c.add(ch.row, 1)
}

func (c *monthCounts) add(r *Row, n int32) {
	if r == nil || !r.shown() {
		return
	}
	at := uint32(max(r.month(), 0)) // events of earlier times are rejected
	count := c.get(at)
	if r.Verified() {
		count.Verified += n
	} else {
		count.Risk += n
	}
	c.set(at, count)
}

// month returns the month of the report.
func (r *Row) month() Month { return MonthOf(r.Reported()) }
