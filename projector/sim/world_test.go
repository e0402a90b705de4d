package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// world is everything in one seed: broker, wire, server, twin, and what the judge knows.
type world struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand
	dir    string // of the server's data, and for temporary files
	tally  *tally
	log    eventstest.Log
	began  time.Time // of the day
	render *readmodel.Renderer

	broker broker
	wire   *wire
	server *process // nil while it is stopped

	keys  int // entries of a list that there are
	count int // messages made
	steps int // taken

	mu        sync.Mutex // for what the disk's goroutine reads: broker.js, twin, copied
	twin      *twin
	ledger    ledger
	stored    map[uint64]time.Time // when messages were stored, as long as nothing erases any
	copied    map[uint64]bool      // rejected events that were looked for
	lastSaved uint64               // by the server that is stopped

	bad []string // violations
}

func newWorld(seed uint64, dir string, tally *tally) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	return &world{
		seed: seed, rng: rng, dir: dir, tally: tally, render: readmodel.NewRenderer(),
		broker: broker{dir: filepath.Join(dir, "broker")},
		keys:   4 + rng.IntN(12),
		twin:   newTwin(), ledger: ledger{}, stored: map[uint64]time.Time{}, copied: map[uint64]bool{},
	}
}

// day runs f in a bubble, whose clock begins where that of the day before began: it is set back.
func (w *world) day(t *testing.T, f func()) {
	runtime.GC() // twice: the client library pools timers, and one of another bubble is fatal
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		w.t, w.began = t, time.Now()
		w.wire = newWire(w.rng.Uint64(), w.tally, w.dial)
		clear(w.stored)
		w.startBroker()
		if _, err := w.stream().Info(t.Context()); err != nil {
			w.makeStream("epoch1")
			for range w.rng.IntN(100) {
				w.publish()
			}
			clear(w.stored)
		} else {
			w.tally.hit("clock set back")
		}
		w.start()
		f()
		w.stop(false)
		w.stopBroker()
		time.Sleep(time.Minute) // for what the wire and the broker still hold
	})
}

// stuckAfter bounds the real time of a seed.
const stuckAfter = 3 * time.Minute

// simulate runs the days of one seed, and returns its world. Each is a sequence of steps, until a
// rule is violated.
func simulate(t *testing.T, seed uint64, tally *tally, days ...func(*world)) *world {
	t.Helper()
	base := "/dev/shm" // files in memory, where there is that
	if _, err := os.Stat(base); err != nil {
		base = t.TempDir()
	}
	dir, err := os.MkdirTemp(base, "sim")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	w := newWorld(seed, dir, tally)
	stuck := time.AfterFunc(stuckAfter, func() { // on the real clock
		panic(fmt.Sprintf("seed %d: the bubble's clock stands still: a mutex is held over a wait\n%s", seed, w.tail()))
	})
	defer stuck.Stop()
	for _, day := range days {
		if len(w.bad) == 0 {
			w.day(t, func() { day(w) })
		}
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("seed %d: %v\n%s", w.seed, err, w.tail())
	}
}

func (w *world) say(format string, args ...any) {
	fmt.Fprintf(&w.log, "t=%s SIM %s\n", time.Since(w.began), fmt.Sprintf(format, args...))
}

func (w *world) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.say("VIOLATION %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bad = append(w.bad, text)
}

func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)))
}

func itoa(n int) string { return strconv.Itoa(n) }

// tail is the end of the log.
func (w *world) tail() string {
	s := w.log.String()
	return s[max(0, len(s)-6000):]
}
