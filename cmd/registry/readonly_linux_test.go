package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
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

// The store becomes read-only under the server. A disk with a file that is open for writing cannot be remounted
// so; strace answers for it as a disk that turned read-only after an error would.
func TestReadOnlyStore(t *testing.T) {
	strace := findStrace(t)
	f := newFull(t, "", "64m")
	f.from, f.since = len(f.logged()), time.Now()
	const calls = "pwrite64,fdatasync,fsync,ftruncate,openat"
	cmd := exec.Command(strace, "-f", "-qq", "-o", filepath.Join(f.dir, "calls"), "-P", f.storePath(),
		"-e", "trace="+calls, "-e", "inject="+calls+":error=EROFS", "-p", fmt.Sprint(f.child.cmd.Process.Pid))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writable := func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGINT) // detaches
			_ = cmd.Wait()                         // by the signal
		}
	}
	defer writable()
	until(t, func() bool { // strace takes its time to begin
		f.publish(50)
		p := (&stand{t: t, logLine: f.line}).projection()
		return p.LastError != nil && strings.Contains(*p.LastError, "The store cannot be written")
	})
	f.said("read-only file system")
	f.publish(300)
	f.right()
	f.quiet()
	writable()
	f.saved(f.line)
	f.right()
	f.end()
}
