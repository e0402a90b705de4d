package eventstest

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// all reports whether everything is to be tried: REGISTRY_TESTS=all, which .ci/run sets.
func all() bool { return os.Getenv("REGISTRY_TESTS") == "all" }

// Full reports whether a test whose counts (kills, mutations, rounds) make it long must take its
// full counts: REGISTRY_TESTS=all, and no race detector, which finds as much in a few rounds.
func Full() bool { return all() && !RaceDetector }

// Long skips t unless everything is to be tried, and says what brings it back.
func Long(t testing.TB) {
	t.Helper()
	if !all() {
		t.Skip("left out: a long test, which REGISTRY_TESTS=all runs")
	}
}

// The ports that Address hands out lie below those that systems assign by themselves: a program may
// give its port up for a while and finds it free when it comes back.
const (
	firstPort = 20_000
	numPorts  = 10_000
)

// handedOut counts the ports of this process: tests that run side by side share the machine's.
var handedOut atomic.Uint32

// Address returns an address of this machine on which nobody listens, for a program that cannot
// tell where it listens. A process gets each once; processes begin at different ones. Any goroutine
// may call it.
func Address() (string, error) {
	for range numPorts {
		port := firstPort + (uint32(os.Getpid())*101+handedOut.Add(1))%numPorts
		address := fmt.Sprint("127.0.0.1:", port)
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", fmt.Errorf("no free port from %d to %d", firstPort, firstPort+numPorts)
}

// ClientLeak ignores a goroutine that the client library leaks: when an ObjectStore.Put ends before
// this goroutine has begun, it blocks forever on a nil channel (nats.go 1.55.0; seen once, on a
// busy machine). A connection that is left open has other goroutines, which show.
func ClientLeak() goleak.Option {
	return goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
}
