package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// deploy/operating.md, the worst of the drills: after the snapshot 100 people were delisted and 50
// of them listed again, and then everything but the snapshot file and the file of tombstones was
// lost. Exactly the 50 come back, wherever a reader or an operator looks.
func TestDrillAccusesNobodyAgain(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	people := drillPeople(100)
	d.start()
	d.publish(ndjson(t, listings(people, "first")...) + ndjson(t, delisting(events.Legit, "before-the-snapshot")))
	d.run("snapshot", "create", "--output="+d.file)

	var gone []events.Event
	for _, e := range people {
		gone = append(gone, delisting(e.List, e.EntryID))
	}
	came := people[0]
	came.EntryID, came.Name = "came-and-went", "Przelotny"
	gone = append(gone, listings([]events.Entry{came}, "late")[0], delisting(came.List, came.EntryID))
	d.publish(ndjson(t, gone...) + ndjson(t, listings(people[:50], "again")...))
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
	// The new stream knows nothing of what was, so it is no answer; neither is a broker that is
	// away.
	for _, broker := range []string{d.NATS, "nats://127.0.0.1:1"} {
		out, err := d.try("export", d.file, "--nats-url="+broker)
		if err == nil || out != "" || !strings.Contains(err.Error(), "--tombstones FILE") || !strings.Contains(err.Error(), "--relist") {
			t.Errorf("export without anybody to ask: %q, %v", out, err)
		}
	}
	d.publish(d.run("export", d.file, "--tombstones="+tombstones))
	d.isExactly(people, w)

	// The times are those of the first stream, so a restore of a restore knows whom to leave out
	// too.
	again := d.tombstones()
	same, err := d.try("export", d.file, "--tombstones="+again)
	require.NoError(t, err)
	if got := exportedIDs(t, same); !maps.Equal(got, exportedIDs(t, d.run("export"))) {
		t.Errorf("with the second file of tombstones %d entries", len(got))
	}
	d.run("rebuild")
	d.isExactly(people, w)
	d.stop()
}

// While the stream is there, it says who was delisted after the snapshot, and who came back.
func TestExportAsksTheStream(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	people := drillPeople(20)
	d.start()
	d.publish(ndjson(t, listings(people[1:], "first")...) + ndjson(t, delisting(people[0].List, people[0].EntryID), delisting("legit", "long-gone")))
	d.run("snapshot", "create", "--output="+d.file)
	d.publish(ndjson(t, delisting(people[1].List, people[1].EntryID), delisting(people[2].List, people[2].EntryID)))
	d.publish(ndjson(t, listings(people[:2], "again")...))

	listed := func(out string) (n int) { return strings.Count(out, `"registry.entry.listed"`) }
	out := d.run("export", d.file, "--nats-url="+d.NATS)
	if listed(out) != 18 || strings.Contains(out, people[2].Name) || !strings.Contains(out, people[1].Name) {
		t.Errorf("%d entries exported:\n%s", listed(out), out)
	}
	// Who was delisted, and is still: not the one whom the snapshot has a tombstone of and the
	// stream has listed since.
	if got := strings.Count(out, `"registry.entry.delisted"`); got != 2 || strings.Contains(out, people[0].EntryID) {
		t.Errorf("%d tombstones exported:\n%s", got, out)
	}
	// The same with a file: the stream still says who is back on a list.
	file := d.tombstones()
	out = d.run("export", d.file, "--nats-url="+d.NATS, "--tombstones="+file)
	if listed(out) != 18 || strings.Count(out, `"registry.entry.delisted"`) != 2 || strings.Contains(out, people[0].EntryID) {
		t.Errorf("with a file %d entries exported:\n%s", listed(out), out)
	}
	everybody := d.run("export", d.file, "--nats-url="+d.NATS, "--relist")
	if listed(everybody) != 19 || strings.Contains(everybody, people[0].EntryID) {
		t.Errorf("--relist exports %d entries", listed(everybody))
	}
	// The mistake of a backend is made good.
	d.publish(everybody)
	if got := d.projection().Entries; got.Scammers+got.Servers+got.Legit != 20 {
		t.Errorf("after --relist %+v", got)
	}
	// A snapshot has its tombstones, too.
	if got := d.run("tombstones", d.file); strings.Count(got, "\n") != 3 || !strings.Contains(got, `"entryId":"long-gone"`) {
		t.Errorf("tombstones of the snapshot: %s", got)
	}
	d.run("verify", "--nats-url="+d.NATS)
	d.stop()
}

// Trust that was withdrawn after the snapshot is no delisting: the export says what the entry is now,
// whether the stream or a file of tombstones tells of it.
func TestExportWithdrawsTrust(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	trusted := events.Entry{List: events.Legit, EntryID: "trusted", ChatID: "7000001", Name: "Osoba", Verified: true, ReportID: "1", ReportedAt: time.Unix(1e9, 0).UTC()}
	d.start()
	d.publish(ndjson(t, listings([]events.Entry{trusted}, "first")...))
	d.run("snapshot", "create", "--output="+d.file)
	withdrawn := trusted
	withdrawn.Verified = false
	d.publish(ndjson(t, events.Event{ID: "withdrawn", Source: "/drill", Type: events.TypeAmended, Data: withdrawn}))
	file := d.tombstones()
	if text, _ := os.ReadFile(file); !bytes.Contains(text, []byte(`,"hidden":true}`)) || bytes.Contains(text, []byte(`"time":"0001`)) {
		t.Errorf("tombstones: %s", text)
	}
	for _, asks := range []string{"--nats-url=" + d.NATS, "--tombstones=" + file} {
		out := d.run("export", d.file, asks)
		if !strings.Contains(out, `"registry.entry.listed"`) || !strings.Contains(out, `"verified":false`) || strings.Contains(out, "delisted") {
			t.Errorf("%s: %s", asks, out)
		}
	}
	d.stop()
}

func TestExportFlags(t *testing.T) {
	d := newDrill(t)
	for _, args := range [][]string{{"--relist"}, {"--tombstones=x"}, {"FILE", "--relist", "--tombstones=x"}} {
		var usage cli.UsageError
		if _, err := d.try(append([]string{"export"}, args...)...); !errors.As(err, &usage) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestReadTombstones(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tombstones")
	good := `{"list":"servers","entryId":"a","sequence":7,"time":"2026-11-22T12:00:00.25Z"}` + "\n"
	end := func(n int) string {
		return fmt.Sprintf(`{"end":true,"count":%d,"epoch":"E","sequence":9,"time":"2026-11-22T12:00:01Z"}`+"\n", n)
	}
	for text, wrong := range map[string]string{
		good + "\n" + good + end(2):              "",
		end(0):                                   "",
		"":                                       "its end is missing", // a disk that was full
		good:                                     "its end is missing",
		good + end(2):                            ":2: the end of 2 lines of a history, after 1",
		good + end(1) + good:                     ":3: a line after the end",
		good + tombstonesFailed:                  ":2: not a tombstone",
		good[:40]:                                ":1: not a tombstone",
		strings.Replace(good, "serv", "x", 1):    "no such list",
		strings.Replace(good, `"a"`, `"a b"`, 1): "no such list or entryId",
		strings.Replace(good, `,"sequence":7`, ``, 1):                     "required",
		`{"specversion":"1.0","id":"1","data":{"list":"servers"}}` + "\n": "required",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		w, err := readTombstones(path)
		if wrong == "" && (err != nil || len(w.All) != strings.Count(text, "list") || w.History != "E" || w.Sequence != 9) ||
			wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%q: %+v, %v; want %q", text, w, err, wrong)
		}
	}
}

// FuzzTombstone: a line is a tombstone that export may write, or an error; what was written is read
// back.
func FuzzTombstone(f *testing.F) {
	f.Add([]byte(`{"list":"servers","entryId":"a","sequence":7,"time":"2026-11-22T12:00:00.25Z"}`))
	f.Add([]byte(`{"list":"legit","entryId":"_-A9","sequence":18446744073709551615,"time":"0001-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"list":"legit","entryId":"a","sequence":7,"time":"2026-11-22T12:00:00.25Z","hidden":true}`))
	f.Add([]byte(`{"list":null,"entryId":"a","sequence":-7,"time":"2026"}`))
	f.Add([]byte(tombstonesFailed))
	f.Fuzz(func(t *testing.T, line []byte) {
		stone, err := parseTombstone(line)
		if err != nil {
			return
		}
		if !events.IsID(stone.EntryID) {
			t.Errorf("%q is an entry id", stone.EntryID)
		}
		written, err := json.Marshal(stone)
		require.NoError(t, err)
		if again, err := parseTombstone(written); err != nil || again.Subject() != stone.Subject() || again.Sequence != stone.Sequence || again.Hidden != stone.Hidden || !again.Time.Equal(stone.Time) {
			t.Errorf("%s became %+v, %v", written, again, err)
		}
	})
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
			Data: events.Views{List: e.List, EntryID: e.EntryID, Views: int64(i)}})
	}
	all = append(all,
		events.Event{ID: "nobody", Source: "/drill", Type: events.TypeViewsCounted,
			Data: events.Views{List: events.Legit, EntryID: "not-listed", Views: 7}},
		events.Event{ID: "gone", Source: "/drill", Type: events.TypeDelisted,
			Data: events.Delisting{List: events.Scammers, EntryID: "gone"}},
		events.Event{ID: "donation", Source: "/drill", Type: events.TypeDonationUpdated,
			Data: events.Donation{DonationID: "d1", Status: events.DonationPending, Amount: "1.50", Currency: "PLN",
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

func listings(people []events.Entry, id string) (all []events.Event) {
	for _, e := range people {
		all = append(all, events.Event{ID: id + "-" + e.EntryID, Source: "/drill", Type: events.TypeListed, Data: e})
	}
	return all
}

func delisting(l events.List, id string) events.Event {
	return events.Event{ID: events.NewEventID(), Source: "/drill", Type: events.TypeDelisted, Data: events.Delisting{List: l, EntryID: id}}
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

// stones are the server's tombstones with their times, which a new stream keeps, unlike sequences.
func (d *drill) stones() map[events.Subject]time.Time {
	d.t.Helper()
	all, err := readTombstones(d.tombstones())
	require.NoError(d.t, err)
	by := map[events.Subject]time.Time{}
	for _, t := range all.All {
		by[t.Subject()] = t.Time
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
