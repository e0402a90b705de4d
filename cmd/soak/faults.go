//go:build unix

package main

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"

	"example.org/registry/events/eventstest/relay"
)

// fault is something that happens to the broker, the network, the disk or the living replica, and is over when it
// returns. Once begun it is undone whatever ctx says; an error ends the soak.
type fault struct {
	name string
	do   func(ctx context.Context, rng *rand.Rand) error
}

func (s *stage) faults() []fault {
	all := []fault{
		{"broker killed", s.brokerKilled}, {"broker restarted", s.brokerRestarted}, {"broker stopped", s.brokerStopped},
		{"network away", s.networkAway}, {"network flapping", s.networkFlapping}, {"network a black hole", s.networkHole},
		{"replica stopped", s.replicaStopped},
	}
	if s.disk != nil {
		all = append(all, fault{"disk full", s.diskFull})
	}
	return all
}

// misfortunes does one after the other until ctx ends. Each has had its turn before one has a second.
func (s *stage) misfortunes(ctx context.Context) error {
	for pause(ctx, between(s.faultRNG, 300*time.Millisecond, 2*time.Second)) {
		if len(s.deck) == 0 {
			s.deck = s.faults()
			s.faultRNG.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
		}
		f := take(&s.deck, 0)
		if err := f.do(ctx, s.faultRNG); err != nil {
			return err
		}
		s.report.count(f.name)
	}
	return nil
}

func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

func (s *stage) brokerKilled(ctx context.Context, rng *rand.Rand) error {
	s.broker.kill()
	pause(ctx, between(rng, 0, 3*time.Second))
	return s.broker.start(context.WithoutCancel(ctx))
}

func (s *stage) brokerRestarted(ctx context.Context, _ *rand.Rand) error {
	s.broker.stop()
	return s.broker.start(context.WithoutCancel(ctx))
}

func (s *stage) brokerStopped(ctx context.Context, rng *rand.Rand) error {
	s.broker.process.signal(syscall.SIGSTOP)
	pause(ctx, between(rng, 500*time.Millisecond, 7*time.Second))
	s.broker.process.signal(syscall.SIGCONT)
	return nil
}

func (s *stage) networkAway(ctx context.Context, rng *rand.Rand) error {
	return s.cutOff(ctx, rng, (*relay.Relay).Away)
}

func (s *stage) networkHole(ctx context.Context, rng *rand.Rand) error {
	return s.cutOff(ctx, rng, (*relay.Relay).Blackhole)
}

// cutOff takes the broker from the living replica, and now and then from the other one, for less or for more than the
// 4 to 6 s in which signs of life are missed.
func (s *stage) cutOff(ctx context.Context, rng *rand.Rand, set func(*relay.Relay, bool)) error {
	set(s.toLiving, true)
	set(s.toUnlucky, rng.IntN(2) == 0)
	pause(ctx, between(rng, time.Second, 9*time.Second))
	set(s.toLiving, false)
	set(s.toUnlucky, false)
	return nil
}

func (s *stage) networkFlapping(ctx context.Context, rng *rand.Rand) error {
	for range 5 + rng.IntN(15) {
		s.toLiving.Away(true)
		pause(ctx, between(rng, 10*time.Millisecond, 100*time.Millisecond))
		s.toLiving.Away(false)
		if !pause(ctx, between(rng, 50*time.Millisecond, 500*time.Millisecond)) {
			return nil
		}
	}
	return nil
}

func (s *stage) replicaStopped(ctx context.Context, rng *rand.Rand) error {
	s.living.process.signal(syscall.SIGSTOP)
	pause(ctx, between(rng, 200*time.Millisecond, 3*time.Second))
	s.living.process.signal(syscall.SIGCONT)
	return nil
}

// diskFull leaves the living replica's data directory without room, until it has said so where there is time.
func (s *stage) diskFull(ctx context.Context, rng *rand.Rand) error {
	if err := s.disk.fill(); err != nil {
		return err
	}
	if pause(ctx, between(rng, time.Second, 4*time.Second)) {
		if p, err := s.living.projection(ctx); err == nil && p.LastError != nil {
			s.report.count("disk full and said")
		}
	}
	return s.disk.free()
}
