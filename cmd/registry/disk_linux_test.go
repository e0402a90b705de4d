package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	sys "golang.org/x/sys/unix"

	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi"
)

// disk is a file system of its own that a test makes full.
type disk struct {
	t    *testing.T
	path string
}

// mountDisk mounts a disk of a size, of which a directory is seen at path. Where tests may not mount it skips
// the test, and fails it in CI.
func mountDisk(t *testing.T, path, size string) *disk {
	t.Helper()
	d := &disk{t, t.TempDir()}
	d.mount("registry-test", d.path, "tmpfs", 0, "size="+size)
	part := filepath.Join(d.path, "part")
	for _, dir := range []string{part, path} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.mount(part, path, "", sys.MS_BIND, "")
	return d
}

func (d *disk) mount(source, path, kind string, flags uintptr, data string) {
	d.t.Helper()
	err := sys.Mount(source, path, kind, flags, data)
	if errors.Is(err, sys.EPERM) && os.Getenv("CI") != "true" {
		d.t.Skip("only root may mount a disk")
	}
	if err != nil {
		d.t.Fatalf("mount: %v", err)
	}
	d.t.Cleanup(func() {
		if err := sys.Unmount(path, sys.MNT_DETACH); err != nil {
			d.t.Errorf("unmount: %v", err)
		}
	})
}

func (d *disk) filler() string { return filepath.Join(d.path, "filler") }

// fill leaves no room at all.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.Create(d.filler())
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err = f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if !errors.Is(err, sys.ENOSPC) {
		d.t.Fatalf("fill: %v", err)
	}
}

// free gives the room back.
func (d *disk) free() {
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatal(err)
	}
}

// full is one part of the server on a disk that gets full under it.
type full struct {
	*killer
	line    logLine
	child   *child
	disk    *disk
	asked   atomic.Int64
	wrong   atomic.Int64
	stop    context.CancelFunc
	readers sync.WaitGroup
	from    int // bytes of the log before the disk was full
	since   time.Time
}

// newFull starts a server whose part, a directory below the data directory, is on a disk of its own. The
// broker always is on another one than the store. Readers ask from now on until end.
func newFull(t *testing.T, part, size string) *full {
	t.Parallel()
	f := &full{killer: newFailing(t)}
	for i := range f.pool {
		f.pool[i].Reason = strings.Repeat(f.pool[i].Reason+" ", 1+8000/(1+len(f.pool[i].Reason)))
	}
	f.disk = mountDisk(t, filepath.Join(f.dir, "data", part), size)
	if part == "" {
		mountDisk(t, filepath.Join(f.dir, "data", "broker"), "512m")
	}
	f.child = f.start(0)
	f.line = f.ready(f.child)
	f.publish(200)
	f.saved(f.line)
	var stopped context.Context
	stopped, f.stop = context.WithCancel(t.Context())
	s := &stand{t: t, logLine: f.line}
	for n := range 2 {
		f.readers.Go(func() { s.reader(stopped, n, &f.asked, &f.wrong) })
	}
	t.Cleanup(func() { f.stop(); f.readers.Wait() }) // before the server is ended: cleanups run in reverse
	return f
}

func (f *full) publish(n int) {
	f.acked = append(f.acked, publishUntilDead(f.line.NATS, f.events(n), f.rng.Uint64())...)
}

// begin makes the disk full and remembers where the log was.
func (f *full) begin() {
	f.t.Helper()
	f.from, f.since = len(f.logged()), time.Now()
	f.disk.fill()
}

func (f *full) logged() string {
	text, err := os.ReadFile(f.child.log)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// said waits until /projection names the trouble.
func (f *full) said(words string) {
	f.t.Helper()
	var p httpapi.Projection
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		f.get("http://"+f.line.Admin+"/projection", &p)
		if p.LastError != nil && strings.Contains(*p.LastError, words) {
			return
		}
	}
	f.t.Fatalf("/projection never said %q: %+v\n%s", words, p, f.logged()[f.from:])
}

// quiet says whether the log was written at most once a second since begin, counted by message.
func (f *full) quiet() {
	f.t.Helper()
	most := int(time.Since(f.since)/time.Second) + 2
	count := map[string]int{}
	for row := range strings.Lines(f.logged()[f.from:]) {
		var l logLine
		if json.Unmarshal([]byte(row), &l) == nil {
			count[l.Msg]++
		}
	}
	for msg, n := range count {
		if n > most {
			f.t.Errorf("%d times in the log within %s: %s", n, time.Since(f.since), msg)
		}
	}
}

// hammer publishes on, as a backend may that does not wait to be asked.
func (f *full) hammer() {
	f.t.Helper()
	nc, err := nats.Connect(f.line.NATS)
	if err != nil {
		f.t.Fatal(err)
	}
	defer nc.Close()
	for range 500 {
		_ = nc.Publish("registry.scammers.hammered", []byte("{")) // nothing is stored of it
	}
	if err := nc.Flush(); err != nil {
		f.t.Error(err)
	}
}

// right compares the running server with the stream.
func (f *full) right() {
	f.t.Helper()
	stream := f.readStream(f.line.NATS)
	f.nothingLost(stream)
	f.digestIsReplays(f.line, stream)
	f.answersAreRight(f.line, naive(stream))
}

// end stops the readers, none of whom was ever turned away, kills the server, and compares what starts
// again with the stream.
func (f *full) end() {
	f.t.Helper()
	f.stop()
	f.readers.Wait()
	if f.asked.Load() == 0 {
		f.t.Error("nobody asked anything")
	}
	f.t.Logf("%d requests, %d wrong", f.asked.Load(), f.wrong.Load())
	f.child.end(syscall.SIGKILL)
	f.survive(1)
	if aside, _ := filepath.Glob(f.storePath() + ".damaged-*"); len(aside) > 0 {
		f.t.Errorf("set aside: %q", aside)
	}
}

// The store's disk is full: what is applied is served, writing is tried again quietly, and works once there
// is room (API contract, operators; promises 4 and 5).
func TestDiskFullStore(t *testing.T) {
	f := newFull(t, "", "8m")
	f.begin()
	f.publish(400)
	f.said("The store cannot be written")
	if out, err := (&stand{t: t, logLine: f.line}).command(t.Context(), "rebuild"); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("rebuild on a full disk: %q %v", out, err)
	}
	if left, _ := filepath.Glob(f.storePath() + ".*"); len(left) > 0 {
		t.Errorf("left behind by a rebuild: %q", left)
	}
	f.right()
	<-time.After(2500 * time.Millisecond) // for writing to be tried a few times
	f.publish(100)
	f.right()
	f.quiet()
	f.disk.free()
	f.saved(f.line)
	f.right()
	f.end()
}

// The index's disk is full: searches look at the entries themselves.
func TestDiskFullIndex(t *testing.T) {
	f := newFull(t, "index", "64m")
	f.pool = eventstest.Entries(3000, 9)
	f.publish(6000)
	f.indexed()
	f.begin()
	f.pool = eventstest.Entries(6000, 9)
	f.publishUntilSaid("The text index cannot be written", 1000)
	f.right()
	f.quiet()
	f.disk.free()
	f.indexed()
	f.saved(f.line)
	f.right()
	f.end()
}

// The embedded broker's disk is full: what it has acknowledged is kept and served. Once there is room a new server
// takes the place of the one that is embedded, in the same process, and takes in events. And once more.
func TestDiskFullBroker(t *testing.T) {
	f := newFull(t, "broker", "32m")
	for range 2 {
		f.begin()
		f.publish(400)
		f.said("The embedded broker takes in no events")
		if out, err := (&stand{t: t, logLine: f.line}).command(t.Context(), "snapshot", "create"); err == nil || !strings.Contains(err.Error(), "make space on the broker's disk") {
			t.Errorf("snapshot on a full disk: %q %v", out, err)
		}
		f.hammer()
		f.right()
		f.quiet()
		if strings.Contains(f.logged()[f.from:], "started anew") {
			t.Error("a new server on a full disk")
		}
		f.disk.free()
		f.well()
		before := len(f.acked)
		f.publish(100)
		if got := len(f.acked) - before; got != 100 {
			t.Errorf("%d of 100 events acknowledged on a disk with room\n%s", got, f.logged()[f.from:])
		}
		f.right()
	}
	f.end()
}

// The disk for temporary files is full: a snapshot is refused, with the reason, nothing is left of it, and the
// next one is made.
func TestDiskFullSnapshot(t *testing.T) {
	f := newFull(t, "temporary", "64m")
	s := &stand{t: t, logLine: f.line}
	file := filepath.Join(t.TempDir(), "file")
	create := [][]string{{"snapshot", "create"}, {"snapshot", "create", "--output=" + file}, {"export"}}
	f.begin()
	for _, args := range create[:2] {
		if out, err := s.command(t.Context(), args...); err == nil || !strings.Contains(err.Error(), "no space left") || !strings.HasSuffix(err.Error(), "; make space on the disk") {
			t.Errorf("%q on a full disk: %q %v", args, out, err)
		}
	}
	f.right()
	f.quiet()
	f.disk.free()
	if left, _ := filepath.Glob(filepath.Join(f.dir, "data", "temporary", "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	for _, args := range create {
		if out, err := s.command(t.Context(), args...); err != nil {
			t.Errorf("%q on a disk with room: %q %v", args, out, err)
		}
	}
	if out, err := verifyFile(t.Context(), file); err != nil {
		t.Errorf("verify: %q %v", out, err)
	}
	f.end()
}

// The disk that --output is on is full: there is no file, not even a part of one, and a good one when there
// is room.
func TestDiskFullOutput(t *testing.T) {
	f := newFull(t, "elsewhere", "4m")
	s := &stand{t: t, logLine: f.line}
	file := filepath.Join(f.dir, "data", "elsewhere", "file")
	f.begin()
	if out, err := s.command(t.Context(), "snapshot", "create", "--output="+file); err == nil || !strings.Contains(err.Error(), "--output: ") || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("on a full disk: %q %v", out, err)
	}
	if left, _ := filepath.Glob(file + "*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	f.quiet()
	f.disk.free()
	if out, err := s.command(t.Context(), "snapshot", "create", "--output="+file); err != nil {
		t.Errorf("on a disk with room: %q %v", out, err)
	}
	if out, err := verifyFile(t.Context(), file); err != nil {
		t.Errorf("verify: %q %v", out, err)
	}
	f.end()
}

// verifyFile is registry snapshot verify.
func verifyFile(ctx context.Context, file string) (stdout string, err error) {
	var out strings.Builder
	err = run(ctx, []string{"snapshot", "verify", file}, func(string) string { return "" }, strings.NewReader(""), &out, io.Discard)
	return out.String(), err
}

// indexed waits until the index covers everything.
func (f *full) indexed() {
	f.t.Helper()
	var p httpapi.Projection
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		f.get("http://"+f.line.Admin+"/projection", &p)
		if p.Lag == 0 && p.IndexSequence == p.Checkpoint && p.LastError == nil {
			return
		}
	}
	f.t.Fatalf("never indexed: %+v", p)
}

// well waits until /projection names no trouble.
func (f *full) well() {
	f.t.Helper()
	var p httpapi.Projection
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		p = httpapi.Projection{}
		f.get("http://"+f.line.Admin+"/projection", &p)
		if p.LastError == nil {
			return
		}
	}
	f.t.Fatalf("still not well: %s\n%s", *p.LastError, f.logged()[f.from:])
}
