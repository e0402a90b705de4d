//go:build unix && !race

package nights

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events/eventstest"
)

var (
	oneNight   = flag.String("night", "", "play this night, as a failure prints it")
	firstNight = flag.Int("night.first", 0, "the first seed; 0: RAPID_SEED, or 1")
	numNights  = flag.Int("night.count", 0, "how many seeds; 0: 30 with the build tag nightly, else 6")
	shrink     = flag.Bool("night.shrink", false, "shorten a night that fails")
	natsServer = flag.String("night.nats", "", "a nats-server, which the servers of every night share then")
	natsNodes  = flag.Int("night.nodes", 1, "how many of -night.nats")
	built      = flag.String("night.program", "", "play with this program instead of building it")
)

// registry is the path of the built program.
var registry string

func TestMain(m *testing.M) {
	eventstest.Main(m, run)
}

func run(m *testing.M) (status int, err error) {
	dir, err := os.MkdirTemp("", "registry-nights")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if registry = *built; registry == "" {
		if registry, err = registrytest.Build(dir); err != nil {
			return 1, err
		}
	}
	return m.Run(), endOutsider()
}

// TestNights plays nights.
func TestNights(t *testing.T) {
	t.Parallel()
	count, first := *numNights, *firstNight
	if count == 0 {
		if count = 6; eventstest.FullRun() {
			count = 30
		}
	}
	if first == 0 {
		first = int(eventstest.Seed())
	}
	if *oneNight != "" {
		p, err := parse(*oneNight)
		if err != nil {
			t.Fatal(err)
		}
		try(t, p)
		return
	}
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			try(t, planOf(seed))
		})
	}
}

// TestFoundNights plays the nights of found.
func TestFoundNights(t *testing.T) {
	t.Parallel()
	for text, why := range found() {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			p, err := parse(text)
			if err != nil {
				t.Fatal(err)
			}
			try(t, p)
		})
	}
}

// found are nights that few seeds draw, with what each is about.
func found() map[string]string {
	return map[string]string{
		"false 1; publish 7 227; purge 27 105; rebuild 42 477":                                                                                                          "a rebuild keeps what the stream lacks",
		"true 1; publish 7 1; publish 7 4; snapshot 0 0; purge 1 3; losedir 0 0":                                                                                        "an empty directory starts from the bucket",
		"true 1; publish 7 1; image 0 0; publish 7 4; stop 0 0; rewind 0 0; publish 7 7; publish 7 10; start 0 0":                                                       "a rewound stream has grown",
		"true 1; publish 7 1; publish 7 4; file 0 0; publish 7 7; publish 7 10; publish 7 13; tombstones 0 0; losestream 0 0; restore 0 0; recover 0 0; tombstones 0 0": "a server knows fewer tombstones than the file",
		"true 1; publish 7 1; image 0 0; publish 7 4; rewind 0 0; publish 7 7; publish 7 10; kill 0 0; start 0 0":                                                       "a restart on a rewound stream that has grown",
		"true 1; publish 7 626; file 12 54; image 2 204; displace 1 942; rewind 58 202":                                                                                 "a rewind loses a repetition only",
		"false 1; publish 7 975; losedir 0 0; displace 71 59; image 20 595":                                                                                             "a stream of rejected events alone",
		"true 1; publish 7 1; image 0 308; publish 14 776; losedir 8 38; publish 1 74; publish 69 25; clone 10 3":                                                       "a copy for tests keeps the stream's epoch",
		"true 1; publish 7 1; image 0 0; publish 7 4; rewind 0 0; displace 0 1; displace 1 1; kill 0 0; start 0 0":                                                      "states are displaced on a rewound stream",
		"true 1; publish 7 1; losestream 0 0; recreate 4 1":                                                                                                             "a stream is adopted with a displaced state",
		"false 1; publish 7 1; file 0 0; publish 7 4; tombstones 0 0; loseall 0 0; recoverfile 0 0":                                                                     "all is lost but a file and the tombstones",
		"false 1; publish 7 1; tombstones 0 0; loseall 0 0; publish 7 4; file 0 0; recoverfile 0 0":                                                                     "tombstones of another history",
	}
}

// try plays a night, and shortens one that fails if that is wanted.
func try(t *testing.T, p plan) {
	t.Helper()
	began := time.Now()
	told, err := play(t.TempDir(), p)
	if err == nil {
		t.Logf("%s: %s", time.Since(began).Round(time.Millisecond), p)
		return
	}
	for i := 0; *shrink && i < len(p.steps); {
		less := plan{p.shared, p.servers, slices.Delete(slices.Clone(p.steps), i, i+1)}
		if tellsLess, fails := play(t.TempDir(), less); fails != nil && !errors.Is(fails, errHarness) {
			p, told, err = less, tellsLess, fails
			continue
		}
		i++
	}
	t.Errorf("%v\n-night=%q\n%s", err, p, strings.Join(told, "\n"))
}
