package main

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/projector/recovery"
)

// deploy/operating.md, the worst of the drills: after the snapshot 100 people were delisted and 50
// of them listed again, and then everything but the snapshot file and the file of tombstones was
// lost. Exactly the 50 come back, wherever a reader or an operator looks, in whatever order the files
// are published, and however often.
func TestDrillAccusesNobodyAgain(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	people := drillPeople(100)
	d.start()
	d.publish(ndjson(t, listings(people, 1)...) + ndjson(t, delisting(events.Legit, "before-the-snapshot", 1)))
	d.run("snapshot", "create", "--output="+d.file)

	var gone []events.Event
	for _, e := range people {
		gone = append(gone, delisting(e.List, e.EntryID, 2))
	}
	came := people[0]
	came.EntryID, came.Name = "came-and-went", "Przelotny"
	gone = append(gone, listings([]events.Entry{came}, 1)[0], delisting(came.List, came.EntryID, 2))
	d.publish(ndjson(t, gone...) + ndjson(t, listings(people[:50], 3)...))
	tombstones := d.tombstones()
	w := world{here: map[string]bool{}, gone: d.stones()}
	for _, e := range people[:50] {
		w.here[string(e.List)+"/"+e.EntryID] = true
	}
	if len(w.gone) != 52 { // 50, the one who came and went, and the one from before the snapshot
		t.Fatalf("%d tombstones", len(w.gone))
	}
	if text, _ := os.ReadFile(tombstones); bytes.Contains(text, []byte("Osoba")) {
		t.Errorf("names in %.200s", text)
	}
	d.stop()
	require.NoError(t, os.RemoveAll(d.data))

	d.start()
	export, err := os.ReadFile(tombstones)
	if _, err := d.try("tombstones", "--output="+tombstones); err == nil || !strings.Contains(err.Error(), "of another registry") {
		t.Errorf("a fresh server's tombstones over those of the lost one: %v", err)
	}
	require.NoError(t, err)
	d.publish(string(export))
	d.publish(d.run("export", d.file))
	d.publish(string(export))
	d.isExactly(people, w)
	d.run("rebuild")
	d.isExactly(people, w)
	d.stop()
}

// A backend that delisted people by mistake lists them again, those alone, and says from which
// revision on it goes on.
func TestExportRelists(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	people := drillPeople(20)
	d.start()
	d.publish(ndjson(t, listings(people, 1)...))
	d.run("snapshot", "create", "--output="+d.file)
	night := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	var gone []events.Event
	accused := 0
	for i, e := range people[:15] {
		g := events.Delisting{List: e.List, EntryID: e.EntryID, Revision: int64(i + 2), Time: night.Add(time.Duration(i-5) * time.Hour)}
		gone = append(gone, events.StateEvent(g))
		if i > 5 && !e.List.Trusted() { // after the night
			accused++
		}
	}
	d.publish(ndjson(t, gone...))
	out := d.run("export", d.file, "--relist-delisted-after="+night.Format(time.RFC3339))
	if got := exportedIDs(t, out); len(got) != accused {
		t.Errorf("%d entries, want %d:\n%s", len(got), accused, out)
	}
	before := d.projection().Entries
	d.publish(out)
	after := d.projection().Entries
	if got := after.Scammers + after.Servers - before.Scammers - before.Servers; got != accused {
		t.Errorf("%d are listed again, want %d", got, accused)
	}
	d.publish(d.run("export", d.file)) // the rest stays as it is
	if d.projection().Entries != after {
		t.Errorf("the export of the snapshot has changed %+v to %+v", after, d.projection().Entries)
	}
	d.run("verify", "--nats-url="+d.NATS)
	d.stop()
}

func TestExportFlags(t *testing.T) {
	d := newDrill(t)
	for _, args := range [][]string{{"--relist-delisted-after=2026-11-20T03:00:00Z"}, {"FILE", "--relist-delisted-after=tomorrow"}} {
		if _, err := d.try(append([]string{"export"}, args...)...); err == nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// drill is a program and the path of a snapshot file outside its directory.
type drill struct {
	*program
	file string
}

func newDrill(t *testing.T) *drill {
	return &drill{newProgram(t, "--snapshot-every=0"), filepath.Join(t.TempDir(), "registry.snapshot")}
}

// tombstones exports the server's tombstones into a file next to the snapshot file, and returns its
// path.
func (d *drill) tombstones() string {
	d.t.Helper()
	path := d.file + ".tombstones"
	d.run("tombstones", "--output="+path)
	return path
}

// drillEvents are entries, view totals of listed and other entries, and donations.
func drillEvents(t *testing.T) string {
	t.Helper()
	all := eventstest.Events(300, 3)
	for i, e := range eventstest.Entries(50, 3) {
		all = append(all, events.Event{ID: fmt.Sprint("v", i), Source: "/drill", Type: events.TypeViewsCounted,
			Data: events.Views{Revision: 1, List: e.List, EntryID: e.EntryID, Views: int64(i)}})
	}
	all = append(all,
		events.Event{ID: "nobody", Source: "/drill", Type: events.TypeViewsCounted,
			Data: events.Views{Revision: 1, List: events.Legit, EntryID: "not-listed", Views: 7}},
		events.Event{ID: "gone", Source: "/drill", Type: events.TypeDelisted,
			Data: events.Delisting{Revision: 1, Time: eventstest.Start(), List: events.Scammers, EntryID: "gone"}},
		events.Event{ID: "donation", Source: "/drill", Type: events.TypeDonationUpdated,
			Data: events.Donation{Revision: 1, DonationID: "d1", Status: events.DonationPending, Amount: "1.50", Currency: "PLN",
				CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start()}})
	return ndjson(t, all...)
}

// drillPeople are n people with names, ids and chat ids of their own, so that each can be asked
// for.
func drillPeople(n int) []events.Entry {
	people := eventstest.Entries(n, 15)
	for i := range people {
		people[i].Name, people[i].ChatID, people[i].Verified = fmt.Sprintf("Osoba %03dx", i), fmt.Sprint(7000000+i), true
		people[i].Reason = fmt.Sprintf("powód%03dx", i)
	}
	return people
}

func listings(people []events.Entry, revision int64) (all []events.Event) {
	for _, e := range people {
		all = append(all, events.StateEvent(events.Revised(e, revision)))
	}
	return all
}

func delisting(l events.List, id string, revision int64) events.Event {
	return events.StateEvent(events.Delisting{Revision: revision, Time: eventstest.Start(), List: l, EntryID: id})
}

func ndjson(t *testing.T, all ...events.Event) string {
	t.Helper()
	var out strings.Builder
	for _, e := range all {
		line, err := events.Encode(e)
		require.NoError(t, err)
		out.Write(append(line, '\n'))
	}
	return out.String()
}

// world is who is listed, by list and entry id, and the tombstones of the others.
type world struct {
	here map[string]bool
	gone map[events.Subject]time.Time
}

// isExactly asks for everybody in every way.
func (d *drill) isExactly(people []events.Entry, w world) {
	d.t.Helper()
	d.until("the text index has everything", func() bool { p := d.projection(); return p.IndexSequence >= p.Checkpoint })
	found := map[string]bool{}
	for _, list := range events.Lists() {
		for skip := 0; ; skip += 60 {
			page := d.document(fmt.Sprintf("/api/%s?limit=60&skip=%d", list, skip))
			for _, e := range page.Data {
				found[string(list)+"/"+e.ID] = true
			}
			if !page.HasMore {
				break
			}
		}
	}
	if !maps.Equal(found, w.here) {
		d.t.Errorf("the lists show %d, want %d", len(found), len(w.here))
	}
	for _, e := range people {
		want := 0
		if w.here[string(e.List)+"/"+e.EntryID] {
			want = 1
		}
		for path, n := range map[string]int{
			"/api/check?id=" + e.ChatID:                                       len(d.document("/api/check?id=" + e.ChatID).Results),
			"/api/check?search= of the name":                                  len(d.document("/api/check?search=" + url.QueryEscape(e.Name)).Results),
			"/api/" + string(e.List) + "?id=" + e.ChatID:                      d.document("/api/" + string(e.List) + "?id=" + e.ChatID).Total,
			"/api/" + string(e.List) + "?search= of the reason, by the index": d.document("/api/" + string(e.List) + "?search=" + url.QueryEscape(e.Reason)).Total,
		} {
			if n != want {
				d.t.Errorf("%s: %d, want %d", path, n, want)
			}
		}
	}
	if got := exportedIDs(d.t, d.run("export")); !maps.Equal(got, w.here) {
		d.t.Errorf("the export has %d entries, want %d", len(got), len(w.here))
	}
	if got := d.stones(); !maps.Equal(got, w.gone) {
		d.t.Errorf("tombstones %v\nwant %v", got, w.gone)
	}
	if said := d.run("verify", "--nats-url="+d.NATS); !strings.Contains(said, "no difference") {
		d.t.Errorf("verify says %q", said)
	}
}

// stones are the server's tombstones with their times.
func (d *drill) stones() map[events.Subject]time.Time {
	d.t.Helper()
	all, err := recovery.ReadTombstones(strings.NewReader(d.run("tombstones")))
	require.NoError(d.t, err)
	by := map[events.Subject]time.Time{}
	for _, removal := range all.Removals {
		by[removal.Subject()] = events.RemovedAt(removal)
	}
	return by
}

// exportedIDs are the entries that an export lists.
func exportedIDs(t *testing.T, export string) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for line := range strings.Lines(export) {
		e, err := events.Decode([]byte(strings.TrimSpace(line)))
		require.NoError(t, err)
		if entry, ok := e.Data.(events.Entry); ok {
			ids[string(entry.List)+"/"+entry.EntryID] = true
		}
	}
	return ids
}

// answered is the part of a list or check that the test reads.
type answered struct {
	Data []struct {
		ID string `json:"_id"`
	}
	Total   int
	HasMore bool
	Results []any
}

func (d *drill) document(path string) (a answered) {
	d.t.Helper()
	d.get(path, &a)
	return a
}
