package main

import (
	"context"
	"time"

	"example.org/registry/events/broker"
)

// healthEvery is how often the embedded broker is asked for its health.
const healthEvery = time.Second

// healing is what is watched here of the embedded broker.
type healing interface {
	Health() error
	Recover(health error) bool
}

// watchHealth takes note of the embedded broker's health, and has it started anew when its disk has room again, until stop
// is called. A goroutine of its own asks, since the answer may wait for the disk and nobody who wants to know the state
// is to wait for that (promise 5).
func (s *server) watchHealth(b healing) (stop func()) {
	return repeat(healthEvery, func() { s.heal(b) })
}

// repeat calls do now and after every so long again, in a goroutine of its own, until stop is called, which waits for it.
func repeat(every time.Duration, do func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for do(); pauseFor(ctx, every); {
			do()
		}
	}()
	return func() { cancel(); <-done }
}

// heal looks once.
func (s *server) heal(b healing) {
	health := b.Health()
	if health != nil && b.Recover(health) {
		s.log.Info("the embedded broker was started anew, since its disk can be written again")
		health = b.Health()
	}
	s.noteHealth(health)
}

// noteHealth tells the log of a change.
func (s *server) noteHealth(err error) {
	if err == nil {
		s.live.brokerTrouble.Store(nil)
		return
	}
	sentence := unwell(err)
	if was := s.live.brokerTrouble.Swap(&sentence); was == nil || *was != sentence {
		s.log.Error("the embedded broker takes in no events; what it has is served", "error", err, "remedy", remedyFor(err))
	}
}

func unwell(err error) string {
	return "The embedded broker takes in no events: " + err.Error() + "; " + remedyFor(err) + "."
}

func remedyFor(err error) string {
	if broker.Passes(err) {
		return "it does again by itself once its disk has room and can be written"
	}
	return "mend its disk and start registry again"
}

// trouble is what is wrong with the embedded broker; "" when nothing is known to be.
func (l *live) trouble() string {
	if t := l.brokerTrouble.Load(); t != nil {
		return *t
	}
	return ""
}
