//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == brokerWord {
		os.Exit(beBroker(os.Args[2], os.Args[3], os.Stdin, os.Stderr))
	}
	signal.Ignore(syscall.SIGPIPE) // whoever reads along may leave; what was started is ended all the same
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// config is what the flags say.
type config struct {
	length   time.Duration // of the whole
	every    time.Duration // between two quiet points
	seed     uint64
	rate     int     // events a second
	reads    int     // requests a second
	entries  int     // that there are
	registry string  // the program; empty: it is built
	keep     bool    // leave the directory
	growth   float64 // percent that the heap may grow
}

// errUsage is one that the flag package has printed.
var errUsage = errors.New("usage")

func parse(args []string, stderr io.Writer) (c config, err error) {
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.DurationVar(&c.length, "for", 20*time.Minute, "how long")
	f.DurationVar(&c.every, "every", time.Minute, "time from one quiet point to the next")
	f.Uint64Var(&c.seed, "seed", 0, "of what is drawn; 0: another one each time")
	f.IntVar(&c.rate, "rate", 200, "events a second")
	f.IntVar(&c.reads, "reads", 40, "requests a second")
	f.IntVar(&c.entries, "entries", 5000, "entries on the lists")
	f.StringVar(&c.registry, "registry", "", "the program to try (default: it is built from this module)")
	f.BoolVar(&c.keep, "keep", false, "leave the directory with logs and data where it is")
	f.Float64Var(&c.growth, "growth", 2, "percent that the live heap may grow")
	if err := f.Parse(args); err != nil {
		return c, errors.Join(errUsage, err)
	}
	if c.seed == 0 {
		c.seed = rand.Uint64N(1_000_000)
	}
	if f.NArg() > 0 || c.rate < 1 || c.reads < 1 || c.entries < 100 || c.every < time.Second || c.length < 4*c.every {
		fmt.Fprintln(stderr, "usage: soak [flags]; --rate and --reads are at least 1, --entries 100, --every 1s, --for four times --every")
		return c, errUsage
	}
	return c, nil
}

// run is the whole program; it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	r := &report{out: stdout, times: map[string]int{}}
	if err := soak(ctx, cfg, r); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintln(stderr, "soak:", err)
		return 1
	}
	if n := r.failed(); n > 0 {
		fmt.Fprintf(stderr, "soak: %d failures; run again with --seed %d --keep to see more\n", n, cfg.seed)
		return 1
	}
	return 0
}
