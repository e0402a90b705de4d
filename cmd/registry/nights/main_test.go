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

	"go.uber.org/goleak"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events/eventstest"
)

var (
	oneNight   = flag.String("night", "", "play this night, as a failure prints it")
	firstNight = flag.Int("night.first", 0, "the first seed; 0: RAPID_SEED, or 1")
	numNights  = flag.Int("night.count", 0, "how many seeds; 0: as many as take two minutes, or less without REGISTRY_TESTS=all")
	shrink     = flag.Bool("night.shrink", false, "shorten a night that fails")
	natsServer = flag.String("night.nats", "", "a nats-server for the servers' shared broker; the embedded broker as a library by default")
	natsNodes  = flag.Int("night.nodes", 1, "how many of -night.nats")
	built      = flag.String("night.program", "", "play with this program instead of building it")
)

// registry is the path of the built program.
var registry string

func TestMain(m *testing.M) {
	flag.Parse()
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

// TestNights plays nights. What a fault was found with stays in found.
func TestNights(t *testing.T) {
	count, first := *numNights, *firstNight
	if count == 0 {
		if count = 6; eventstest.FullRun() {
			count = 60
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
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			try(t, planOf(seed))
		})
	}
}

// found are nights that found something once, with what that was.
func found() map[string]string { return nil }

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
