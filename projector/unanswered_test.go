package projector

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/eventstest"
)

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

// The client library's words for an unanswered question are no reason that an operator could do anything about.
func TestReason(t *testing.T) {
	other := errors.New("other")
	for in, want := range map[error]error{
		nats.ErrNoResponders: ErrNoJetStream, jetstream.ErrJetStreamNotEnabled: ErrNoJetStream, context.DeadlineExceeded: ErrSilent,
		nats.ErrTimeout: ErrSilent, other: other, nil: nil, errAway: errAway, ErrLeaderless: ErrLeaderless,
	} {
		got := Reason(in)
		if !errors.Is(got, want) || !errors.Is(got, in) || got != nil && got.Error() != want.Error() {
			t.Errorf("%v: %v", in, got)
		}
	}
	_, err := StreamInfo(t.Context(), eventstest.LonelyNode(t, ""), "REGISTRY")
	if unanswered(err) == unanswered(errAway) || strings.Contains(err.Error(), "deadline") {
		t.Errorf("without a leader: %v", err)
	}
}
