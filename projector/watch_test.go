package projector

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/readmodel"
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

// The broker is away at start. A saved state is served after a while, and caught up with later;
// with nothing saved there is nothing to serve (promise 7).
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
		require.NoError(t, s.nc.ForceReconnect())
		last = s.publish(evs[20*i+10 : 20*i+20]...)
	}
	s.reach(last)
	s.progress("well", func(p Progress) bool { return p.Lag == 0 && p.LastError == "" && p.Checkpoint == last })
	s.inspect()
}

// A broker that is reached and has no JetStream is not called unreachable, and what readers get is
// not called the last state where there is none.
func TestNoJetStream(t *testing.T) {
	srv := eventstest.Server(t, &server.Options{})
	s := newSystem(t)
	s.away()
	s.addr = strings.TrimPrefix(srv.ClientURL(), "nats://")
	s.start()
	s.progress("why", func(p Progress) bool {
		return p.LastError == "The broker does not answer about the stream: it has no JetStream, or this user may not use it."
	})
	const said = "broker does not answer about the stream; nothing is saved, so nothing is served until it answers"
	if n := s.log.Count(said); n != 1 || s.log.Count("the last state is served") != 0 {
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
		return s.log.Count("broker cannot be reached; nothing is saved, so nothing is served") == 1
	})
	s.back()
	s.reach(s.publish(eventstest.Events(5, 1)...))
	s.away()
	s.until("the last state", func() bool { return s.log.Count("; the last state is served") == 1 })
	s.mustStop()
	s.start()
	s.until("the saved one", func() bool { return s.log.Count("; the saved state will be served") == 1 })
	s.progress("served", func(p Progress) bool { return p.CaughtUp })
}

// A node that knows no leader is reached, and does not answer about the stream.
func TestUnanswered(t *testing.T) {
	_, err := leader.Stream{JS: eventstest.LonelyNode(t, ""), Name: "REGISTRY"}.Info(t.Context())
	if unanswered(err) == unanswered(leader.ErrNotConnected) || strings.Contains(err.Error(), "deadline") {
		t.Errorf("without a leader: %v", err)
	}
}

// isDelivery says whether what a broker sends is a message of a stream, delivered to a consumer.
func isDelivery(message []byte) bool { return bytes.Contains(message, []byte(" $JS.ACK.")) }

// What is lost again and again is asked for again and again, ever more slowly: on a way that is
// slow, and not broken, it comes in the end.
func TestDeliveryLostAgain(t *testing.T) {
	s := newSystem(t)
	r := s.relay()
	s.start()
	s.reach(s.publish(eventstest.Events(3, 1)...))
	var lost atomic.Int32
	r.Lose(func(m []byte) bool { return isDelivery(m) && lost.Add(1) <= 2 })
	began := time.Now()
	s.reach(s.publish(eventstest.Events(4, 2)[3]))
	if took := time.Since(began); lost.Load() != 3 || took < 3*deliverWithin {
		t.Errorf("lost %d times in %v", lost.Load()-1, took)
	}
	s.inspect()
}

// A projector that is held misses nothing behind its bound, and begins no session for it; nor does
// one that has received what it has not applied.
func TestHeldMissesNothing(t *testing.T) {
	s := newSystem(t)
	s.start()
	at := s.reach(s.publish(eventstest.Events(3, 1)...)).Sequence()
	s.p.PauseAt(at)
	next := s.publish(eventstest.Events(4, 2)[3])
	r := s.p.receiving.Load()
	s.until("received", func() bool { return r.received.Load() == next })
	polls := func(limit, received uint64) (atFirst, atSecond uint64) {
		s.p.bound.mu.Lock() // nothing is applied meanwhile
		defer s.p.bound.mu.Unlock()
		s.p.bound.limit.Store(limit)
		defer s.p.bound.limit.Store(at)
		r.received.Store(received)
		w := &watcher{Projector: s.p}
		w.checkDelivery(next)
		atFirst = w.lost
		w.checkDelivery(next)
		return atFirst, w.lost
	}
	for name, c := range map[string]struct{ limit, received, want uint64 }{
		"held, not delivered": {at, at, 0},
		"received":            {next, next, 0},
		"not delivered":       {next, at, next},
	} {
		if first, second := polls(c.limit, c.received); first != 0 || second != c.want {
			t.Errorf("%s: missed %d at the first poll, %d at the second, not %d", name, first, second, c.want)
		}
	}
	s.p.Resume()
	s.reach(next)
	s.inspect()
}

// Registry-As-Of is never later than what the broker said: a last message that was long on its way
// shows that nothing came after it when it was sent, not when it arrived.
func TestAsOfIsNotTheReception(t *testing.T) {
	s := newSystem(t)
	r := s.relay()
	s.start()
	s.reach(s.publish(eventstest.Events(3, 1)...))
	r.Blackhole(true)
	before := s.p.Progress().AsOf
	sent := s.publish(eventstest.Events(4, 2)[3])
	stream, err := s.js.Stream(t.Context(), events.DefaultStream)
	require.NoError(t, err)
	s.until("the broker has sent it", func() bool {
		for c := range stream.ListConsumers(t.Context()).Info() {
			return c.Delivered.Stream == sent
		}
		return false
	})
	s.p.PauseAt(sent)
	next := s.publish(eventstest.Events(5, 2)[4])
	m, err := leader.Stream{JS: s.js, Name: events.DefaultStream}.Message(t.Context(), next)
	require.NoError(t, err)
	r.Blackhole(false)
	s.until("the first is visible", func() bool { return s.model.View().Sequence() == sent })
	s.progress("the second is known of", func(p Progress) bool { return p.LastSequence == next })
	if p := s.p.Progress(); !p.AsOf.Before(m.Time) || p.AsOf.Before(before) {
		t.Errorf("complete as of %v, before %v; an event that is not applied was stored at %v", p.AsOf, before, m.Time)
	}
	s.p.Resume()
	s.reach(next)
	s.progress("As-Of moves on", func(p Progress) bool { return p.AsOf.After(m.Time) })
}

// A saved message from the future proves nothing: the broker's clock may have been set back since.
func TestAsOfAheadOfTheClock(t *testing.T) {
	for ahead, unknown := range map[time.Duration]bool{-time.Hour: false, time.Hour: true} {
		var at readmodel.Checkpoint
		at.Passed([]readmodel.Position{{Sequence: 1, Time: time.Now().Add(ahead)}})
		p := New(Config{Saved: at})
		require.Equal(t, unknown, p.Progress().AsOf.IsZero())
	}
}

// Nor is it later than when the broker was asked, however late the answer comes.
func TestAsOfIsNotTheAnswer(t *testing.T) {
	s := newSystem(t)
	r := s.relay()
	s.start()
	at := s.reach(s.publish(eventstest.Events(3, 1)...)).Sequence()
	s.p.PauseAt(at)
	late, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.Lose(func(m []byte) bool {
		if bytes.Contains(m, []byte("stream_info_response")) && bytes.Contains(m, []byte(`"REGISTRY"`)) {
			once.Do(func() { close(late); <-release })
		}
		return false
	})
	<-late
	next := s.publish(eventstest.Events(4, 2)[3])
	m, err := leader.Stream{JS: s.js, Name: events.DefaultStream}.Message(t.Context(), next)
	close(release)
	require.NoError(t, err)
	s.progress("the event is known of", func(p Progress) bool { return p.LastSequence == next })
	if p := s.p.Progress(); !p.AsOf.Before(m.Time) {
		t.Errorf("complete as of %v; an event that is not applied was stored at %v", p.AsOf, m.Time)
	}
}

// Registry-As-Of moves while events never cease: the model is complete as of a poll once it is
// where the stream ended then.
func TestAsOfMovesUnderLoad(t *testing.T) {
	var tr tracker
	base := time.Unix(1000, 0)
	second := func(n int) time.Time { return base.Add(time.Duration(n) * time.Second) }
	checkpoint := func(seq uint64) time.Time {
		tr.update(func(p *Progress) { p.Checkpoint = seq })
		return tr.status().AsOf
	}
	for n := range 5 {
		tr.ended(uint64(10*n+10), second(n))
	}
	for _, step := range []struct {
		checkpoint uint64
		want       time.Time
	}{{9, time.Time{}}, {10, second(0)}, {35, second(2)}, {49, second(3)}, {50, second(4)}, {60, second(4)}} {
		if got := checkpoint(step.checkpoint); !got.Equal(step.want) {
			t.Errorf("at %d: as of %v, not %v", step.checkpoint, got, step.want)
		}
	}
	// A stream that lost its end goes on from there; and what is remembered has a bound, at which
	// the newest counts.
	tr.ended(80, second(10))
	tr.ended(70, second(11))
	if got := checkpoint(70); !got.Equal(second(11)) {
		t.Errorf("as of %v after the stream lost its end", got)
	}
	for n := range 3 * maxEnds {
		tr.ended(uint64(100+n), second(20+n))
	}
	if got := checkpoint(100 + 3*maxEnds); len(tr.ends) != 0 || !got.Equal(second(20+3*maxEnds-1)) {
		t.Errorf("as of %v, %d ends left", got, len(tr.ends))
	}
	if tr.ended(0, second(1)); !tr.status().AsOf.Equal(second(20 + 3*maxEnds - 1)) {
		t.Error("As-Of went back")
	}
}

// A restart where the broker answers about the stream and makes no consumer: the saved state is
// withheld for StartupTimeout and then served, as when the broker does not answer.
func TestSavedStateWithoutConsumer(t *testing.T) {
	s := newSystem(t)
	stream := eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.MaxConsumers = 1 })
	s.start()
	last := s.publish(eventstest.Events(300, 1)...)
	s.reach(last)
	s.mustStop()
	s.until("the consumer is gone", func() bool { return s.info().State.Consumers == 0 })
	_, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "another"})
	require.NoError(t, err)
	tune := s.tune
	s.tune = func(c *Config) { c.StartupTimeout = time.Hour }
	s.start()
	s.progress("it has tried", func(p Progress) bool { return strings.Contains(p.LastError, "consumers limit") })
	require.False(t, s.p.Progress().CaughtUp)
	s.mustStop()
	s.tune = tune
	s.start()
	s.progress("the saved state is served", func(p Progress) bool { return p.CaughtUp })
	if p := s.p.Progress(); p.Checkpoint != last || p.Frozen() || !strings.Contains(p.LastError, "consumers limit") {
		t.Errorf("progress %+v", p)
	}
	require.NoError(t, stream.DeleteConsumer(t.Context(), "another"))
	s.reach(s.publish(eventstest.Events(301, 1)[300]))
}

// A stream that is another one freezes the projector, also if its broker makes no consumer.
func TestFreezesWithoutConsumer(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	s.start()
	last := s.publish(eventstest.Events(30, 1)...)
	s.reach(last)
	s.mustStop()
	require.NoError(t, s.js.DeleteStream(t.Context(), events.DefaultStream))
	stream := eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.MaxConsumers = 1 })
	_, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "another"})
	require.NoError(t, err)
	s.publish(eventstest.Events(40, 2)...)
	s.start()
	s.progress("frozen", func(p Progress) bool { return p.Frozen() && p.CaughtUp && p.Checkpoint == last })
}

// A message longer than the projector requests at once, in a stream without a limit on a broker that
// takes it, costs one event (promise 8).
func TestLongMessage(t *testing.T) {
	t.Parallel()
	srv := eventstest.Server(t, &server.Options{JetStream: true, StoreDir: t.TempDir(), MaxPayload: 64 << 20, MaxPending: 256 << 20})
	if !srv.ReadyForConnections(patience) {
		t.Fatal("the broker does not start")
	}
	connect := func(options ...nats.Option) jetstream.JetStream {
		nc, err := nats.Connect(srv.ClientURL(), options...)
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		return js
	}
	js := connect()
	eventstest.Stream(t, js, func(c *jetstream.StreamConfig) { c.MaxMsgSize = -1 })
	m := readmodel.New()
	p := New(Config{JetStream: connect(ConnectOptions()...), Model: m, ReadOnly: true})
	running := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { running <- p.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-running)
	}()
	sizes := []int{1 << 20, 8 << 20, 8<<20 + 1, 24 << 20}
	if eventstest.RaceDetector {
		sizes = sizes[:3] // the longest takes a minute of a busy machine
	}
	for _, size := range sizes {
		eventstest.PublishRaw(t, js, "registry.scammers.long", make([]byte, size))
		last := eventstest.Publish(t, js, eventstest.Events(10, uint64(size))...)
		within, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := m.Await(within, last); err != nil {
			t.Fatalf("after a message of %d bytes: %+v", size, p.Progress())
		}
		cancel()
	}
}
