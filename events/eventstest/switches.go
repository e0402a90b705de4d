package eventstest

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// nightly is set by the build tag of that name.
var nightly bool

// RaceDetector reports whether this binary is built with the race detector, which cannot observe
// other processes.
var RaceDetector bool

// FullRun reports whether tests must do all their kills, mutations and rounds: with the build tag nightly, but
// not with the race detector, which finds as much in a few rounds.
func FullRun() bool { return nightly && !RaceDetector }

// Long skips t without the build tag nightly.
func Long(t testing.TB) {
	t.Helper()
	if !nightly {
		t.Skip("left out: a long test, which the build tag nightly runs")
	}
}

// Seed returns the seed of tests that draw without rapid: RAPID_SEED, which .ci/nightly sets and rapid reads, too,
// or else 1.
func Seed() uint64 {
	if seed, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 10, 64); err == nil {
		return seed
	}
	return 1
}

// Address hands out ports from this range. Systems assign free ports from higher ranges, so a program can close
// its port for a while and find it free later.
const (
	firstPort = 20_000
	numPorts  = 10_000
)

// claims are listeners on the UDP ports of the numbers that Address has handed out. They stay open until this
// process ends, so that no other process hands out the same number.
var claims struct {
	sync.Mutex
	open []net.PacketConn
}

// Address returns an unused address of this machine, for a program that cannot report where it listens. Tests of
// another process never get the same address. Any goroutine may call it.
func Address() (string, error) {
	claims.Lock()
	defer claims.Unlock()

	// Processes begin at different places of the range, so that they seldom try the same ports.
	begin := os.Getpid()*101 + len(claims.open)
	for i := range numPorts {
		address := fmt.Sprint("127.0.0.1:", firstPort+(begin+i)%numPorts)
		claim, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			claim.Close()
			continue
		}

		claims.open = append(claims.open, claim)
		return address, l.Close()
	}
	return "", fmt.Errorf("no free port from %d to %d", firstPort, firstPort+numPorts)
}

// Until waits until a condition holds, for at most a minute.
func Until(t rapid.TB, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition never holds")
		}
	}
}

// Leaks ignores the goroutines that NATS leaks on a busy machine, and the workers that bleve starts when a
// program imports it. The client (nats.go 1.55.0) leaks a goroutine that begins only after its ObjectStore.Put
// has ended: it blocks forever on a nil channel. The server (nats-server 2.15.2) leaks two goroutines of a
// stream that is being made when the broker stops. A connection or a broker that is left open has other
// goroutines, which goleak reports.
func Leaks() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"),
		goleak.IgnoreAnyFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"),
	}
}

// Main is the TestMain of a package that prepares something. It calls run, which prepares, calls m.Run and returns
// its status. Main then checks that no goroutine is left, and ends the process.
func Main(m *testing.M, run func(*testing.M) (status int, err error)) {
	flag.Parse()
	status, err := run(m)
	if err == nil {
		err = goleak.Find(Leaks()...)
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}
