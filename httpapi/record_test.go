package httpapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

func TestRecord(t *testing.T) {
	f := serve(t)
	first := f.get(t, "/api/record")
	if h := first.header; first.status != http.StatusOK || h.Get("Cache-Control") != "public, s-maxage=3600" || h.Get("Etag") == "" || h.Get("Registry-Sequence") == "" {
		t.Fatalf("%d %v", first.status, h)
	}
	if a := f.get(t, "/api/record", "If-None-Match", first.header.Get("Etag")); a.status != http.StatusNotModified {
		t.Errorf("the same again: %d", a.status)
	}
	if a := f.get(t, "/api/record", "Registry-Min-Sequence", "1"); a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("at a sequence: %v", a.header)
	}
	f.set(func(r *Readiness) { r.Ready = false })
	f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, "/api/record")
	f.set(func(r *Readiness) { r.Ready = true })
	f.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: query.", http.MethodGet, "/api/record?%zz")
	f.wantError(t, http.StatusMethodNotAllowed, "Metoda niedozwolona", http.MethodPost, "/api/record")
}

// Only lists that accuse count, each entry in the month of its report, each delisting in its own.
func TestRecordCounts(t *testing.T) {
	m, r := readmodel.New(), readmodel.NewRenderer()
	seq := uint64(0)
	listed := func(l events.List, id string, verified bool, at string) {
		seq++
		reported, err := time.Parse("2006-01-02", at)
		require.NoError(t, err)
		e := events.Entry{Revision: int64(seq), List: l, EntryID: id, ChatID: "1", Name: "x", ReportID: "r", Verified: verified, ReportedAt: reported}
		m.Apply([]readmodel.Record{r.Render(seq, e)}, seq)
	}
	delisted := func(l events.List, id string, at time.Time) {
		seq++
		m.Apply([]readmodel.Record{r.Render(seq, events.Delisting{Revision: int64(seq), Time: at, List: l, EntryID: id})}, seq)
	}
	want := func(when, text string) {
		t.Helper()
		body := recordOf(m.View(), readmodel.MonthOf(time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)))
		got := fmt.Sprint(body.Months[0].Month, " … ", body.Months[9:])
		if body.OldestUnverified != nil {
			got += " " + *body.OldestUnverified
		}
		if len(body.Months) != 12 || got != text {
			t.Errorf("%s: %s, want %s", when, got, text)
		}
	}
	november := time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)
	want("empty", "2025-12 … [{2026-09 0 0 0} {2026-10 0 0 0} {2026-11 0 0 0}]")
	listed(events.Scammers, "a", true, "2026-11-01")
	listed(events.Scammers, "b", false, "2026-10-31")
	listed(events.Servers, "a", false, "2019-01-02") // before the twelve months, but the oldest that waits
	listed(events.Legit, "c", true, "2026-11-01")
	listed(events.Legit, "d", false, "2018-01-01")
	want("listed", "2025-12 … [{2026-09 0 0 0} {2026-10 1 0 0} {2026-11 1 1 0}] 2019-01-02T00:00:00.000Z")
	delisted(events.Servers, "a", november)
	delisted(events.Legit, "c", november)
	delisted(events.Scammers, "b", november.AddDate(0, -1, 0))
	delisted(events.Scammers, "unknown", time.Time{})
	want("delisted", "2025-12 … [{2026-09 0 0 0} {2026-10 0 0 1} {2026-11 1 1 1}]")
	listed(events.Servers, "a", true, "2026-09-05")
	want("listed again", "2025-12 … [{2026-09 1 1 0} {2026-10 0 0 1} {2026-11 1 1 0}]")
}
