package body

import (
	"encoding/json"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// Changes as clients see them.
func TestChangeJSON(t *testing.T) {
	m, r := readmodel.New(), readmodel.NewRenderer()
	entry := events.Entry{Revision: 1, List: events.Scammers, EntryID: "e1", ChatID: "1", Name: `a"b`, ReportID: "r",
		ReportedAt: time.Date(2026, 3, 1, 12, 0, 0, 120_000_000, time.UTC)}
	unseen := events.Entry{Revision: 1, List: events.Legit, EntryID: "l1", ChatID: "2", Name: "x", ReportID: "r"}
	m.Apply([]readmodel.Record{r.Render(3, entry), r.Render(5, unseen), r.Render(6, events.Delisting{Revision: 1, List: events.Servers, EntryID: "never"})}, 7)
	want := `{"epoch":"","since":0,"until":7,"upToDate":true,"changes":[` +
		`{"seq":3,"op":"set","list":"scammers","reportedAt":"2026-03-01T12:00:00.12Z","entry":{"_id":"e1","name":"a\"b","id":"1","descHtml":"","verified":false,"proofsId":null,"reportId":"r"}},` +
		`{"seq":5,"op":"remove","list":"legit","_id":"l1"},` +
		`{"seq":6,"op":"remove","list":"servers","_id":"never"}]}`
	if got := string(AppendFeed(nil, m.View().Feed(0, 9, readmodel.MaxFeedPage))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestFeedPageFits: a page of the feed is as long as was asked for, unless a single change is longer,
// whatever the epoch and the entries are.
func TestFeedPageFits(t *testing.T) {
	m, r := readmodel.New(), readmodel.NewRenderer()
	var records []readmodel.Record
	for i := range 200 {
		records = append(records, r.Render(uint64(i+1), eventstest.AnyEntry().Example(i)))
	}
	m.Apply(records, 200)
	for i, epoch := range []string{"", "4f1d0c7e", "\x01\x02\"\\\x1f\x00", "żółw 😀"} {
		m.NameFeed(epoch, false)
		for _, size := range []int{1, 700, 5000, 1 << 16} {
			pages := 0
			for since := uint64(0); ; pages++ {
				p := m.View().Feed(since, 1000, size)
				text := AppendFeed(nil, p)
				if !json.Valid(text) || len(p.Changes) > 1 && len(text) > size {
					t.Fatalf("epoch %d: %d bytes, at most %d: %s", i, len(text), size, text)
				}
				if since = p.Until; p.UpToDate {
					break
				}
			}
			if size < 5000 && pages < 10 {
				t.Errorf("%d bytes fit into %d pages", size, pages+1)
			}
		}
	}
}
