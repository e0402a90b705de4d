package main

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
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
		p := demoIn(t, dir)
		p.launch()
		for part := rng.Int64N(whole); brokerBytes(dir) <= part; {
			if p.Exited() {
				t.Fatal("server ended by itself")
			}
		}
		p.End(os.Kill)
		if got := demoDigest(t, dir); got != want {
			t.Errorf("digest %s, uninterrupted %s", got, want)
		}
	}
}

// brokerBytes is how many bytes of messages the broker has on disk.
func brokerBytes(dir string) int64 {
	var bytes int64
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".blk" {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil // the server makes and removes files meanwhile
	})
	return bytes
}

func demoIn(t *testing.T, data string) *program {
	p := newProgram(t, "--demo")
	p.flags[0] = "--data-dir=" + data
	return p
}

// demoDigest starts the demonstration, waits until it is ready and stops it.
func demoDigest(t *testing.T, data string) string {
	t.Helper()
	p := demoIn(t, data)
	p.start()
	defer p.stop()
	return p.projection().Digest
}
