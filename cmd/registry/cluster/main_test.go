//go:build unix && !race && nightly

package cluster

import (
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events/eventstest"
)

// repeat asks for what takes too long even for .ci/run.
var repeat = flag.Bool("repeat", false, "try each fault as often as deploy/cluster.md reports")

// registry is the path of the built program.
var registry string

// TestMain builds the program once. Started again by a test, the binary is a broker.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == brokerWord {
		os.Exit(beBroker(os.Args[2:]))
	}
	eventstest.Main(m, run)
}

func run(m *testing.M) (status int, err error) {
	if !eventstest.FullRun() && !*repeat {
		if !testing.Verbose() { // then each test says why it is skipped
			err = flag.Set("test.run", "^$") // so that "go test" says that there are no tests to run
		}
		return m.Run(), err
	}
	dir, err := os.MkdirTemp("", "registry-cluster")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if registry, err = registrytest.Build(dir); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// long skips a test unless everything is to be tried.
func long(t *testing.T) {
	t.Helper()
	if !*repeat {
		eventstest.Long(t)
	}
}

// times returns how often a fault is tried: few times on every commit, many with -repeat.
func times(few, many int) int {
	if *repeat {
		return many
	}
	return few
}

// until asks often whether something is so, until it is, and returns how long that took.
func until(t testing.TB, what string, is func() bool) time.Duration {
	t.Helper()
	took, err := registrytest.Await(t.Context(), what, is)
	require.NoError(t, err)
	return took
}

// maxFailures bounds the failures that are printed.
const maxFailures = 40

// report collects what goroutines besides the test's have to say. Any goroutine may use it.
type report struct {
	t        testing.TB
	mu       sync.Mutex
	failures int
}

func newReport(t testing.TB) *report { return &report{t: t} }

// fail reports what must not happen.
func (r *report) fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures++; r.failures <= maxFailures {
		r.t.Errorf(format, args...)
	}
}
