package main

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// canaries are the words of the entry that TestRemains delists, as written, folded, and its chat id.
func canaries() []string { return []string{"KANAREKWKOPALNI", "kanarekwkopalni", "918273645546372819"} }

func hasCanary(b []byte) bool {
	for _, word := range canaries() {
		if bytes.Contains(b, []byte(word)) {
			return true
		}
	}
	return false
}

// remaining are the places in which something could remain of a delisted entry.
type remaining struct {
	*program
}

// places returns, for each row of deploy/erasing.md that has an end, what reads its bytes.
func (r *remaining) places() map[string]func() []byte {
	return map[string]func() []byte{
		"answers":             r.answers,
		"stream":              func() []byte { return r.messages(events.DefaultStream) },
		"new snapshots":       r.snapshot,
		"exports":             r.export,
		"log":                 func() []byte { return []byte(r.Log()) },
		"metrics":             func() []byte { return r.answer(r.Admin + "/metrics") },
		"operators' listener": func() []byte { return r.answer(r.Admin + "/projection") },
	}
}

// A delisted entry leaves every place that deploy/erasing.md names. Free pages of
// files are not looked at: the page says so.
func TestRemains(t *testing.T) {
	t.Parallel()
	d := newProgram(t, "--snapshot-every=0")
	r := &remaining{program: d}
	d.start("--snapshot-every=1s", "--snapshot-keep=2")
	d.publish(ndjson(t, eventstest.Events(300, 3)...)) // others, who stay
	entry := events.Entry{Revision: 1, List: events.Scammers, EntryID: "canary", ChatID: canaries()[2], Name: canaries()[0], ReportID: "R-1",
		Reason: strings.Repeat(canaries()[0]+" ", 400), Verified: true, ReportedAt: eventstest.Start()}
	_, err := r.stream().Publish(t.Context(), entry.Subject().String(), []byte(`{"no":"event","data":"`+canaries()[0]+`"}`))
	require.NoError(t, err)
	for version := range 3 {
		d.publish(ndjson(t, eventstest.Listed(entry, version)))
	}
	places := r.places()
	places["older snapshots"], places["rejected copies"] = r.stored, func() []byte { return r.messages(events.RejectedStream) }
	for _, name := range []string{"answers", "stream", "new snapshots", "older snapshots", "rejected copies", "exports"} {
		r.until(name+" has the entry", func() bool { return hasCanary(places[name]()) })
	}
	gone := events.Event{ID: "canary-gone", Source: "/test", Type: events.TypeDelisted, Data: events.Delisting{Revision: 9, List: entry.List, EntryID: entry.EntryID}}
	d.publish(ndjson(t, gone))
	if hasCanary(r.answers()) {
		t.Error("answers have the entry after its delisting")
	}
	rejected, err := r.stream().Stream(t.Context(), events.RejectedStream)
	require.NoError(t, err)
	require.NoError(t, rejected.Purge(t.Context()))
	for name, bytes := range places {
		r.until(name+" has nothing of it", func() bool {
			if name == "older snapshots" { // newer ones are made while anything changes
				d.publish(ndjson(t, eventstest.Listed(eventstest.Entries(1, 77)[0], int(time.Now().UnixMilli()))))
			}
			return !hasCanary(bytes())
		})
	}
	r.stop()
	if hasCanary(places["log"]()) {
		t.Error("the log has the entry after a stop")
	}
}

// files returns the bytes of the files that match and of those below them. One that is removed
// meanwhile has none.
func (r *remaining) files(pattern string) (all []byte) {
	r.t.Helper()
	matches, err := filepath.Glob(pattern)
	require.NoError(r.t, err)
	for _, path := range matches {
		_ = filepath.WalkDir(path, func(path string, f fs.DirEntry, err error) error {
			if err == nil && f.Type().IsRegular() {
				b, _ := os.ReadFile(path)
				all = append(all, b...)
			}
			return nil
		})
	}
	return all
}

func (r *remaining) answer(url string) []byte {
	r.t.Helper()
	status, body, err := ask(url)
	for until := time.Now().Add(patience); status == http.StatusServiceUnavailable && time.Now().Before(until); {
		status, body, err = ask(url) // an index is being made
	}
	if err != nil || status >= http.StatusInternalServerError {
		r.t.Fatalf("%s: %d %v", url, status, err)
	}
	return body
}

// answers are what everybody gets who asks for the entry without naming it, and for its words where
// an answer does not repeat them, so that searches that were remembered are among them.
func (r *remaining) answers() (all []byte) {
	targets := []string{"/api/scammers?limit=60", "/scammers", "/wpis/scammers/canary", "/", "/o-rejestrze"}
	for _, word := range canaries() {
		targets = append(targets, "/api/check?search="+word, "/api/scammers?search="+word, "/api/search?q="+word)
	}
	for _, target := range targets {
		all = append(all, r.answer(r.HTTP+target)...)
	}
	_, epoch, _ := strings.Cut(string(r.answer(r.HTTP+"/api/changes")), `"epoch":"`)
	epoch, _, _ = strings.Cut(epoch, `"`)
	return append(all, r.answer(r.HTTP+"/api/changes/"+epoch+"?since=0&limit=1000")...)
}

// messages is every message of a stream.
func (r *remaining) messages(stream string) (all []byte) {
	r.t.Helper()
	s, err := r.stream().Stream(r.t.Context(), stream)
	require.NoError(r.t, err)
	for seq := s.CachedInfo().State.FirstSeq; seq <= s.CachedInfo().State.LastSeq; seq++ {
		if m, err := s.GetMsg(r.t.Context(), seq); err == nil {
			all = append(all, m.Data...)
		}
	}
	return all
}

func (r *remaining) export() []byte {
	r.t.Helper()
	out, err := r.try("export")
	require.NoError(r.t, err)
	return []byte(out)
}

// snapshot is the store that a snapshot of now makes.
func (r *remaining) snapshot() []byte {
	r.t.Helper()
	dir := r.t.TempDir()
	file := filepath.Join(dir, "snapshot")
	_, err := r.try("snapshot", "create", "--output="+file)
	require.NoError(r.t, err)
	r.run("snapshot", "restore", file, "--data-dir="+filepath.Join(dir, "data"))
	return r.files(filepath.Join(dir, "data"))
}

// stored are the stores of all snapshots that are kept.
func (r *remaining) stored() (all []byte) {
	r.t.Helper()
	for line := range strings.Lines(r.run("snapshot", "list", "--nats-url="+r.NATS)) {
		name, _, _ := strings.Cut(line, " ")
		data := filepath.Join(r.t.TempDir(), "data")
		if _, err := r.try("snapshot", "restore", name, "--nats-url="+r.NATS, "--data-dir="+data); err == nil { // else it has just been pruned
			all = append(all, r.files(data)...)
		}
	}
	return all
}
