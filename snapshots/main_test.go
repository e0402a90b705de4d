package snapshots

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the child process of the tests that need one to kill or to limit.
func TestMain(m *testing.M) {
	if job := os.Getenv("SNAPSHOTS_CHILD"); job != "" {
		os.Exit(child(job, os.Getenv("SNAPSHOTS_PATH")))
	}
	goleak.VerifyTestMain(m)
}
