package snapshots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"example.org/registry/readmodel"
)

// Each error of a store's file or of a data directory comes with what to do.
func TestRemedy(t *testing.T) {
	disk := func(number syscall.Errno) error { return &os.PathError{Op: "open", Path: "f", Err: number} }
	for _, c := range []struct {
		err  error
		want string
	}{
		{disk(syscall.EISDIR), "move that directory away, or choose another data directory with --data-dir"},
		{disk(syscall.ENOTDIR), "choose a directory with --data-dir"},
		{disk(syscall.EACCES), "make it readable and writable for this user, or choose another data directory with --data-dir"},
		{disk(syscall.ENOENT), "make that directory, or choose another with --data-dir"},
		{bolterrors.ErrTimeout, "close the other program that has the file open"},
		{disk(syscall.ENOSPC), "make space on the disk"},
		{disk(syscall.EDQUOT), "make space on the disk"},
		{disk(syscall.ENOMEM), "lift the limit on the address space of this process (ulimit -v, LimitAS)"},
		{disk(syscall.EROFS), "make the disk writable, or choose a data directory on another disk with --data-dir"},
		{disk(syscall.EIO), "check the disk, or move the file away: a new one is filled from the stream"},
	} {
		if got := remedy(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

// What is not damage is an error of one line that says what to do, and nothing is renamed.
func TestNotDamage(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, path string)
		want    error
		remedy  string
	}{
		"directory in the way": {func(t *testing.T, path string) {
			require.NoError(t, os.Mkdir(path, 0o700))
		}, syscall.EISDIR, "registry.db: is a directory; move that directory away"},
		"file without permission": {func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte("x"), 0))
		}, fs.ErrPermission, "; make it readable and writable"},
		"directory without permission": {func(t *testing.T, path string) {
			require.NoError(t, os.Chmod(filepath.Dir(path), 0o500))
		}, fs.ErrPermission, "; make it readable and writable"},
		"no directory": {func(t *testing.T, path string) {
			require.NoError(t, os.Remove(filepath.Dir(path)))
		}, fs.ErrNotExist, "; make that directory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(open755(t), "data")
			path := filepath.Join(dir, "registry.db")
			require.NoError(t, os.Mkdir(dir, 0o755))
			test.prepare(t, path)
			asNobody(t, func() {
				_, _, err := Open(context.Background(), Config{Path: path})
				if !errors.Is(err, test.want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), test.remedy) {
					t.Errorf("Open: %v", err)
				}
			})
			if a := asides(t, path); len(a) != 0 {
				t.Errorf("set aside: %v", a)
			}
		})
	}
}

// A damaged store in a directory that cannot be written to stays where it is.
func TestDamagedReadOnlyDirectory(t *testing.T) {
	path := filepath.Join(open755(t), "registry.db")
	require.NoError(t, os.WriteFile(path, []byte("damaged"), 0o600))
	require.NoError(t, errors.Join(os.Chmod(path, 0o666), os.Chmod(filepath.Dir(path), 0o555)))
	asNobody(t, func() {
		_, _, err := Open(context.Background(), Config{Path: path})
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "set aside") ||
			!strings.Contains(err.Error(), "; make it readable and writable") {
			t.Errorf("Open: %v", err)
		}
	})
	if b, err := os.ReadFile(path); err != nil || string(b) != "damaged" {
		t.Errorf("the file afterwards: %q, %v", b, err)
	}
}

// The same for a file that another program has open.
func TestFileInUse(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	_, _, err := Open(context.Background(), Config{Path: s.path})
	if !errors.Is(err, bolterrors.ErrTimeout) || !strings.Contains(err.Error(), "; close the other program") {
		t.Errorf("Open: %v", err)
	}
	if a := asides(t, s.path); len(a) != 0 {
		t.Errorf("set aside: %v", a)
	}
}

// asNobody runs f with file permissions of an ordinary user, also if root runs the test.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if os.Geteuid() == 0 {
			if err := unix.Setfsuid(65534); err != nil {
				t.Error(err)
				return
			}
		}
		f()
	}()
	<-done
}

// open755 makes a test's directory one that others may enter.
func open755(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		require.NoError(t, os.Chmod(d, 0o755))
	}
	return dir
}

// On a full disk Save fails. When there is space again it works, and nothing is lost.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registry.db")
	out, err := childCommand(t, "full", path).Output()
	if err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
	var last uint64
	var digest string
	if _, err := fmt.Sscanf(lastLine(out), "healed %d %s", &last, &digest); err != nil {
		t.Fatalf("child says %q", out)
	}
	s, m := mustOpen(t, path)
	if s.Checkpoint().Sequence != last || m.Digest().String() != digest {
		t.Errorf("loaded %d %s, saved %d %s", s.Checkpoint().Sequence, m.Digest(), last, digest)
	}
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// saveUntilFull makes the system refuse to let the file grow, as a full disk does, and then lifts
// that.
func saveUntilFull(s *Store, m *readmodel.Model) int {
	signal.Ignore(unix.SIGXFSZ)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		fmt.Println(err)
		return 1
	}
	all := feed(m, sample(400)...)
	tight := unix.Rlimit{Cur: 64 << 10, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &tight); err != nil {
		fmt.Println(err)
		return 1
	}
	for range 2 {
		if err := s.Save(all); err == nil {
			fmt.Println("saved beyond the limit")
			return 1
		}
		if s.Probe() != nil || s.Checkpoint().Sequence != 0 {
			fmt.Println("an empty transaction needs no room, and nothing was saved")
			return 1
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := s.Save(all); err != nil {
		fmt.Println("after the limit was lifted:", err)
		return 1
	}
	fmt.Println("healed", all.Checkpoint.Sequence, all.Digest)
	return 0
}

// beginFull begins a rebuild on a disk that takes some of the new store.
func beginFull(path string) int {
	signal.Ignore(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 8 << 10, Max: 8 << 10}); err != nil {
		fmt.Println(err)
		return 1
	}
	_, err := NewReplacement(Config{Path: path})
	fmt.Println(err)
	return 0
}

// readAhead reads the whole file ahead, not only what the system does for one call.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	const size = 64 << 20
	require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	mapped, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { _ = unix.Munmap(mapped) }()
	_ = f.Sync()
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	if inMemory(t, mapped) > size/2 {
		t.Skip("this file system keeps its files in memory")
	}
	limit := time.Now().Add(time.Minute)
	for tick := time.NewTicker(100 * time.Millisecond); inMemory(t, mapped) < size*3/4; <-tick.C {
		readAhead(path) // again: it is advice, and a busy system takes back what nobody has used yet
		if time.Now().After(limit) {
			t.Fatalf("%d of %d bytes are in memory", inMemory(t, mapped), size)
		}
	}
}

// inMemory is how many bytes of the mapped file the system holds.
func inMemory(t *testing.T, mapped []byte) int {
	t.Helper()
	pages := make([]byte, len(mapped)/os.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Fatal(errno)
	}
	n := 0
	for _, p := range pages {
		n += int(p&1) * os.Getpagesize()
	}
	return n
}

// The address space for the map of a store is reserved at once, and pages of it are not read one by
// one.
func TestMap(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registry.db")
	s, _, err := Open(t.Context(), Config{Path: path})
	require.NoError(t, err)
	defer s.Close()
	maps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(maps), path)
	if !found {
		t.Fatal("the store is not mapped")
	}
	before := maps[:len(maps)-len(after)-len(path)]
	var from, to uint64
	_, err = fmt.Sscanf(string(before[bytes.LastIndexByte(before, '\n')+1:]), "%x-%x", &from, &to)
	require.NoError(t, err)
	if to-from < initialMmap {
		t.Errorf("%d bytes reserved, want %d", to-from, uint64(initialMmap))
	}
	_, flags, _ := strings.Cut(after, "VmFlags:")
	if flags, _, _ = strings.Cut(flags, "\n"); slices.Contains(strings.Fields(flags), "rr") {
		t.Errorf("read at random: %s", flags)
	}
}

// The error for lack of space says how much must be free, and its figures add up.
func TestCheckSpace(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, checkSpace(dir, 1))
	err := checkSpace(dir, 1<<60)
	want := regexp.MustCompile(`^no space left on device in ` + regexp.QuoteMeta(dir) +
		`: 1152921504623624192 bytes must be free there \(1152921504606846976 for the store, 16777216 to spare\), and \d+ are$`)
	if !errors.Is(err, unix.ENOSPC) || !want.MatchString(err.Error()) {
		t.Errorf("%v", err)
	}
}

// A small store needs as much again to spare, not 16 MiB.
func TestSpareFor(t *testing.T) {
	for need, want := range map[uint64]uint64{32 << 10: 32 << 10, 16 << 20: 16 << 20, 1 << 30: 16 << 20} {
		if got := spareFor(need); got != want {
			t.Errorf("%d to spare for %d", got, need)
		}
	}
}

// Where the file system has no links, and between two file systems, the second name is a copy.
func TestSecondNameCopies(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "snapshots-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	path, name := place(t, []byte("content")), filepath.Join(other, "name")
	if err := os.Link(path, name); err == nil {
		t.Skip("temporary files are in /dev/shm")
	}
	require.NoError(t, secondName(path, name))
	if got := readFile(t, name); string(got) != "content" {
		t.Errorf("the copy holds %q", got)
	}
	if err := secondName(path, name); err == nil {
		t.Error("copied over a file")
	}
}
