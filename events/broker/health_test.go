package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A stream's directory is there before the stream is and for a moment after it is removed: that is no trouble. One that
// was there when the server started, and gave no stream, is; until there is a stream.
func TestHealthWhileAStreamIsMade(t *testing.T) {
	dir := t.TempDir()
	lost, made := filepath.Join(dir, "jetstream", "$G", "streams", "S"), filepath.Join(dir, "jetstream", "$G", "streams", "MADE")
	if err := os.MkdirAll(lost, 0o700); err != nil {
		t.Fatal(err)
	}
	b := start(t, Config{StoreDir: dir, UnsafeNoSync: true})
	for range 2 {
		if err := b.Health(); err == nil || !strings.Contains(err.Error(), "S' could not be recovered") {
			t.Errorf("a stream that could not be recovered: %v", err)
		}
		if err := os.MkdirAll(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	useStream(t, internal(t, b)) // makes S
	for range 2 {
		if err := b.Health(); err != nil {
			t.Errorf("a stream in the making: %v", err)
		}
	}
}
