package snapshots

import (
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

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

// The whole file is read ahead, not only what the system takes of one call.
func TestReadAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	const size = 64 << 20
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mapped) }()
	_ = f.Sync()
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	if inMemory(t, mapped) > size/2 {
		t.Skip("this file system keeps its files in memory")
	}
	readAhead(path)
	limit := time.Now().Add(time.Minute)
	for tick := time.NewTicker(10 * time.Millisecond); inMemory(t, mapped) < size; <-tick.C {
		if time.Now().After(limit) {
			t.Fatalf("%d of %d bytes are in memory", inMemory(t, mapped), size)
		}
	}
}
