package sim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"

	"example.org/registry/events/eventstest"
)

var (
	simFor  = flag.Duration("sim", 0, "run new seeds for so long, instead of the first twenty")
	simSeed = flag.Uint64("sim.seed", 0, "the first seed; 0: 1, or with -sim one of the clock's")
	simLog  = flag.Bool("sim.log", false, "print what happened in each seed")
)

func TestMain(m *testing.M) {
	flag.Parse()
	ats.Register() // its goroutine waits on a channel made outside: begun in a bubble, it would stop the clock
	os.Exit(m.Run())
}

// seeds is how many seeds each go test runs, and stepsPerSeed how long one is.
const (
	seeds        = 20
	raceSeeds    = 5 // with the race detector, which takes five times as long
	stepsPerSeed = 40
)

// found are seeds that found something once, with what that was.
func found() map[uint64]string {
	return map[uint64]string{
		24: "with unfinished-replay taken out: what a first replay that did not end had saved was shown",
		28: "with a first replay called complete from its beginning: a start served a part of it",
		10: "subjects that were back were called lost for minutes, since a scan that was not answered counted as long work",
	}
}

// TestSimulation runs seeds, and demands that each fault came about.
func TestSimulation(t *testing.T) {
	began, tally, steps, ran := time.Now(), newTally(), 0, 0
	run := func(seed uint64) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := simulate(t, seed, tally, plan(seed)...)
			ran, steps = ran+1, steps+w.steps
			if *simLog {
				t.Log("\n" + w.log.String())
			}
			if len(w.bad) > 0 {
				t.Fatalf("FOUND seed %d after %s: %s\n%s", seed, time.Since(began).Round(time.Millisecond), w.bad[0], w.tail())
			}
		})
	}
	first := max(*simSeed, 1)
	if *simFor > 0 {
		if *simSeed == 0 {
			first = uint64(time.Now().Unix())
		}
		for seed := first; (seed < first+seeds || time.Since(began) < *simFor) && !t.Failed(); seed++ {
			run(seed)
		}
	} else {
		all := slices.Collect(maps.Keys(found()))
		for seed := first; seed < first+seeds && !(eventstest.RaceDetector && seed > first+raceSeeds); seed++ {
			all = append(all, seed)
		}
		slices.Sort(all)
		for _, seed := range slices.Compact(all) {
			run(seed)
		}
		// Seeds are fixed, and the order of goroutines is not: what a busy machine kept away comes in others.
		for seed := first + seeds; seed < first+2*seeds && ran >= seeds && len(tally.missing()) > 0 && !t.Failed(); seed++ {
			run(seed)
		}
	}
	if missing := tally.missing(); len(missing) > 0 && !t.Failed() && ran >= seeds { // the race detector and -run want fewer
		t.Errorf("never came about: %q", missing)
	}
	took := time.Since(began)
	t.Logf("%d steps in %s, %.0f a minute%s", steps, took.Round(time.Millisecond), float64(steps)/took.Minutes(), tally)
}

// plan is what happens in a seed: random steps with two scenarios among them, for a day or two.
func plan(seed uint64) []func(*world) {
	all := scenarios()
	day := func(w *world) {
		at := map[int]scenario{}
		for n := range uint64(2) {
			at[w.rng.IntN(stepsPerSeed)] = all[(2*seed+n)%uint64(len(all))]
		}
		for i := range stepsPerSeed {
			if s, ok := at[i]; ok {
				w.settle()
				w.say("scenario %s", s.name)
				if len(w.bad) == 0 {
					s.run(w)
				}
			}
			if len(w.bad) > 0 {
				return
			}
			w.step()
		}
		if len(w.bad) == 0 {
			w.settle()
		}
	}
	then := func(a, b func(*world)) func(*world) {
		return func(w *world) {
			if a(w); len(w.bad) == 0 {
				b(w)
			}
		}
	}
	if seed%5 == 0 {
		return []func(*world){then(day, (*world).evening), then((*world).morning, day)}
	}
	return []func(*world){day}
}
