//go:build !race

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
)

// mountDisk mounts a disk of a size, and shows one of its directories at path. Where tests may not
// mount it skips the test, and fails it in CI.
func mountDisk(t *testing.T, path, size string) *disk {
	t.Helper()
	d, err := newDisk(t.TempDir(), path, size)
	if errors.Is(err, os.ErrPermission) && os.Getenv("CI") != "true" {
		t.Skip("only root may mount a disk")
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := d.unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return d
}

// full is one part of the server on a disk that gets full under it.
type full struct {
	*killer
	disk  *disk
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
	_, f.hush = registrytest.Reading(t, f.HTTP, 2)
	return f
}

// quiet fails the test if the log has more lines of a message than its limit allows: 20 at once, then
// one a second.
func (f *full) quiet() {
	f.t.Helper()
	most := 20 + 1 + int(time.Since(f.since)/time.Second)
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
	f.start()
	f.notBackwards()
	f.right()
	f.stop()
	if aside, _ := filepath.Glob(f.storePath() + ".damaged"); len(aside) > 0 {
		f.t.Errorf("set aside: %q", aside)
	}
}

// TestDisks: one part of the server is on a disk that fails under it. What was acknowledged and
// applied is served exactly, and no reader is turned away; /projection and the commands
// name the trouble; the log stays quiet; nothing is left behind. When the disk works again so does
// everything, and after a kill (httpapi/CONTRACT.md#readiness; promises 4 and 5,
// readmodel/doc.go).
func TestDisks(t *testing.T) {
	t.Parallel()
	const noSpace = "no space left"
	var (
		create  = []string{"snapshot", "create"}
		rebuild = []string{"rebuild"}
		export  = []string{"export"}
		file    = []string{"snapshot", "create", "--output=file"}
	)
	for name, c := range map[string]failing{
		// What is applied is served, writing is tried again quietly, and works once there is room.
		"store full": {size: "8m", fail: (*full).fillDisk, step: 400, says: "The store cannot be written",
			refused: []refusal{{rebuild, []string{noSpace}}}, works: [][]string{create, file, export}},
		// The broker takes in events again once there is room and the process has been restarted.
		"broker full": {part: "broker", size: "32m", restart: true, fail: (*full).fillDisk, step: 400, says: "The embedded broker takes in no events",
			refused: []refusal{{create, []string{"make space on the broker's disk"}}}, hammered: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFull(t, c.part, c.size)
			f.trouble(c)
			f.end()
		})
	}
}

// failing is a disk that fails.
type failing struct {
	part, size string // of newFull
	restart    bool   // the process is restarted once the disk works again
	fail       func(*full) (mend func())
	step       int       // events published at a time until the trouble is named
	says       string    // in /projection
	hammered   bool      // by events that a broker without room cannot store
	refused    []refusal // while it fails
	works      [][]string
}

// refusal is a command, and what its error says.
type refusal struct{ command, says []string }

// trouble lets the disk fail and mends it.
func (f *full) trouble(c failing) {
	f.t.Helper()
	f.from, f.since = len(f.Log()), time.Now()
	mend := c.fail(f)
	f.publishUntilSaid(c.says, c.step)
	for _, r := range c.refused {
		_, err := f.command(r.command...)
		for _, want := range r.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				f.t.Errorf("%q: %v, want %q", r.command, err, want)
			}
		}
	}
	for _, part := range []string{"registry.db.*", "elsewhere/*"} {
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
	mend()
	if c.restart {
		f.hush()
		f.stop()
		f.start()
		_, f.hush = registrytest.Reading(f.t, f.HTTP, 2)
	}
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
	require.NoError(f.t, f.disk.fill(0))
	return func() { require.NoError(f.t, f.disk.free()) }
}

// command runs one of the program's commands against the server. The path of --output is below the
// test's directory.
func (f *full) command(args ...string) (stdout string, err error) {
	full := make([]string, len(args))
	for i, arg := range args {
		full[i] = strings.Replace(arg, "--output=", "--output="+f.dir+"/", 1)
	}
	return f.try(full...)
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
