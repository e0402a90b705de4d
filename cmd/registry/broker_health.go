package main

import (
	"context"
	"time"
)

// healthEvery is how often the embedded broker is asked for its health.
const healthEvery = time.Second

// healthy is what is watched here of the embedded broker.
type healthy interface{ Health() error }

// watchHealth takes note of the embedded broker's health until stop is called. A goroutine of its own asks, since
// the answer may wait for the disk and nobody who wants to know the state is to wait for that (promise 5).
func (s *server) watchHealth(b healthy) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(healthEvery)
		defer tick.Stop()
		for {
			s.noteHealth(b.Health())
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// noteHealth tells the log of a change.
func (s *server) noteHealth(err error) {
	was := s.live.brokerTrouble.Load()
	switch {
	case err == nil:
		s.live.brokerTrouble.Store(nil)
	case was == nil || *was != unwell(err):
		s.live.brokerTrouble.Store(new(unwell(err)))
		s.log.Error("the embedded broker takes in no events; what it has is served; mend its disk and start registry again", "error", err)
	}
}

func unwell(err error) string {
	return "The embedded broker takes in no events until its disk is mended and registry is started again: " + err.Error() + "."
}

// trouble is what is wrong with the embedded broker; "" when nothing is known to be.
func (l *live) trouble() string {
	if t := l.brokerTrouble.Load(); t != nil {
		return *t
	}
	return ""
}
