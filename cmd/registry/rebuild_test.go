package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
	"example.org/registry/httpapi/admin"
)

// stand is a real server that a test publishes into and asks.
type stand struct {
	t    *testing.T
	dir  string
	runs int
	env  []string      // of the server, beside the test's own
	rest time.Duration // of a reader after each answer; 0: none
	*child
	logLine
}

func newStand(t *testing.T) *stand {
	t.Parallel()
	s := &stand{t: t, dir: t.TempDir()}
	s.start()
	return s
}

// start runs the server on the stand's directory, with whatever was left there.
func (s *stand) start() {
	s.t.Helper()
	s.startUntil("ready")
}

// startUntil runs the server until it logs a line, which has its addresses.
func (s *stand) startUntil(message string) {
	s.t.Helper()
	binary, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.runs++
	log := filepath.Join(s.dir, fmt.Sprintf("server-%d.log", s.runs))
	c, err := startChild(binary, s.dir, log, append(append(os.Environ(), s.env...), "REGISTRY_DATA_DIR="+filepath.Join(s.dir, "data")))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.end(os.Kill) })
	line, ok := c.await(message)
	if !ok {
		text, _ := os.ReadFile(log)
		s.t.Fatalf("not %s: %s", message, text)
	}
	s.child, s.logLine = c, line
}

func (s *stand) publisher() *publish.Publisher {
	s.t.Helper()
	nc, err := nats.Connect(s.NATS)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		s.t.Fatal(err)
	}
	return publish.New(js, publish.Config{})
}

// fill publishes n events and waits until they have been applied.
func (s *stand) fill(n int, seed uint64) {
	s.t.Helper()
	messages := make([]publish.Message, n)
	for i, e := range eventstest.Events(n, seed) {
		messages[i] = publish.Message{Event: e}
	}
	sum, err := s.publisher().PublishAll(s.t.Context(), messages)
	if err != nil {
		s.t.Fatal(err)
	}
	until(s.t, func() bool { return s.projection().Checkpoint >= sum.LastSequence })
}

func (s *stand) projection() (p admin.Projection) {
	s.t.Helper()
	status, body, err := ask("http://" + s.Admin + "/projection")
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &p) != nil {
		s.t.Fatalf("/projection: %d %s %v", status, body, err)
	}
	return p
}

// command runs one of the program's commands against the server.
func (s *stand) command(ctx context.Context, args ...string) (stdout string, err error) {
	var out strings.Builder
	args = append(args, "--admin-addr="+s.Admin)
	if args[0] == "verify" {
		args = append(args, "--nats-url="+s.NATS)
	}
	err = run(ctx, args, func(string) string { return "" }, strings.NewReader(""), &out, io.Discard)
	return out.String(), err
}

// asides are the stores that rebuilds have replaced.
func (s *stand) asides() []string {
	found, _ := filepath.Glob(filepath.Join(s.dir, "data", "registry.db.replaced-*"))
	return found
}

// reader asks for lists, one after the other over one connection, until stop ends. It counts
// answers that are not 200 and sequences that go back.
func (s *stand) reader(stop context.Context, n int, asked, wrong *atomic.Int64) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	paths := []string{"/api/scammers?limit=60", "/api/servers?sort=popular", "/api/check?search=jan", "/api/legit?search=pays"}
	var last uint64
	for stop.Err() == nil {
		answer, err := client.Get("http://" + s.HTTP + paths[n%len(paths)])
		if err != nil {
			s.t.Errorf("request failed: %v", err)
			wrong.Add(1)
			return
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		seq, _ := strconv.ParseUint(answer.Header.Get("Registry-Sequence"), 10, 64)
		if err != nil || answer.StatusCode != http.StatusOK || seq < last {
			s.t.Errorf("status %d, sequence %d after %d, %v", answer.StatusCode, seq, last, err)
			wrong.Add(1)
		}
		last = seq
		asked.Add(1)
		n++
		time.Sleep(s.rest)
	}
}

// views publishes view totals and amendments, with the server's acknowledgment of each, until stop
// ends.
func (s *stand) views(stop context.Context, p *publish.Publisher, pool []events.Entry) (last uint64) {
	for n := 0; stop.Err() == nil; n++ {
		e := pool[n%len(pool)]
		event := events.Event{ID: fmt.Sprint("load-", n), Source: "/load", Type: events.TypeViewsCounted,
			Data: events.Views{List: e.List, EntryID: e.EntryID, Views: int64(n)}}
		if n%10 == 0 {
			e.Name = fmt.Sprint("Jan ", n)
			event.Type, event.Data = events.TypeAmended, e
		}
		ack, err := p.Publish(context.Background(), event)
		if err != nil {
			s.t.Errorf("publish: %v", err)
			return last
		}
		last = ack.Sequence
	}
	return last
}

// The rapid twin of rebuilds: while events arrive and readers ask, the model is rebuilt and
// verified again and again. No request fails, no reader sees the sequence go back (promise 3), a
// reader that waits for its own event gets it, and in the end the content is that of a replay
// (promises 1 and 4).
func TestRebuildUnderLoad(t *testing.T) {
	s := newStand(t)
	s.fill(3000, 11)
	stop, cancel := context.WithCancel(t.Context())
	var asked, wrong atomic.Int64
	var readers, writer sync.WaitGroup
	for n := range 4 {
		readers.Go(func() { s.reader(stop, n, &asked, &wrong) })
	}
	p := s.publisher()
	var last uint64
	writer.Go(func() { last = s.views(stop, p, eventstest.Entries(200, 12)) })
	readers.Go(func() { s.waiter(stop, &wrong) })
	rounds := 2
	if eventstest.Full() {
		rounds = 4
	}
	for range rounds {
		if out, err := s.command(t.Context(), "rebuild"); err != nil {
			t.Errorf("rebuild: %v %s", err, out)
		}
		if out, err := s.command(t.Context(), "verify"); err != nil {
			t.Errorf("verify: %v %s", err, out)
		}
	}
	cancel()
	writer.Wait()
	readers.Wait()
	until(t, func() bool { return s.projection().Checkpoint >= last })
	if out, err := s.command(t.Context(), "verify"); err != nil {
		t.Errorf("verify: %v %s", err, out)
	}
	t.Logf("%d requests, %d wrong, last sequence %d", asked.Load(), wrong.Load(), last)
	before := s.projection()
	if status := s.end(syscall.SIGTERM); status != 0 {
		t.Errorf("stopped with status %d", status)
	}
	s.start()
	if after := s.projection(); after.Digest != before.Digest || after.Checkpoint != before.Checkpoint {
		t.Errorf("after a restart %d %s, before %d %s", after.Checkpoint, after.Digest, before.Checkpoint, before.Digest)
	}
}

// waiter asks for what is a little ahead of the server: answers of at least that state, over
// rebuilds too.
func (s *stand) waiter(stop context.Context, wrong *atomic.Int64) {
	for stop.Err() == nil {
		want := s.projection().Checkpoint + 20
		r, err := http.NewRequest(http.MethodGet, "http://"+s.HTTP+"/api/scammers?limit=1", nil)
		if err != nil {
			s.t.Error(err)
			return
		}
		r.Header.Set("Registry-Min-Sequence", strconv.FormatUint(want, 10))
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			s.t.Errorf("waiting: %v", err)
			return
		}
		_ = answer.Body.Close()
		seq, _ := strconv.ParseUint(answer.Header.Get("Registry-Sequence"), 10, 64)
		if answer.StatusCode == http.StatusOK && seq < want {
			s.t.Errorf("answer at %d where at least %d was asked for", seq, want)
			wrong.Add(1)
		}
	}
}

// The server is killed at random moments of a rebuild and started again: it has the old model or
// the new one, each of them whole, and nothing of the attempt is left.
func TestKillDuringRebuild(t *testing.T) {
	s := newStand(t)
	s.fill(2000, 13)
	want := s.projection()
	rounds := []int{0, 2, 5}
	if eventstest.Full() {
		rounds = []int{0, 1, 2, 3, 4, 5, 6, 7}
	}
	for _, round := range rounds {
		go func() { _, _ = s.command(context.Background(), "rebuild") }() // it fails with the server, or succeeds before
		wait := time.Duration(round*round) * 12 * time.Millisecond
		<-time.After(wait) // the moment is what is tried here
		s.end(os.Kill)
		s.start()
		if got := s.projection(); got.Digest != want.Digest || got.Checkpoint != want.Checkpoint || got.Rebuilding != nil {
			t.Fatalf("killed after %s: %d %s, want %d %s", wait, got.Checkpoint, got.Digest, want.Checkpoint, want.Digest)
		}
		if left, _ := filepath.Glob(filepath.Join(s.dir, "data", "registry.db.rebuilding*")); len(left) > 0 {
			t.Errorf("killed after %s: left %v", wait, left)
		}
	}
	if out, err := s.command(t.Context(), "verify"); err != nil {
		t.Errorf("verify: %v %s", err, out)
	}
}

// Who hangs up gives the rebuild up: the old model stays, nothing of the new one is left, and the
// next rebuild is not in its way.
func TestRebuildInterrupted(t *testing.T) {
	s := newStand(t)
	s.fill(5000, 14)
	before := s.projection()
	interrupted := false
	for n := 0; n < 10 && !interrupted; n++ { // a rebuild may be faster than the test
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := s.command(ctx, "rebuild"); done <- err }()
		until(t, func() bool { return s.projection().Rebuilding != nil || len(done) > 0 })
		cancel()
		err := <-done
		interrupted = err != nil && strings.Contains(err.Error(), "interrupted") && len(s.asides()) == n
	}
	if !interrupted {
		t.Fatal("no rebuild could be interrupted")
	}
	until(t, func() bool { return s.projection().Rebuilding == nil })
	left, _ := filepath.Glob(filepath.Join(s.dir, "data", "registry.db.rebuilding*"))
	if after := s.projection(); after.Digest != before.Digest || len(left) > 0 {
		t.Errorf("after the interruption %s, before %s, left %v", after.Digest, before.Digest, left)
	}
	if out, err := s.command(t.Context(), "rebuild"); err != nil {
		t.Errorf("the next rebuild: %v %s", err, out)
	}
}

// until waits for a condition.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

// A rebuild that the memory limit has no room for is refused with both numbers, before anything is
// done; --yes does it all the same.
func TestRebuildMemory(t *testing.T) {
	t.Parallel()
	s := &stand{t: t, dir: t.TempDir(), env: []string{"GOMEMLIMIT=4MiB"}}
	s.start()
	s.fill(500, 22)
	before := s.projection()
	out, err := s.command(t.Context(), "rebuild")
	if err == nil || !strings.Contains(err.Error(), "the memory limit is 4 MiB") || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("with 4 MiB: %q %v", out, err)
	}
	if after := s.projection(); after.Digest != before.Digest || len(s.asides()) > 0 {
		t.Errorf("afterwards %s, before %s, replaced %q", after.Digest, before.Digest, s.asides())
	}
	if out, err := s.command(t.Context(), "rebuild", "--yes"); err != nil || len(s.asides()) != 1 {
		t.Errorf("with --yes: %q %v, replaced %q", out, err, s.asides())
	}
}

// Verify is right while some hundred view totals a second change.
func TestVerifyUnderLoad(t *testing.T) {
	s := newStand(t)
	s.fill(2000, 23)
	stop, cancel := context.WithCancel(t.Context())
	p, pool, done := s.publisher(), eventstest.Entries(200, 24), make(chan uint64, 1)
	go func() { done <- s.views(stop, p, pool) }()
	begun, from := time.Now(), s.projection().Checkpoint
	for range 3 {
		before := s.projection().Checkpoint
		until(t, func() bool { return s.projection().Checkpoint > before })
		if out, err := s.command(t.Context(), "verify"); err != nil {
			t.Errorf("verify: %v %s", err, out)
		}
	}
	t.Logf("%.0f events a second", float64(s.projection().Checkpoint-from)/time.Since(begun).Seconds())
	cancel()
	<-done
}

// TestRefusedRebuild: a rebuild that comes to nothing leaves the read model its one text index. (A
// second one would run beside it until the process ends, and keep the model alive for as long.)
func TestRefusedRebuild(t *testing.T) {
	t.Parallel()
	s := &stand{t: t, dir: t.TempDir(), env: []string{"REGISTRY_MIN_ENTRIES=1000"}}
	s.startUntil("listening")
	until(t, func() bool { return s.projection().CaughtUp })
	for range 3 {
		request, err := http.NewRequest(http.MethodPost, "http://"+s.Admin+"/rebuild", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Registry-Admin", "1")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusConflict {
			t.Fatalf("a rebuild with too few entries: %s", answer.Status)
		}
	}
	indexers := 0
	for end := time.Now().Add(patience); indexers == 0 && time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		_, stacks, err := ask("http://" + s.Admin + "/debug/pprof/goroutine?debug=2")
		if err != nil {
			t.Fatal(err)
		}
		indexers = strings.Count(string(stacks), "exact.(*Engine).Run(")
	}
	if indexers != 1 {
		t.Errorf("%d text indexes are kept of one read model", indexers)
	}
}
