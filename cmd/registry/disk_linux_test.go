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
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/events/publish"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
)

// mountDisk mounts a disk of a size, and shows one of its directories at path. Where tests may not
// mount it skips the test, and fails it in CI.
func mountDisk(t *testing.T, path, size string) *registrytest.Disk {
	t.Helper()
	d, err := registrytest.MountDisk(t.TempDir(), path, size)
	if errors.Is(err, os.ErrPermission) && os.Getenv("CI") != "true" {
		t.Skip("only root may mount a disk")
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := d.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return d
}

// full is one part of the server on a disk that gets full under it.
type full struct {
	*killer
	disk  *registrytest.Disk
	hush  func() // ends the readers
	from  int    // bytes of the log before the disk was full
	since time.Time
}

// newFull starts a server whose part, a directory below the data directory, is on a disk of its
// own. The broker always is on another one than the store. Readers ask from now on until end.
func newFull(t *testing.T, part, size string) *full {
	t.Parallel()
	f := &full{killer: newFailing(t)}
	for i := range f.pool {
		f.pool[i].Reason = strings.Repeat(f.pool[i].Reason+" ", 1+8000/(1+len(f.pool[i].Reason)))
	}
	f.disk = mountDisk(t, filepath.Join(f.data, part), size)
	if part == "" {
		mountDisk(t, filepath.Join(f.data, "broker"), "512m")
	}
	f.start()
	f.feed(200)
	f.saved()
	_, f.hush = registrytest.Reading(t, f.HTTP, 2, true)
	return f
}

// quiet says whether the log was written at most once a second since begin, counted by message.
func (f *full) quiet() {
	f.t.Helper()
	most := int(time.Since(f.since)/time.Second) + 2
	count := map[string]int{}
	for row := range strings.Lines(f.Log()[f.from:]) {
		var l struct{ Msg string }
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
	nc, err := nats.Connect(f.NATS)
	require.NoError(f.t, err)
	defer nc.Close()
	for range 500 {
		_ = nc.Publish("registry.scammers.hammered", []byte("{")) // nothing is stored of it
	}
	if err := nc.Flush(); err != nil {
		f.t.Error(err)
	}
}

// end stops the readers, which must never have been turned away, kills the server, and compares what
// starts again with the stream.
func (f *full) end() {
	f.t.Helper()
	f.hush()
	f.End(os.Kill)
	f.survive()
	if aside, _ := filepath.Glob(f.storePath() + ".damaged-*"); len(aside) > 0 {
		f.t.Errorf("set aside: %q", aside)
	}
}

// TestDisks: one part of the server is on a disk that fails under it. What was acknowledged and
// applied is served exactly, and no reader is turned away; /projection and the commands
// name the trouble; the log stays quiet; nothing is left behind. When the disk works again so does
// everything, in the same process and after a kill (httpapi/CONTRACT.md#readiness; promises 4 and 5,
// readmodel/doc.go).
func TestDisks(t *testing.T) {
	t.Parallel()
	const noSpace, makeRoom, readOnly = "no space left", "; make space on the disk", "read-only file system"
	var (
		create  = []string{"snapshot", "create"}
		rebuild = []string{"rebuild"}
		export  = []string{"export"}
		file    = []string{"snapshot", "create", "--output=file"}
		output  = []string{"snapshot", "create", "--output=data/elsewhere/file"}
	)
	for name, c := range map[string]failing{
		// What is applied is served, writing is tried again quietly, and works once there is room.
		"store full": {size: "8m", fail: (*full).fillDisk, step: 400, says: "The store cannot be written",
			refused: []refusal{{rebuild, []string{noSpace}}}},
		"store read-only": {size: "64m", fail: (*full).storeReadOnly, step: 50, says: "The store cannot be written", because: readOnly},
		// Searches look at the entries themselves.
		"index full": {part: "index", size: "64m", entries: 3000, fail: (*full).fillDisk, step: 1000, says: "The text index cannot be written"},
		// Its temporary files, too, are on a disk that is read-only.
		"index read-only": {part: "index", size: "64m", fail: (*full).indexReadOnly, step: 6000, says: "The text index cannot be written",
			refused: []refusal{{create, []string{readOnly}}}, works: [][]string{create}},
		// A new server takes the place of the one that is embedded once there is room, and once more.
		"broker full": {part: "broker", size: "32m", rounds: 2, fail: (*full).fillDisk, step: 400, says: "The embedded broker takes in no events",
			refused: []refusal{{create, []string{"make space on the broker's disk"}}}, hammered: true, unsaid: "was restarted"},
		"broker read-only": {part: "broker", size: "64m", fail: (*full).brokerReadOnly, step: 50, says: "The embedded broker takes in no events", because: readOnly},
		// A snapshot is refused, with the reason, and the next one is made.
		"temporary full": {part: "temporary", size: "64m", fail: (*full).fillDisk,
			refused: []refusal{{create, []string{noSpace, makeRoom}}, {file, []string{noSpace, makeRoom}}}, works: [][]string{create, file, export}},
		// There is no file, not even a part of one.
		"output full": {part: "elsewhere", size: "4m", fail: (*full).fillDisk,
			refused: []refusal{{output, []string{"--output: ", noSpace}}}, works: [][]string{output}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFull(t, c.part, c.size)
			for range max(1, c.rounds) {
				f.trouble(c)
			}
			f.end()
		})
	}
}

// failing is a disk that fails.
type failing struct {
	part, size    string // of newFull
	entries       int    // so many more are published and indexed before it fails
	rounds        int    // 0 is 1
	fail          func(*full) (mend func())
	step          int       // events published at a time until the trouble is named
	says, because string    // in /projection
	hammered      bool      // by events that a broker without room cannot store
	unsaid        string    // not in the log while it fails
	refused       []refusal // while it fails
	works         [][]string
}

// refusal is a command, and what its error says.
type refusal struct{ command, says []string }

// trouble lets the disk fail and mends it.
func (f *full) trouble(c failing) {
	f.t.Helper()
	if c.entries > 0 {
		f.pool = eventstest.Entries(c.entries, 9)
		f.feed(2 * c.entries)
		f.saved()
	}
	f.from, f.since = len(f.Log()), time.Now()
	mend := c.fail(f)
	if c.step >= 1000 { // the index writes only what is large
		f.pool = eventstest.Entries(6000, 9)
	}
	f.publishUntilSaid(c.says, c.step)
	f.publishUntilSaid(c.because, c.step)
	for _, r := range c.refused {
		_, err := f.command(r.command...)
		for _, want := range r.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				f.t.Errorf("%q: %v, want %q", r.command, err, want)
			}
		}
	}
	for _, part := range []string{"registry.db.*", "temporary/*", "elsewhere/*"} {
		f.until("nothing is left behind as "+part, func() bool { // the server may end its part of a command after the client
			left, _ := filepath.Glob(filepath.Join(f.data, part))
			return len(left) == 0
		})
	}
	if c.hammered {
		f.hammer()
	}
	f.right()
	if c.part != "broker" { // which takes in nothing
		f.feed(100)
		f.right()
	}
	f.quiet()
	if c.unsaid != "" && strings.Contains(f.Log()[f.from:], c.unsaid) {
		f.t.Errorf("in the log: %s", c.unsaid)
	}
	mend()
	f.saved()
	f.until("100 events are acknowledged on a disk that works", func() bool {
		before := len(f.acked)
		f.feed(100)
		return len(f.acked)-before == 100
	})
	for _, command := range c.works {
		if out, err := f.command(command...); err != nil {
			f.t.Errorf("%q on a disk that works: %q %v", command, out, err)
		}
		if _, file, ok := strings.Cut(command[len(command)-1], "--output="); ok {
			if out, err := f.try("snapshot", "verify", filepath.Join(f.dir, file)); err != nil {
				f.t.Errorf("verify: %q %v", out, err)
			}
		}
	}
	f.saved()
	f.right()
}

// fillDisk leaves no room at all.
func (f *full) fillDisk() (mend func()) {
	require.NoError(f.t, f.disk.Fill(0))
	return func() { require.NoError(f.t, f.disk.Free()) }
}

// indexReadOnly makes the disks of the index and of the temporary files read-only.
func (f *full) indexReadOnly() (mend func()) {
	other := mountDisk(f.t, filepath.Join(f.data, "temporary"), "64m")
	readOnly := func(is bool) {
		f.t.Helper()
		require.NoError(f.t, f.disk.ReadOnly(is))
		require.NoError(f.t, other.ReadOnly(is))
	}
	readOnly(true)
	return func() { readOnly(false) }
}

func (f *full) storeReadOnly() (mend func()) {
	return f.turnReadOnly(f.storePath(), "pwrite64,fdatasync,fsync,ftruncate,openat")
}

func (f *full) brokerReadOnly() (mend func()) {
	return f.turnReadOnly(filepath.Join(f.data, "broker", "jetstream", "$G", "streams", "REGISTRY", "msgs", "1.blk"), "pwrite64")
}

// command runs one of the program's commands against the server. The path of --output is below the
// test's directory.
func (f *full) command(args ...string) (stdout string, err error) {
	full := make([]string, len(args))
	for i, arg := range args {
		full[i] = strings.Replace(arg, "--output=", "--output="+f.dir+"/", 1)
	}
	return f.alone(full...)
}

// The embedded broker's disk gets full in the middle of an atomic batch: while the broker sets the
// batch aside, which takes as much room as the batch, and while it stores it, which takes the same
// again; of the first batch and of a later one. When there is room again each batch is there whole
// or not at all, what was acknowledged is there, and publishing the same file again completes it.
func TestDiskFullInsideBatch(t *testing.T) {
	t.Parallel()
	quarters := []int64{2, 9}
	if eventstest.FullRun() {
		quarters = []int64{2, 5, 7, 9}
	}
	for _, quarters := range quarters {
		t.Run(fmt.Sprintf("room for %d quarters of a batch", quarters), func(t *testing.T) {
			t.Parallel()
			c := newCut(t)
			c.file("first", 1)
			require.NoError(t, c.publish("first"))
			require.NoError(t, c.disk.Fill(c.bytes()*quarters/4))
			c.file("second", 2, 3, 4)
			sure := append(c.ids["first"], c.ids["second"][:c.publishUntilFull("second")]...)
			health := c.broker.Health()
			require.NoError(t, c.disk.Fill(4<<20))
			if health == nil || c.broker.Recover(health) {
				t.Fatalf("a new server on a disk that would be full again at once; health: %v", health)
			}
			require.NoError(t, c.disk.Free())
			if !c.broker.Recover(health) {
				t.Fatalf("no new server; health: %v", health)
			}
			c.js = eventstest.Connect(t, c.broker, projector.ConnectOptions()...)
			c.whole(sure)
			require.NoError(t, c.publish("second"))
			c.complete()
		})
	}
}

// cut is a broker on a small disk, and what has been published into it.
type cut struct {
	*testing.T
	disk   *registrytest.Disk
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
			require.NoError(c, err)
			text.Write(append(line, '\n'))
			c.ids[name] = append(c.ids[name], event.ID)
			seq := c.model.View().Sequence() + 1
			c.model.Apply([]readmodel.Record{renderer.Render(seq, event.Data)}, seq)
		}
	}
	require.NoError(c, os.WriteFile(filepath.Join(c.dir, name), text.Bytes(), 0o600))
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
	require.NoError(c, err)
	defer f.Close()
	var messages []publish.Message
	for lines := bufio.NewScanner(f); lines.Scan(); {
		e, err := events.Decode(lines.Bytes())
		require.NoError(c, err)
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
	require.NoError(c, err)
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
	require.NoError(c, err)
	info, err := consumer.Info(ctx)
	require.NoError(c, err)
	messages, err := consumer.Messages()
	require.NoError(c, err)
	defer messages.Stop()
	for range info.NumPending {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		require.NoError(c, err)
		all = append(all, msg)
	}
	return all
}

// complete compares a replay with a model that was given the files.
func (c *cut) complete() {
	c.Helper()
	r := startReplay(c.js, events.DefaultStream)
	defer r.following.Stop()
	require.NoError(c, r.catchUp(c.Context(), io.Discard))
	if got, want := r.model.View().Digest(), c.model.View().Digest(); got != want {
		c.Errorf("digest %s, of the files %s", got, want)
	}
}

// turnReadOnly makes calls on a file of the running server fail, until writable is called. A disk
// with a file that is open for writing cannot be remounted so; strace answers for it as a disk that
// turned read-only after an error would.
func (f *full) turnReadOnly(file, calls string) (writable func()) {
	f.t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil && os.Getenv("CI") == "true" {
		f.t.Fatal("strace is missing")
	}
	if err != nil {
		f.t.Skip("strace is missing")
	}

	cmd := exec.Command(strace, "-f", "-qq", "-o", filepath.Join(f.dir, "calls"), "-P", file,
		"-e", "trace="+calls, "-e", "inject="+calls+":error=EROFS", "-p", fmt.Sprint(f.Pid()))
	require.NoError(f.t, cmd.Start())
	writable = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // detaches
		_ = cmd.Wait()                         // by the signal
	})
	f.t.Cleanup(writable)
	return writable
}

// publishUntilSaid publishes, so many at a time, until /projection names the trouble, at once if
// words is empty: strace takes its time to begin, and what is named may be over when all has been
// published.
func (f *full) publishUntilSaid(words string, n int) {
	f.t.Helper()
	for end := time.Now().Add(patience); words != ""; {
		f.feed(n)
		p := f.projection()
		if p.LastError != nil && strings.Contains(*p.LastError, words) {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("/projection never said %q: %+v\n%s", words, p, f.Log()[f.from:])
		}
	}
}
