//go:build faultinject

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// Of 100 people who are delisted at the worst moment no replica has anything in the end: one hangs in a
// merge of its ranked search, one is stopped meanwhile, one starts from a snapshot of before (and has
// nobody until it has caught up) and is rebuilt, the broker drops their texts, and registry recover is
// given that snapshot.
func TestFailpointDelisting(t *testing.T) {
	t.Parallel()
	broker := eventstest.Broker(t).ClientURL()
	hanging := newReplica(t)
	hanging.env = []string{"REGISTRY_FAILPOINTS=ranked/merged=block:1"}
	hanging.begin(broker, "24h", "ready")
	people := delistedPeople()
	hanging.publish(mixedEvents(t) + ndjson(t, listings(people, 1)...)) // and others, who stay
	for n := 0; !hanging.hangs(); n++ {                                 // each batch is a segment, until there are enough to be merged
		hanging.publish(ndjson(t, eventstest.Listed(people[n%len(people)], n+1)))
	}
	stopped := newReplica(t)
	stopped.begin(broker, "0", "ready")
	for _, r := range []*remaining{hanging, stopped} { // which also has the searches remembered
		r.searchable()
		r.until("everybody is found", func() bool { return r.found(people) == len(people) && hasCanary(r.answers()) })
	}
	old := filepath.Join(t.TempDir(), "old.snapshot")
	hanging.run("snapshot", "create", "--output="+old)
	stopped.Signal(syscall.SIGSTOP)
	var gone strings.Builder
	for _, e := range people {
		gone.WriteString(ndjson(t, delisting(e.List, e.EntryID, 1_000_000)))
	}
	hanging.publish(gone.String())
	hanging.hasNobody(people, "while a merge hangs")
	hanging.until("the broker has dropped the texts", func() bool { return !hasCanary(hanging.messages(events.DefaultStream)) })
	late := newReplica(t)
	late.run("snapshot", "restore", old, "--data-dir="+late.data)
	late.env = []string{"REGISTRY_FAILPOINTS=projector/received=block:1"}
	late.begin(broker, "0", "listening")
	late.until("it is held before the delistings", late.hangs)
	if n := late.found(people); n > 0 {
		t.Errorf("before it has caught up, from a snapshot of before: %d are found", n)
	}
	late.End(os.Kill)
	late.env = nil
	late.begin(broker, "0", "ready")
	late.hasNobody(people, "ready, from a snapshot of before")
	late.run("rebuild")
	late.hasNobody(people, "rebuilt")
	end := late.projection().Checkpoint
	if said := hanging.run("recover", old, "--without-tombstones", "--nats-url="+broker, "--yes"); !strings.Contains(said, "published: 0") || !hanging.hangs() {
		t.Errorf("recover from the old snapshot says %q; the merge hangs: %v", said, hanging.hangs())
	}
	stopped.Signal(syscall.SIGCONT)
	stopped.until("it has caught up", func() bool { return stopped.projection().Checkpoint >= end })
	for name, r := range map[string]*remaining{"hanging": hanging, "stopped": stopped, "late": late} {
		r.hasNobody(people, name+", in the end")
		for place, bytes := range r.places() {
			r.until(name+": "+place+" has nothing of them", func() bool { return !hasCanary(bytes()) })
		}
	}
}

// delistedPeople share the words of canaries in name and reason; the first has its chat id and the
// entry id that remaining.answers asks for.
func delistedPeople() []events.Entry {
	people := distinctPeople(100)
	for i := range people {
		p := &people[i]
		p.List, p.EntryID, p.ChatID = events.Scammers, fmt.Sprint("canary", i), fmt.Sprint(918273645546000000+i)
		p.Name, p.Reason = canaries()[0]+" "+p.Name, p.Reason+" "+canaries()[0]
	}
	people[0].EntryID, people[0].ChatID = "canary", canaries()[2]
	return people
}

func newReplica(t *testing.T) *remaining {
	return &remaining{program: newProgram(t, "--snapshot-every=0"), copy: filepath.Join(t.TempDir(), "copy.ndjson")}
}

// begin starts the replica and waits for a line of its log. The one that makes snapshots erases in the stream.
func (r *remaining) begin(broker, snapshots, line string) {
	r.t.Helper()
	r.startUntil(line, "--snapshot-every="+snapshots, "--nats-url="+broker)
	r.NATS = broker
}

// hangs reports whether a goroutine of the replica hangs in a failpoint.
func (r *remaining) hangs() bool {
	r.t.Helper()
	return bytes.Contains(r.answer(r.Admin+"/debug/pprof/goroutine?debug=2"), []byte("failpoint.Hit("))
}

// found asks for each of the people by chat id, entry id and name, and counts those whom an answer has.
func (r *remaining) found(people []events.Entry) (n int) {
	r.t.Helper()
	for _, p := range people {
		var all []byte
		for _, target := range []string{"/api/check?search=" + p.ChatID, "/api/search?q=" + p.ChatID, "/api/search?q=" + p.Name[len(p.Name)-4:],
			"/api/scammers?search=" + p.ChatID, "/wpis/scammers/" + p.EntryID, "/api/scammers/" + p.EntryID} {
			status, body, err := ask(r.HTTP + target)
			if err != nil || status == http.StatusTooManyRequests {
				r.t.Fatalf("%s: %d %v", target, status, err)
			}
			all = append(all, body...)
		}
		if hasCanary(all) {
			n++
		}
	}
	return n
}

// searchable waits for ranked search, without which its answers are 503.
func (r *remaining) searchable() {
	r.t.Helper()
	r.until("ranked search", func() bool {
		status, _, err := ask(r.HTTP + "/api/search?q=nobody")
		return err == nil && status == http.StatusOK
	})
}

// hasNobody looks at once, and again when there is ranked search.
func (r *remaining) hasNobody(people []events.Entry, when string) {
	r.t.Helper()
	n := r.found(people)
	if r.searchable(); n+r.found(people) > 0 || hasCanary(r.answers()) || hasCanary([]byte(r.run("export"))) {
		r.t.Errorf("%s: answers or the export have somebody; at once %d", when, n)
	}
}
