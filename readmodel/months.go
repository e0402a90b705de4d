package readmodel

import (
	"sort"
	"time"

	"example.org/registry/events"
)

// Month is a calendar month in UTC, counted from January 1970, which is 0. Reports date from 1970
// to 2200 (events/CONTRACT.md#data), so a list has fewer than 2,800 months.
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

// Reports counts the entries that the list shows by the month of their report, for the n months up
// to last. It looks up n numbers, however many entries there are.
func (v *View) Reports(l events.List, last Month, n int) []Reports {
	counts := make([]Reports, n)
	for i := range counts {
		if m := last - Month(n-1-i); m >= 0 {
			counts[i] = v.months.reports[listIndex(l)].get(uint32(m))
		}
	}
	return counts
}

// Delistings counts the tombstones of the list by the month of the delisting, for the same months
// as Reports. It does not count an entry that was listed again, which has no tombstone.
func (v *View) Delistings(l events.List, last Month, n int) []int32 {
	counts := make([]int32, n)
	for i := range counts {
		m := last - Month(n-1-i)
		for d := DayOf(m.Start()); d < DayOf((m + 1).Start()); d++ {
			counts[i] += v.DelistingsOn(l, d)
		}
	}
	return counts
}

// Day is a calendar day in UTC, counted from January 1, 1970, which is 0.
type Day int

// DayOf returns the day that t is in.
func DayOf(t time.Time) Day { return Day(t.Unix() / (24 * 60 * 60)) }

// Start returns the beginning of the day.
func (d Day) Start() time.Time { return time.Unix(int64(d)*24*60*60, 0).UTC() }

// DelistingsOn counts the tombstones of the list by the day of the delisting.
func (v *View) DelistingsOn(l events.List, d Day) int32 {
	if d < 0 {
		return 0
	}
	return v.months.delistings[listIndex(l)].get(uint32(d))
}

// ReportedOn returns the entries of a list that were reported from one day until another and that the
// list shows, newest first and at most limit, and their number. A binary search in the order newest
// finds the first.
func (v *View) ReportedOn(l events.List, from, until Day, limit int) (rows []*Row, total int) {
	list, q := v.list(l), ListQuery{List: l, Limit: 1}
	if l.Trusted() {
		q.Status = StatusVerified
	}
	size := list.size(&q)
	// first returns the position of the first entry that was reported before a day.
	first := func(d Day) int {
		return sort.Search(size, func(i int) bool {
			q.Skip = i
			return list.page(&q).Rows[0].Reported().Before(d.Start())
		})
	}
	begin, end := first(until+1), first(from)
	q.Skip, q.Limit = begin, min(limit, end-begin)
	return list.page(&q).Rows, end - begin
}

// OldestUnverified returns the time of the list's oldest unverified report, or false if there is
// none.
func (v *View) OldestUnverified(l events.List) (time.Time, bool) {
	p := v.list(l).page(&ListQuery{List: l, Sort: Oldest, Status: StatusRisk, Limit: 1})
	if len(p.Rows) == 0 {
		return time.Time{}, false
	}
	return p.Rows[0].Reported(), true
}

// months is the facet of time: for each list, the shown entries by the month of their report, and
// the tombstones by the day of their delisting. The cost of a change does not depend on the number
// of entries.
type months struct {
	reports    [events.NumLists]cowSlice[Reports]
	delistings [events.NumLists]cowSlice[int32]
	content    *content // nil in a view
}

func (m *months) apply(ch change) {
	if ch.old == nil || ch.row == nil || ch.old.month() != ch.row.month() || ch.old.filter != ch.row.filter {
		m.addReport(ch.old, -1)
		m.addReport(ch.row, 1)
	}
	m.addDelisting(ch.stone.List(), ch.wasStone, -1)
	m.addDelisting(ch.stone.List(), ch.isStone, 1)
}

func (m *months) reload(*scratch) {
	*m = months{content: m.content}
	for r := range m.content.rows() {
		m.addReport(r, 1)
	}
	for list := range m.content.tombstones.lists {
		m.content.tombstones.lists[list].all(func(d *delisting) { m.addDelisting(list, d, 1) })
	}
}

func (m *months) publish(v *View) {
	for list := range m.reports {
		v.months.reports[list], v.months.delistings[list] = m.reports[list].snapshot(), m.delistings[list].snapshot()
	}
}

// addReport adds n to the month of r's report, if r is shown.
func (m *months) addReport(r *Row, n int32) {
	if r == nil || !r.shown() {
		return
	}
	at := uint32(max(r.month(), 0)) // events of earlier times are rejected
	count := m.reports[r.list].get(at)
	if r.Verified() {
		count.Verified += n
	} else {
		count.Risk += n
	}
	m.reports[r.list].set(at, count)
}

// addDelisting adds n to the day of d. If d is nil, it does nothing.
func (m *months) addDelisting(list int, d *delisting, n int32) {
	if d == nil {
		return
	}
	at := uint32(DayOf(fromMillis(d.ms)))
	m.delistings[list].set(at, m.delistings[list].get(at)+n)
}

// month returns the month of the report.
func (r *Row) month() Month { return MonthOf(r.Reported()) }
