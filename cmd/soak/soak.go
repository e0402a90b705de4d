//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"example.org/registry/events/eventstest/relay"
)

// stage is everything that takes part. Each generator of random numbers is of one goroutine at a time.
type stage struct {
	cfg     config
	report  *report
	dir     string // of everything
	program string // the registry
	began   time.Time

	broker              *node
	toLiving, toUnlucky *relay.Relay
	disk                *disk // nil: none could be mounted
	living, unlucky     *replica
	backend             *backend
	readers             *readers

	deck                                                   []fault // to come
	samples                                                []sample
	faultRNG, killRNG, operatorRNG, hostileRNG, compareRNG *rand.Rand
}

// soak is the whole of it. What must not happen is in the report; an error is why it could not go on.
func soak(ctx context.Context, cfg config, r *report) (err error) {
	dir, err := os.MkdirTemp("", "registry-soak-")
	if err != nil {
		return err
	}
	s := &stage{cfg: cfg, report: r, dir: dir}
	for i, rng := range []**rand.Rand{&s.faultRNG, &s.killRNG, &s.operatorRNG, &s.hostileRNG, &s.compareRNG} {
		*rng = rand.New(rand.NewPCG(cfg.seed, 10+uint64(i)))
	}
	r.say("soak for %s, seed %d, in %s", cfg.length, cfg.seed, dir)
	defer func() { err = errors.Join(err, s.strike()) }()
	if err := s.set(ctx); err != nil {
		return err
	}
	if err := s.play(ctx); err != nil {
		return err
	}
	failures, summary := judge(s.samples, cfg.growth)
	for _, line := range failures {
		r.fail("%s", line)
	}
	r.say("%s\n%s", summary, r.done())
	return nil
}

// set starts everything and publishes the first content.
func (s *stage) set(ctx context.Context) (err error) {
	if s.program, err = program(ctx, s.cfg.registry, s.dir); err != nil {
		return err
	}
	if s.broker, err = newNode(filepath.Join(s.dir, "broker")); err != nil {
		return err
	}
	if err := s.broker.start(ctx); err != nil {
		return err
	}
	if s.toLiving, err = relay.Start(s.broker.addr); err != nil {
		return err
	}
	if s.toUnlucky, err = relay.Start(s.broker.addr); err != nil {
		return err
	}
	if s.disk, err = mountDisk(filepath.Join(s.dir, "living")); err != nil {
		return err
	}
	if s.disk == nil {
		s.report.say("no disk is filled: only root may mount one, on Linux")
	}
	return s.cast(ctx)
}

// cast starts the replicas, around the first content.
func (s *stage) cast(ctx context.Context) (err error) {
	s.living = newReplica("living", s.program, s.dir, s.toLiving.Addr(), s.report, "--snapshot-every=20s")
	s.unlucky = newReplica("unlucky", s.program, s.dir, s.toUnlucky.Addr(), s.report, "--snapshot-every=20s")
	if err := s.living.start(); err != nil {
		return err
	}
	if err := s.living.serving(ctx); err != nil { // it makes the stream
		return err
	}
	if s.backend, err = newBackend(s.broker.addr, s.cfg, s.report); err != nil {
		return err
	}
	if err := s.backend.seed(ctx); err != nil {
		return err
	}
	s.readers = newReaders(s.backend, s.living.HTTP, s.report)
	return s.unlucky.start()
}

// program is the registry's, built where none is given.
func program(ctx context.Context, given, dir string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	binary := filepath.Join(dir, "registry")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "example.org/registry/cmd/registry").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return binary, nil
}

// strike ends everything that was started, in the reverse order.
func (s *stage) strike() (err error) {
	for _, r := range []*replica{s.unlucky, s.living} {
		if r != nil && r.process != nil {
			err = errors.Join(err, s.farewell(r))
		}
	}
	if s.backend != nil {
		s.backend.nc.Close()
	}
	for _, r := range []*relay.Relay{s.toUnlucky, s.toLiving} {
		if r != nil {
			r.Close()
		}
	}
	if s.broker != nil {
		s.broker.kill()
	}
	if s.cfg.keep {
		s.report.say("everything is left in %s", s.dir)
		return err
	}
	if s.disk != nil {
		err = errors.Join(err, s.disk.unmount())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// farewell stops a replica, which must end with status 0.
func (s *stage) farewell(r *replica) error {
	if _, over := r.process.over(); over {
		return nil // that has been said
	}
	r.process.signal(syscall.SIGCONT)
	r.process.end(syscall.SIGTERM)
	if status := r.process.cmd.ProcessState.ExitCode(); status != 0 {
		return fmt.Errorf("the %s replica ended with status %d; its log ends:\n%s", r.name, status, r.tail())
	}
	return nil
}
