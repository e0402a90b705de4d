package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"example.org/registry/readmodel"
)

// saveUntilFull lets the system refuse to let the file grow, as a full disk does, and then lifts that.
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
	_, err := Begin(Config{Path: path})
	fmt.Println(err)
	return 0
}

// asNobody runs f with file permissions of an ordinary user, whoever runs the test.
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
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What is no damage is an error of one line that says what to do, and nothing is renamed.
func TestNotDamage(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, path string)
		want    error
		remedy  string
	}{
		"directory in the way": {func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, syscall.EISDIR, "registry.db: is a directory; move that directory away"},
		"file without permission": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("x"), 0); err != nil {
				t.Fatal(err)
			}
		}, fs.ErrPermission, "; make it readable and writable"},
		"directory without permission": {func(t *testing.T, path string) {
			if err := os.Chmod(filepath.Dir(path), 0o500); err != nil {
				t.Fatal(err)
			}
		}, fs.ErrPermission, "; make it readable and writable"},
		"no directory": {func(t *testing.T, path string) {
			if err := os.Remove(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
		}, fs.ErrNotExist, "; make that directory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(open755(t), "data")
			path := filepath.Join(dir, "registry.db")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
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
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(path, 0o666), os.Chmod(filepath.Dir(path), 0o555)); err != nil {
		t.Fatal(err)
	}
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
	s, _ := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	_, _, err := Open(context.Background(), Config{Path: s.path})
	if !errors.Is(err, bolterrors.ErrTimeout) || !strings.Contains(err.Error(), "; close the other program") {
		t.Errorf("Open: %v", err)
	}
	if a := asides(t, s.path); len(a) != 0 {
		t.Errorf("set aside: %v", a)
	}
}
