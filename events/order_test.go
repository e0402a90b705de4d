package events_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// Of two states of a subject the greater one is true, as the contract says (events/CONTRACT.md#revisions).
func TestCompare(t *testing.T) {
	at := eventstest.Start()
	accused := events.Entry{List: events.Scammers, EntryID: "e", ChatID: "1", Name: "a", Verified: true, ReportID: "R", ReportedAt: at, Revision: 7}
	risk, trusted, other := accused, accused, accused
	risk.Verified, risk.Name = false, "A"
	trusted.List, other.Name = events.Legit, "b"
	hidden := trusted
	hidden.Verified, hidden.Name = false, "A"
	gone := events.Delisting{List: events.Scammers, EntryID: "e", Revision: 7, Time: at}
	later, left := gone, events.Delisting{List: events.Legit, EntryID: "e", Revision: 7, Time: at}
	later.Time = at.Add(time.Millisecond)
	views := events.Views{List: events.Scammers, EntryID: "e", Revision: 7, Views: 9}
	more := views
	more.Views = 10
	for name, c := range map[string]struct {
		greater, less events.Data
		alike         bool // on the lists
	}{
		"a greater revision":              {events.Revised(accused, 8), gone, false},
		"a removal":                       {gone, accused, false},
		"a removal of the unverified":     {gone, risk, false},
		"the unverified accused":          {risk, accused, false},
		"the trusted who is not shown":    {hidden, trusted, false},
		"a removal of the hidden":         {left, hidden, true},
		"the earlier of two removals":     {gone, later, true},
		"the larger view total":           {more, views, false},
		"the greater data":                {other, accused, false},
		"a greater revision of less data": {events.Revised(accused, 8), other, false},
	} {
		if events.Compare(c.greater, c.less) <= 0 || events.Compare(c.less, c.greater) >= 0 || events.Compare(c.less, c.less) != 0 {
			t.Errorf("%s: %+v is not greater than %+v", name, c.greater, c.less)
		}
		if events.LooksEqual(c.greater, c.less) != c.alike {
			t.Errorf("%s: lists show the same: %v", name, !c.alike)
		}
	}
}

// The order is total: two states are equal or one is greater, and it has no cycle.
func TestCompareIsTotal(t *testing.T) {
	state := rapid.Custom(func(t *rapid.T) events.Data {
		revision := rapid.Int64Range(1, 2).Draw(t, "revision")
		if rapid.IntRange(0, 3).Draw(t, "removed") == 0 {
			return events.Delisting{List: events.Legit, EntryID: "e", Revision: revision, Time: time.UnixMilli(rapid.Int64Range(1, 2).Draw(t, "time")).UTC()}
		}
		return events.Entry{List: events.Legit, EntryID: "e", Revision: revision, Verified: rapid.Bool().Draw(t, "verified"), Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := state.Draw(t, "a"), state.Draw(t, "b"), state.Draw(t, "c")
		ab, ba := events.Compare(a, b), events.Compare(b, a)
		if (ab > 0) != (ba < 0) || (ab == 0) != (a == b) {
			t.Fatalf("%+v and %+v: %d and %d", a, b, ab, ba)
		}
		if ab >= 0 && events.Compare(b, c) >= 0 && events.Compare(a, c) < 0 {
			t.Fatalf("%+v, %+v and %+v are a cycle", a, b, c)
		}
	})
}
