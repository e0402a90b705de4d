package snapshots

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// At every system call by which a commit changes the file: a process killed before it leaves the old
// state or the new one, whole, and saving again leads to the state of an undisturbed commit. Without
// the build tag nightly only at some of the calls.
func TestKillInsideCommit(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("strace is missing")
	}
	if err != nil {
		t.Skip("strace is missing")
	}
	s, m := newStore(t)
	t.Run("an empty file", func(t *testing.T) { newDeath(t, strace, copyOf(t, s)).everywhere() })
	require.NoError(t, s.Save(feed(m, sample(600)...)))
	t.Run("a full one", func(t *testing.T) { newDeath(t, strace, copyOf(t, s)).everywhere() })
}

// commitOnce saves one commit.
func commitOnce(s *Store, m *readmodel.Model) int {
	if err := s.Save(nextCommit(m)); err != nil {
		fmt.Println("save:", err)
		return 1
	}
	return 0
}

// nextCommit changes some of what there is, and adds some, so that pages all over the file are
// written.
func nextCommit(m *readmodel.Model) Commit {
	data := sample(600)
	for i, e := range eventstest.Entries(600, 7) {
		if i%9 == 0 {
			e.Name += " again"
			data = append(data, e)
		}
	}
	if m.View().Sequence() == 0 {
		return feed(m, data[:200]...) // into an empty file, which has to grow for it
	}
	return feed(m, data[len(data)-70:]...)
}

// death kills a commit into copies of one file.
type death struct {
	t        *testing.T
	strace   string
	file     []byte
	old, new readmodel.Digest
}

func newDeath(t *testing.T, strace, path string) *death {
	file := readFile(t, path)
	_, m := mustOpen(t, path)
	d := &death{t: t, strace: strace, file: file, old: m.Digest()}
	nextCommit(m)
	d.new = m.Digest()
	return d
}

// everywhere counts the calls of an undisturbed commit, and kills others at each of them.
func (d *death) everywhere() {
	calls := d.calls()
	if len(calls) < 20 {
		d.t.Errorf("a commit of %d calls: too small to say much", len(calls))
	}
	step := 13 // of some hundred calls, and the last
	if eventstest.FullRun() {
		step = 1
	}
	nth, became := map[string]int{}, map[readmodel.Digest]int{}
	for i, call := range calls {
		nth[call]++
		if i%step == 0 || i == len(calls)-1 {
			became[d.at(call, nth[call])]++
		}
	}
	if became[d.old] == 0 || became[d.new] == 0 {
		d.t.Errorf("never the old state, or never the new one: %v", became)
	}
	d.t.Logf("killed at each of %v: %d times the old state, %d the new one", nth, became[d.old], became[d.new])
}

// calls lists the system calls by which an undisturbed commit changes the file, in their order.
func (d *death) calls() (names []string) {
	d.t.Helper()
	path := place(d.t, d.file)
	if killed := d.commit(path); killed {
		d.t.Fatal("a commit that nothing stops fails")
	}
	for _, match := range regexp.MustCompile(`(?m)^\d+ +(\w+)\(`).FindAllSubmatch(readFile(d.t, path+".calls"), -1) {
		names = append(names, string(match[1]))
	}
	return names
}

// commit runs the child on the file at path and reports whether it was killed. With --seccomp-bpf
// strace would be faster, and lose the signal.
func (d *death) commit(path string, inject ...string) (killed bool) {
	d.t.Helper()
	cmd := childCommand(d.t, "commit", path)
	args := append([]string{"strace", "-f", "-qq", "-o", path + ".calls", "-P", path,
		"-e", "trace=pwrite64,fdatasync,fsync,ftruncate"}, inject...)
	cmd.Path, cmd.Args = d.strace, append(args, os.Args[0])
	out, err := cmd.Output()
	if len(out) > 0 {
		d.t.Fatalf("the child says %q, %v", out, err)
	}
	return err != nil
}

// at kills a commit at the nth call of this name and returns which state it left.
func (d *death) at(call string, nth int) readmodel.Digest {
	d.t.Helper()
	path := place(d.t, d.file)
	if !d.commit(path, "-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, nth)) {
		d.t.Fatalf("not killed at %s %d", call, nth)
	}
	s, m := mustOpen(d.t, path)
	defer s.Close()
	left := m.Digest()
	if left != d.old && left != d.new {
		d.t.Fatalf("%s %d leaves %s, neither %s nor %s", call, nth, left, d.old, d.new)
	}
	if left == d.old {
		if err := s.Save(nextCommit(m)); err != nil || m.Digest() != d.new {
			d.t.Fatalf("saved again after %s %d: %s, not %s, %v", call, nth, m.Digest(), d.new, err)
		}
		_, again := mustOpen(d.t, copyOf(d.t, s))
		if again.Digest() != d.new {
			d.t.Errorf("loaded again: %s, not %s", again.Digest(), d.new)
		}
	}
	return left
}

// A disk that is full while the store is saved: once there is room, everything is saved again, and
// the store is whole.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 300)
	path := copyOf(t, s)
	if out, err := childCommand(t, "full", path).Output(); err != nil {
		t.Fatalf("the child says %q, %v", out, err)
	}
	_, m := mustOpen(t, path)
	if m.View().NumSubjects() < 3000 {
		t.Errorf("%d subjects, not those of all saves", m.View().NumSubjects())
	}
}

// saveUntilFull saves beyond a limit of the file's size, and then without it.
func saveUntilFull(s *Store, m *readmodel.Model) int {
	signal.Ignore(syscall.SIGXFSZ)
	info, err := os.Stat(s.path)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var unlimited unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &unlimited); err != nil {
		fmt.Println(err)
		return 1
	}
	full := unlimited
	full.Cur = uint64(info.Size()) + 200<<10
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &full); err != nil {
		fmt.Println(err)
		return 1
	}
	c := feed(m, sample(3000)...)
	if err := s.Save(c); err == nil || errors.Is(err, ErrDamaged) {
		fmt.Println("a full disk:", err)
		return 1
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unlimited); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := s.Save(c); err != nil {
		fmt.Println("with room again:", err)
		return 1
	}
	return 0
}
