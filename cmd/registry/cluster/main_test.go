//go:build !race

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.org/registry/events/eventstest"
)

// patience bounds every wait; nothing is expected to take this long.
const patience = 90 * time.Second

// nodeVariable, when set, is the configuration file of the node that this process is to be.
const nodeVariable = "REGISTRY_TEST_NODE"

// registry is the built program.
var registry string

// TestMain builds the program once, or is a node.
func TestMain(m *testing.M) {
	if file := os.Getenv(nodeVariable); file != "" {
		beNode(file)
	}
	status, err := run(m)
	if err == nil {
		err = goleak.Find(eventstest.ClientLeak())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(status)
}

func run(m *testing.M) (status int, err error) {
	dir, err := os.MkdirTemp("", "registry-cluster")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	registry = filepath.Join(dir, "registry")
	if out, err := exec.Command("go", "build", "-o", registry, "example.org/registry/cmd/registry").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("go build: %w: %s", err, out)
	}
	return m.Run(), nil
}

// times is how often a fault is tried: few for every commit, many when asked for.
func times(few, many int) int {
	if os.Getenv("REGISTRY_CLUSTER") == "full" {
		return many
	}
	return few
}

// until waits for a condition. It asks often enough for the times that are logged.
func until(t testing.TB, what string, is func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for tick := time.NewTicker(20 * time.Millisecond); !is(); <-tick.C {
		if time.Since(began) > patience {
			t.Fatalf("never: %s", what)
		}
	}
	return time.Since(began)
}
