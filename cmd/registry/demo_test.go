package main

import (
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// The real program, killed at a random moment of its import, shows in the end what one shows that
// was left in peace (promise 4: the digest).
func TestDemoKilledWhileImporting(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	peace := t.TempDir()
	want, whole := demoDigest(t, peace), brokerBytes(peace)
	for range 2 {
		dir := t.TempDir()
		c := startDemo(t, dir)
		for part := rng.Int64N(whole); brokerBytes(dir) <= part; {
			select {
			case <-c.ended:
				t.Fatal("server ended by itself")
			default:
			}
		}
		c.end(syscall.SIGKILL)
		if got := demoDigest(t, dir); got != want {
			t.Errorf("digest %s, uninterrupted %s", got, want)
		}
	}
}

// brokerBytes is how many bytes of messages the broker has on disk.
func brokerBytes(dir string) int64 {
	var bytes int64
	_ = filepath.WalkDir(filepath.Join(dir, "data"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".blk" {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil // the server makes and removes files meanwhile
	})
	return bytes
}

func startDemo(t *testing.T, dir string) *child {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := startChild(binary, dir, filepath.Join(dir, "log"), os.Environ(), "--demo", "--data-dir="+filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.end(os.Kill) })
	return c
}

// demoDigest starts the demonstration, waits until it is ready and stops it.
func demoDigest(t *testing.T, dir string) string {
	t.Helper()
	c := startDemo(t, dir)
	line, ok := c.await("ready")
	if !ok {
		t.Fatal("server did not become ready")
	}
	_, body, err := ask("http://" + line.Admin + "/projection")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Digest string }
	if err := json.Unmarshal(body, &doc); err != nil || doc.Digest == "" {
		t.Fatalf("%s: %v", body, err)
	}
	if status := c.end(syscall.SIGTERM); status != 0 {
		t.Errorf("stopped with status %d", status)
	}
	return doc.Digest
}
