package projector

import (
	"strings"
	"testing"

	"example.org/registry/events/eventstest"
	"example.org/registry/projector/leader"
	"github.com/nats-io/nats-server/v2/server"
)

// Promise 5: the broker goes away and comes back under a running projector; readers keep the last
// state, and nothing is lost.
func TestBrokerRestart(t *testing.T) {
	s := newSystem(t)
	s.start()
	evs := eventstest.Events(100, 1)
	v := s.reach(s.publish(evs[:20]...))
	for round := range 3 {
		s.restartBroker(func() {
			s.progress("away", func(p Progress) bool { return !p.Connected && strings.Contains(p.LastError, "cannot be reached") })
			if got := s.model.View(); got.Digest() != v.Digest() || !s.p.Progress().CaughtUp {
				t.Error("the last state is not served")
			}
		})
		v = s.reach(s.publish(evs[20*(round+1) : 20*(round+2)]...))
		s.progress("well again", func(p Progress) bool { return p.Connected && p.Lag == 0 && p.LastError == "" })
	}
	s.inspect()
}

// The broker is away at start. A saved state is served after a while, and caught up with later; with
// nothing saved there is nothing to serve (promise 7).
func TestBrokerAwayAtStart(t *testing.T) {
	s := newSystem(t)
	s.start()
	v := s.reach(s.publish(eventstest.Events(20, 1)...))
	s.mustStop()
	s.away()
	s.start()
	if p := s.p.Progress(); p.CaughtUp || p.Checkpoint != v.Sequence() {
		t.Errorf("progress at start: %+v", p)
	}
	s.progress("served from the store", func(p Progress) bool { return p.CaughtUp && !p.Connected })
	if got := s.model.View(); got.Digest() != v.Digest() {
		t.Error("not the saved state")
	}
	if p := s.p.Progress(); !strings.Contains(p.LastError, "cannot be reached") || p.AsOf.IsZero() {
		t.Errorf("progress: %+v", p)
	}
	s.back()
	s.reach(s.publish(eventstest.Events(40, 1)[20:]...))
	s.inspect()
}

func TestBrokerAwayNothingSaved(t *testing.T) {
	s := newSystem(t)
	s.away()
	s.start()
	polls := 0
	s.until("several polls and the time that a saved state is held back", func() bool {
		p := s.p.Progress()
		if p.CaughtUp {
			t.Fatal("nothing is served as if it were the registry")
		}
		if strings.Contains(p.LastError, "cannot be reached") {
			polls++
		}
		return polls > 200
	})
	s.back()
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp && p.Connected && p.LastError == "" })
	s.reach(s.publish(eventstest.Events(5, 1)...))
	s.inspect()
}

// Connections that are cut again and again lose nothing and leave nothing behind.
func TestFlappingConnection(t *testing.T) {
	s := newSystem(t)
	s.start()
	evs := eventstest.Events(200, 1)
	var last uint64
	for i := range 10 {
		s.publish(evs[20*i : 20*i+10]...)
		if err := s.nc.ForceReconnect(); err != nil {
			t.Fatal(err)
		}
		last = s.publish(evs[20*i+10 : 20*i+20]...)
	}
	s.reach(last)
	s.progress("well", func(p Progress) bool { return p.Lag == 0 && p.LastError == "" && p.Checkpoint == last })
	s.inspect()
}

// A broker that is reached and has no JetStream is not called unreachable, and what readers get is not called the last state where
// there is none.
func TestNoJetStream(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer func() { srv.Shutdown(); srv.WaitForShutdown() }()
	s := newSystem(t)
	s.away()
	s.addr = strings.TrimPrefix(srv.ClientURL(), "nats://")
	s.start()
	s.progress("why", func(p Progress) bool {
		return p.LastError == "The broker does not answer about the stream: it has no JetStream, or this user may not use it."
	})
	const said = "broker does not answer about the stream; nothing is saved, so nothing is served until it answers"
	if n := s.log.count(said); n != 1 || s.log.count("the last state is served") != 0 {
		t.Errorf("%d lines", n)
	}
	s.mustStop()
}

// What is said of a broker that is away is what readers get just then.
func TestMeanwhile(t *testing.T) {
	s := newSystem(t)
	s.away()
	s.start()
	s.until("nothing to serve", func() bool {
		return s.log.count("broker cannot be reached; nothing is saved, so nothing is served") == 1
	})
	s.back()
	s.reach(s.publish(eventstest.Events(5, 1)...))
	s.away()
	s.until("the last state", func() bool { return s.log.count("; the last state is served") == 1 })
	s.mustStop()
	s.start()
	s.until("the saved one", func() bool { return s.log.count("; the saved state will be served") == 1 })
	s.progress("served", func(p Progress) bool { return p.CaughtUp })
}

// A node that knows no leader is reached, and does not answer about the stream.
func TestUnanswered(t *testing.T) {
	_, err := leader.Stream{JS: eventstest.LonelyNode(t, ""), Name: "REGISTRY"}.Info(t.Context())
	if unanswered(err) == unanswered(leader.ErrNotConnected) || strings.Contains(err.Error(), "deadline") {
		t.Errorf("without a leader: %v", err)
	}
}
