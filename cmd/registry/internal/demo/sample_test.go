package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/verdict"
)

func TestAboutSample(t *testing.T) {
	require.NoError(t, site.CheckText(About))
}

// The questions that the first page offers get each verdict once.
func TestQuestionsForEachVerdict(t *testing.T) {
	p := newPeople(t)
	got := map[verdict.Value]string{}
	for _, q := range Questions {
		got[p.check(t, q.Asked)] += q.Text
	}
	want := map[verdict.Value]string{}
	for i, v := range []verdict.Value{verdict.Accused, verdict.Risk, verdict.Trusted, verdict.TrustedName, verdict.Caution, verdict.Unchecked, verdict.None} {
		want[v] = Questions[i].Text
	}
	require.Equal(t, want, got)
}

// The demonstration keeps the rules of its page about the registry on any day.
func TestDemoKeepsItsRules(t *testing.T) {
	for _, day := range []time.Time{time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC), time.Date(2031, 2, 3, 23, 0, 0, 0, time.UTC)} {
		all, err := Events(day)
		require.NoError(t, err)
		last := map[string]events.Entry{}
		newest := time.Time{}
		for _, e := range all {
			if e.Time.After(day) {
				t.Errorf("%v is after %v", e.Time, day)
			}
			if d, ok := e.Data.(events.Delisting); ok {
				delete(last, d.EntryID)
			} else if entry, ok := e.Data.(events.Entry); ok {
				last[entry.EntryID] = entry
			}
		}
		for _, e := range last {
			if age := day.Sub(e.ReportedAt); age > 60*24*time.Hour && !e.Verified && !e.List.Trusted() {
				t.Errorf("%s has waited for %v", e.EntryID, age)
			}
			if e.ReportedAt.After(newest) {
				newest = e.ReportedAt
			}
		}
		if day.Sub(newest) > 48*time.Hour {
			t.Errorf("on %v the newest report is of %v", day, newest)
		}
	}
}
