//go:build !race

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// agree checks that replicas stand at the stream's end with one digest, that their answers are byte for byte the
// same in every coding, and that "registry verify" finds nothing in any.
func agree(t *testing.T, c *nodes, sequence uint64, replicas ...*replica) {
	t.Helper()
	for _, r := range replicas {
		until(t, "a replica is at the end", func() bool { return r.well(t, sequence) && r.projection(t).Lag == 0 })
	}
	first := replicas[0].projection(t)
	for _, r := range replicas[1:] {
		if p := r.projection(t); p.Digest != first.Digest || p.Checkpoint != first.Checkpoint || p.StreamEpoch != first.StreamEpoch {
			t.Errorf("replicas differ: %+v and %+v", first, p)
		}
		for _, path := range append([]string{"/api/scammers?limit=60&sort=popular", "/api/check?id=" + eventstest.Entries(1, 6)[0].ChatID}, paths...) {
			for _, coding := range []string{"identity", "gzip", "zstd"} {
				sameAnswer(t, replicas[0], r, path, coding)
			}
		}
	}
	for _, r := range replicas {
		verify(t, c, r)
	}
}

func sameAnswer(t *testing.T, one, other *replica, path, coding string) {
	t.Helper()
	header := http.Header{"Accept-Encoding": {coding}}
	a, b := get(t, one.HTTP+path, header), get(t, other.HTTP+path, header)
	if a.status != 200 || b.status != 200 || !bytes.Equal(a.body, b.body) {
		t.Errorf("%s %s: %d with %d bytes and %d with %d bytes", path, coding, a.status, len(a.body), b.status, len(b.body))
	}
	for _, name := range []string{"Etag", "Registry-Sequence", "Content-Encoding", "Cache-Control", "Vary", "Content-Type"} {
		if a.header.Get(name) != b.header.Get(name) {
			t.Errorf("%s %s: %s is %q and %q", path, coding, name, a.header.Get(name), b.header.Get(name))
		}
	}
	header["If-None-Match"] = []string{a.header.Get("Etag")}
	if again := get(t, other.HTTP+path, header); again.status != http.StatusNotModified {
		t.Errorf("%s %s: %d for the other replica's tag %s", path, coding, again.status, a.header.Get("Etag"))
	}
}

// verify is the operator's command.
func verify(t *testing.T, c *nodes, r *replica) {
	t.Helper()
	cmd := exec.Command(registry, "verify", "--nats-url="+strings.Join(c.urls(), ","), "--admin-addr="+strings.TrimPrefix(r.Admin, "http://"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("registry verify: %v: %s", err, out)
	}
}

// kept checks that a replica has the last acknowledged state of every entry.
func (w *writer) kept(t *testing.T, r *replica) {
	t.Helper()
	has := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(get(t, r.Admin+"/export", nil).body))
	for lines.Scan() {
		var e struct {
			Data struct{ List, EntryID, Reason string }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("export: %v: %s", err, lines.Bytes())
		}
		has["registry."+e.Data.List+"."+e.Data.EntryID] = e.Data.Reason
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := 0
	for entry, reason := range w.acked {
		if has[entry] != reason {
			lost++
			t.Logf("%s has %q, acknowledged was %q", entry, has[entry], reason)
		}
	}
	if lost > 0 || len(w.acked) == 0 {
		t.Errorf("%d of %d entries are not as acknowledged", lost, len(w.acked))
	}
}

// TestReplicas: the first makes everything with three copies; the second starts from the first's snapshot; they
// agree; a reader's own writes are seen at either; of two that would make snapshots one does.
func TestReplicas(t *testing.T) {
	t.Parallel()
	c := startNodes(t)
	js := c.connect()
	c.formed(js)
	one := serve(t, t.TempDir(), c.urls(), "--snapshot-every=2s")
	last := eventstest.Publish(t, js, eventstest.Events(500, 6)...)
	last = max(last, eventstest.PublishRaw(t, js, "registry.scammers.bad", []byte("{}")))
	until(t, "a snapshot of everything", func() bool { return snapshotted(js, last) })
	two := serve(t, t.TempDir(), c.urls(), "--snapshot-every=2s")
	if !strings.Contains(two.said(), "starting from a snapshot") {
		t.Error("the second replica did not start from a snapshot")
	}
	agree(t, c, last, one, two)
	for _, name := range []string{events.DefaultStream, events.RejectedStream, "OBJ_REGISTRY_SNAPSHOTS"} {
		if i := info(js, name); i == nil || i.Config.Replicas != 3 {
			t.Errorf("stream %s: %+v", name, i)
		}
	}
	if i := info(js, events.DefaultStream); i.State.Consumers != 2 {
		t.Errorf("%d consumers for two replicas", i.State.Consumers)
	}
	for i, e := range eventstest.Events(40, 7) {
		sequence := strconv.FormatUint(eventstest.Publish(t, js, e), 10)
		for _, r := range []*replica{one, two} {
			own := get(t, r.HTTP+"/api/check?id="+e.Data.(events.Entry).ChatID, http.Header{"Registry-Min-Sequence": {sequence}})
			if own.status != 200 || own.header.Get("Registry-Sequence") < sequence && len(own.header.Get("Registry-Sequence")) <= len(sequence) {
				t.Errorf("own write %d at %s: %d at %s", i, sequence, own.status, own.header.Get("Registry-Sequence"))
			}
		}
	}
	now := info(js, events.DefaultStream).State.LastSeq
	until(t, "a snapshot of what came since", func() bool { return snapshotted(js, now) })
	if n := sameSequence(one, two); n > 0 {
		t.Errorf("%d snapshots were made by both replicas", n)
	}
	agree(t, c, now, one, two)
}

// snapshotted says that there is a snapshot at the sequence or behind.
func snapshotted(js jetstream.JetStream, sequence uint64) bool {
	// The library's List waits for ever where the last object was pruned while it listed: it is asked again.
	ctx, cancel := context.WithTimeout(context.Background(), patience/20)
	defer cancel()
	store, err := js.ObjectStore(ctx, "REGISTRY_SNAPSHOTS")
	if err != nil {
		return false
	}
	all, err := store.List(ctx)
	for _, o := range all {
		at, _ := strconv.ParseUint(strings.Split(o.Name+"---", "-")[2], 10, 64) // NAME-STREAM-SEQUENCE-…; 0 is of no use
		if at >= sequence {
			return err == nil
		}
	}
	return false
}

// sameSequence counts sequences of which both made a snapshot.
func sameSequence(one, two *replica) (n int) {
	seen := map[uint64]bool{}
	for i, r := range []*replica{one, two} {
		for _, text := range strings.Split(r.said(), "\n") {
			var line struct {
				Msg      string
				Sequence uint64
			}
			if json.Unmarshal([]byte(text), &line) != nil || line.Msg != "snapshot made" {
				continue
			}
			if i == 0 {
				seen[line.Sequence] = true
			} else if seen[line.Sequence] {
				n++
			}
		}
	}
	return n
}
