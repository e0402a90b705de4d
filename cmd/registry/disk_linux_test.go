//go:build !race

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	sys "golang.org/x/sys/unix"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector"
	"example.org/registry/projector/leader"
	"example.org/registry/readmodel"
)

// disk is a file system of its own that a test makes full.
type disk struct {
	t    *testing.T
	path string
}

// mountDisk mounts a disk of a size, of which a directory is seen at path. Where tests may not
// mount it skips the test, and fails it in CI.
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

// newFull starts a server whose part, a directory below the data directory, is on a disk of its
// own. The broker always is on another one than the store. Readers ask from now on until end.
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
	s := &stand{t: t, logLine: f.line, rest: 2 * time.Millisecond}
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
	var p admin.Projection
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

// end stops the readers, none of whom was ever turned away, kills the server, and compares what
// starts again with the stream.
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

// The store's disk is full: what is applied is served, writing is tried again quietly, and works
// once there is room (httpapi/CONTRACT.md#readiness; promises 4 and 5, readmodel/doc.go).
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

// The embedded broker's disk is full: what it has acknowledged is kept and served. Once there is
// room a new server takes the place of the one that is embedded, in the same process, and takes in
// events. And once more.
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
		if strings.Contains(f.logged()[f.from:], "was restarted") {
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

// The disk for temporary files is full: a snapshot is refused, with the reason, nothing is left of
// it, and the next one is made.
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

// The disk that --output is on is full: there is no file, not even a part of one, and a good one
// when there is room.
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
	var p admin.Projection
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
	var p admin.Projection
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		p = admin.Projection{}
		f.get("http://"+f.line.Admin+"/projection", &p)
		if p.LastError == nil {
			return
		}
	}
	f.t.Fatalf("still not well: %s\n%s", *p.LastError, f.logged()[f.from:])
}

// leave makes the disk full but for some bytes.
func (d *disk) leave(room int64) {
	d.t.Helper()
	d.fill()
	info, err := os.Stat(d.filler())
	if err == nil {
		err = os.Truncate(d.filler(), info.Size()-room)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// The embedded broker's disk gets full in the middle of an atomic batch: while the broker sets the
// batch aside, which takes as much room as the batch, and while it stores it, which takes the same
// again; of the first batch and of a later one. When there is room again each batch is there whole
// or not at all, what was acknowledged is there, and publishing the same file again completes it.
func TestDiskFullInsideBatch(t *testing.T) {
	quarters := []int64{2, 9}
	if eventstest.Full() {
		quarters = []int64{2, 5, 7, 9}
	}
	for _, quarters := range quarters {
		t.Run(fmt.Sprintf("room for %d quarters of a batch", quarters), func(t *testing.T) {
			t.Parallel()
			c := newCut(t)
			c.file("first", 1)
			if err := c.publish("first"); err != nil {
				t.Fatal(err)
			}
			c.disk.leave(c.bytes() * quarters / 4)
			c.file("second", 2, 3, 4)
			sure := append(c.ids["first"], c.ids["second"][:c.publishUntilFull("second")]...)
			health := c.broker.Health()
			c.disk.leave(4 << 20)
			if health == nil || c.broker.Recover(health) {
				t.Fatalf("a new server on a disk that would be full again at once; health: %v", health)
			}
			c.disk.free()
			if !c.broker.Recover(health) {
				t.Fatalf("no new server; health: %v", health)
			}
			c.js = eventstest.Connect(t, c.broker, projector.ConnectOptions()...)
			c.whole(sure)
			if err := c.publish("second"); err != nil {
				t.Fatal(err)
			}
			c.complete()
		})
	}
}

// cut is a broker on a small disk, and what has been published into it.
type cut struct {
	*testing.T
	disk   *disk
	broker *broker.Broker
	js     jetstream.JetStream
	dir    string
	model  *readmodel.Model    // of all files
	ids    map[string][]string // of a file's events, in order
}

func newCut(t *testing.T) *cut {
	c := &cut{T: t, dir: t.TempDir(), model: readmodel.New(), ids: map[string][]string{}}
	store := filepath.Join(c.dir, "broker")
	c.disk = mountDisk(t, store, "64m")
	c.broker = eventstest.Broker(t, func(cfg *broker.Config) { cfg.StoreDir, cfg.UnsafeNoSync = store, false })
	c.js = eventstest.Connect(t, c.broker, projector.ConnectOptions()...)
	eventstest.Stream(t, c.js, func(cfg *jetstream.StreamConfig) { cfg.MaxMsgsPerSubject = -1 })
	return c
}

// file makes one of a thousand entries, in a batch's worth of events for each version.
func (c *cut) file(name string, versions ...int) {
	c.Helper()
	var text bytes.Buffer
	renderer := readmodel.NewRenderer()
	for _, version := range versions {
		for _, e := range eventstest.Entries(batchLines, 1) {
			e.Name = fmt.Sprintf("%s %d", e.Name, version)
			event := eventstest.Listed(e, version)
			line, err := events.Encode(event)
			if err != nil {
				c.Fatal(err)
			}
			text.Write(append(line, '\n'))
			c.ids[name] = append(c.ids[name], event.ID)
			seq := c.model.View().Sequence() + 1
			c.model.Apply([]readmodel.Record{renderer.Render(seq, e)}, seq)
		}
	}
	if err := os.WriteFile(filepath.Join(c.dir, name), text.Bytes(), 0o600); err != nil {
		c.Fatal(err)
	}
}

// publish is registry publish.
func (c *cut) publish(name string) error {
	return run(c.Context(), []string{"publish", "--nats-url=" + c.broker.ClientURL(), filepath.Join(c.dir, name)},
		func(string) string { return "" }, strings.NewReader(""), io.Discard, io.Discard)
}

// publishUntilFull is publish for a disk that will get full, without its patience: the broker gives
// no answer then. It says how many events are certain to be stored, counted from the first.
func (c *cut) publishUntilFull(name string) int {
	c.Helper()
	f, err := os.Open(filepath.Join(c.dir, name))
	if err != nil {
		c.Fatal(err)
	}
	defer f.Close()
	var messages []publish.Message
	for lines := bufio.NewScanner(f); lines.Scan(); {
		e, err := events.Decode(lines.Bytes())
		if err != nil {
			c.Fatal(err)
		}
		messages = append(messages, publish.Message{Event: e})
	}
	_, err = publish.New(c.js, publish.Config{Timeout: time.Second}).PublishAll(c.Context(), messages)
	var stopped *publish.MessageError
	if !errors.As(err, &stopped) {
		c.Fatalf("the disk was never full: %v", err)
	}
	return stopped.Index
}

// bytes is how much the stream takes.
func (c *cut) bytes() int64 {
	c.Helper()
	info, err := leader.Stream{JS: c.js, Name: events.DefaultStream}.Info(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	return int64(info.State.Bytes)
}

// whole says whether each batch in the stream has its beginning, its end and all between, and
// whether what is sure to be stored is there.
func (c *cut) whole(sure []string) {
	c.Helper()
	there, members, last := map[string]bool{}, map[string]int{}, map[string]bool{}
	for _, msg := range c.read() {
		h := msg.Headers()
		there[h.Get(jetstream.MsgIDHeader)] = true
		if id := h.Get("Nats-Batch-Id"); id != "" {
			members[id]++
			last[id] = h.Get("Nats-Batch-Commit") != ""
			if h.Get("Nats-Batch-Sequence") != strconv.Itoa(members[id]) {
				c.Fatalf("member %s of batch %s after %d others", h.Get("Nats-Batch-Sequence"), id, members[id]-1)
			}
		}
	}
	for id, n := range members {
		if !last[id] {
			c.Errorf("batch %s ends after %d of its messages", id, n)
		}
	}
	for _, id := range sure {
		if !there[id] {
			c.Fatalf("event %s was acknowledged and is lost", id)
		}
	}
	c.Logf("%d events there, %d acknowledged, batches: %v", len(there), len(sure), members)
}

func (c *cut) read() (all []jetstream.Msg) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	consumer, err := c.js.OrderedConsumer(ctx, events.DefaultStream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		c.Fatal(err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		c.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		c.Fatal(err)
	}
	defer messages.Stop()
	for range info.NumPending {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			c.Fatal(err)
		}
		all = append(all, msg)
	}
	return all
}

// complete compares a replay with a model that was given the files.
func (c *cut) complete() {
	c.Helper()
	r := startReplay(c.js, events.DefaultStream)
	defer r.following.Stop()
	if err := r.catchUp(c.Context(), io.Discard); err != nil {
		c.Fatal(err)
	}
	if got, want := r.model.View().Digest(), c.model.View().Digest(); got != want {
		c.Errorf("digest %s, of the files %s", got, want)
	}
}

// readOnly makes the disk read-only as the directory at path shows it, or writable again.
func (d *disk) readOnly(path string, is bool) {
	d.t.Helper()
	flags := uintptr(sys.MS_REMOUNT | sys.MS_BIND)
	if is {
		flags |= sys.MS_RDONLY
	}
	if err := sys.Mount("", path, "", flags, ""); err != nil {
		d.t.Fatalf("remount: %v", err)
	}
}

// The index's and the temporary files' disks are read-only for a while: searches look at the
// entries, snapshots are refused with the reason, and both come again by themselves.
func TestReadOnlyDisk(t *testing.T) {
	f := newFull(t, "index", "64m")
	temporary := filepath.Join(f.dir, "data", "temporary")
	other := mountDisk(t, temporary, "64m")
	s := &stand{t: t, logLine: f.line}
	f.from, f.since = len(f.logged()), time.Now()
	f.disk.readOnly(filepath.Join(f.dir, "data", "index"), true)
	other.readOnly(temporary, true)
	f.pool = eventstest.Entries(3000, 9)
	f.publish(6000)
	f.said("The text index cannot be written")
	if out, err := s.command(t.Context(), "snapshot", "create"); err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("snapshot: %q %v", out, err)
	}
	f.right()
	f.quiet()
	f.disk.readOnly(filepath.Join(f.dir, "data", "index"), false)
	other.readOnly(temporary, false)
	f.indexed()
	if out, err := s.command(t.Context(), "snapshot", "create"); err != nil {
		t.Errorf("snapshot: %q %v", out, err)
	}
	f.end()
}

// turnReadOnly makes calls on a file of the running server fail, until writable is called. A disk
// with a file that is open for writing cannot be remounted so; strace answers for it as a disk that
// turned read-only after an error would.
func (f *full) turnReadOnly(file, calls string) (writable func()) {
	f.t.Helper()
	strace := findStrace(f.t)
	f.from, f.since = len(f.logged()), time.Now()
	cmd := exec.Command(strace, "-f", "-qq", "-o", filepath.Join(f.dir, "calls"), "-P", file,
		"-e", "trace="+calls, "-e", "inject="+calls+":error=EROFS", "-p", fmt.Sprint(f.child.cmd.Process.Pid))
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	writable = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // detaches
		_ = cmd.Wait()                         // by the signal
	})
	f.t.Cleanup(writable)
	return writable
}

// publishUntilSaid publishes, so many at a time, until /projection names the trouble: strace takes
// its time to begin, and what is named may be over when all has been published.
func (f *full) publishUntilSaid(words string, n int) {
	f.t.Helper()
	until(f.t, func() bool {
		f.publish(n)
		p := (&stand{t: f.t, logLine: f.line}).projection()
		return p.LastError != nil && strings.Contains(*p.LastError, words)
	})
}

// The store becomes read-only under the server.
func TestReadOnlyStore(t *testing.T) {
	f := newFull(t, "", "64m")
	writable := f.turnReadOnly(f.storePath(), "pwrite64,fdatasync,fsync,ftruncate,openat")
	f.publishUntilSaid("The store cannot be written", 50)
	f.said("read-only file system")
	f.publish(300)
	f.right()
	f.quiet()
	writable()
	f.saved(f.line)
	f.right()
	f.end()
}

// The embedded broker's stream becomes read-only under the server, and writable again: it takes in
// events in the same process.
func TestReadOnlyBroker(t *testing.T) {
	f := newFull(t, "broker", "64m")
	stream := filepath.Join(f.dir, "data", "broker", "jetstream", "$G", "streams", "REGISTRY", "msgs", "1.blk")
	writable := f.turnReadOnly(stream, "pwrite64")
	f.publishUntilSaid("The embedded broker takes in no events", 50)
	f.said("read-only file system")
	f.right()
	writable()
	f.well()
	before := len(f.acked)
	f.publish(100)
	if got := len(f.acked) - before; got != 100 {
		t.Errorf("%d of 100 events acknowledged on a disk that can be written\n%s", got, f.logged()[f.from:])
	}
	f.right()
	f.end()
}
