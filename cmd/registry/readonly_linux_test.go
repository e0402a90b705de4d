package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"example.org/registry/events/eventstest"
)

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

// The index's and the temporary files' disks are read-only for a while: searches look at the entries, snapshots
// are refused with the reason, and both come again by themselves.
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

// turnReadOnly makes calls on a file of the running server fail, until writable is called. A disk with a file that is open
// for writing cannot be remounted so; strace answers for it as a disk that turned read-only after an error would.
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

// publishUntilSaid publishes, so many at a time, until /projection names the trouble: strace takes its time to begin,
// and what is named may be over when all has been published.
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

// The embedded broker's stream becomes read-only under the server, and writable again: it takes in events in the same
// process.
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
