package demo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/uptime"
)

// The demonstration begins with 90 days of history, and leaves one that is there alone.
func TestHistory(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "status.json"), time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC)
	for range 2 {
		require.NoError(t, WriteHistory(path, now))
	}
	recorder := uptime.NewRecorder(uptime.Config{Path: path})
	for id, troubled := range map[string]int{"database": 0, "guard": 1, "chat": 2, "coin": 0} {
		known, failing := 0, 0
		for _, d := range recorder.Of(id, now).Days {
			known += min(d.Checks, 1)
			failing += min(d.Failures, 1)
		}
		if known != uptime.Days-1 || failing != troubled {
			t.Errorf("%s: %d days, %d with failures", id, known, failing)
		}
	}
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	require.NoError(t, WriteHistory(path, now))
	if kept, err := os.ReadFile(path); err != nil || string(kept) != "mine" {
		t.Errorf("%q %v", kept, err)
	}
}

func TestAboutSample(t *testing.T) {
	if err := site.CheckAbout(About); err != nil {
		t.Error(err)
	}
}
