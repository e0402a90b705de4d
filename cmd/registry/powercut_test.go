//go:build !race

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
)

// TestPowerCut cuts the power at any moment of a run with publishing, a snapshot, a rebuild and a
// stop, and at any moment of the recovery from such a cut. The run is recorded by strace; its replay
// makes the states of the disk that a cut may leave. In each the server starts, nothing that was
// acknowledged is lost, and every answer is right (promises 3 and 4).
func TestPowerCut(t *testing.T) {
	t.Parallel()
	strace := findStrace(t)
	states := 4
	if eventstest.FullRun() {
		states = 16 // in one of five a store without syncs is red
	}
	k := newFailing(t)
	run := k.record(strace, true)
	k.noSyncLoses(run)
	for n := range states {
		t.Run(fmt.Sprint("state", n), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(uint64(n), 38))
			s, bound := k.state(t, run, rng, false, n%3 == 2)
			if n%4 == 3 { // and again while it recovers
				base, err := filesOf(s.data)
				require.NoError(t, err)
				again := s.record(strace, false)
				again.base = base
				s, _ = k.state(t, again, rng, false, n%3 == 2)
				s.acked = k.ackedUpTo(bound)
			}
			s.outlive()
		})
	}
}

// record runs the server on the killer's directory under strace, busy or only until it is ready.
func (k *killer) record(strace string, busy bool) *recording {
	k.t.Helper()
	trace := filepath.Join(k.dir, "trace")
	k.trace(strace, "-y", "-xx", "-s", "20000000", "-o", trace, "-e",
		"trace=openat,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,ftruncate,fallocate,renameat,renameat2,unlinkat,linkat,copy_file_range,sendfile")
	if err := k.WaitReady(k.t.Context()); err != nil {
		k.t.Fatal("nothing recorded: ", err)
	}
	if busy {
		k.feed(150)
		k.post("/snapshots")
		k.feed(50)
		k.post("/rebuild?yes=true")
		k.feed(50)
	}
	k.endTraced()
	text, err := os.ReadFile(trace)
	require.NoError(k.t, err)
	r := &recording{root: k.data}
	if r.calls, err = parseTrace(string(text), r.root); err != nil {
		k.t.Fatal(err)
	}
	return r
}

// state makes a state that a cut may leave, and a killer for it. bound is the last sequence that
// was acknowledged by then.
func (k *killer) state(t *testing.T, r *recording, rng *rand.Rand, noSync, posix bool) (s *killer, bound uint64) {
	t.Helper()
	s = &killer{program: newProgram(t, k.flags[1:]...), rng: rng, pool: k.pool}
	point := len(r.calls)/20 + rng.IntN(len(r.calls)-len(r.calls)/20)
	bound, err := r.cut(point, rng, noSync, posix, s.data)
	require.NoError(t, err)
	s.acked = k.ackedUpTo(bound)
	return s, bound
}

func (k *killer) ackedUpTo(bound uint64) (some []sent) {
	for _, a := range k.acked {
		if a.seq > 0 && a.seq <= bound {
			some = append(some, a)
		}
	}
	return some
}

// outlive starts the server, compares it with the stream, and stops it.
func (k *killer) outlive() {
	k.t.Helper()
	k.start()
	if aside, _ := filepath.Glob(k.storePath() + ".damaged-[0-9]*"); len(aside) > 0 {
		k.t.Errorf("the store was set aside: %v; the log ends:\n%s", aside, k.Tail())
	}
	k.right()
	k.stop()
}

// noSyncLoses shows that the replay can lose events: on a disk that ignores syncs it does.
func (k *killer) noSyncLoses(r *recording) {
	k.t.Helper()
	for n := range 20 {
		s, bound := k.state(k.t, r, rand.New(rand.NewPCG(uint64(n), 1)), true, false)
		if bound == 0 {
			continue // nothing can be lost
		}
		s.launch()
		_ = s.WaitFor(k.t.Context(), "ready", "frozen") // or it has ended
		now, err := s.Projection(k.t.Context())
		lost := s.NATS == "" || err == nil && now.Frozen != nil || len(s.readStream()) < len(s.acked) // the whole stream may be lost
		s.End(os.Kill)
		if lost {
			return
		}
	}
	k.t.Error("a disk that ignores syncs loses nothing: the replay shows nothing")
}
