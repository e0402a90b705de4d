package projector

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/readmodel"
)

// says waits until lastError has part in it, and the projector is frozen.
func (s *system) says(part string) {
	s.t.Helper()
	s.progress("frozen: "+part, func(p Progress) bool {
		return p.Frozen && strings.Contains(p.LastError, part) && strings.Contains(p.LastError, "accept-stream")
	})
}

// others are n events that no other part of a test has published.
func others(n int) []events.Event {
	evs := eventstest.Events(n, 77)
	for i := range evs {
		evs[i].ID = fmt.Sprint("other-", i)
	}
	return evs
}

// What lastError says of a stream that is gone, and then another one, and then gone again.
func TestReasonAfterRecreation(t *testing.T) {
	s := newSystem(t)
	s.start()
	v := s.reach(s.publish(eventstest.Events(10, 1)...))
	for range 2 {
		require.NoError(t, s.js.DeleteStream(context.Background(), events.DefaultStream))
		s.says("is missing")
		eventstest.Stream(t, s.js)
		s.says("is another one")
	}
	// The stream that is there now has nothing to apply, and yet the model is not complete.
	s.progress("lag grows", func(p Progress) bool { return p.Lag == 0 && p.LastSequence == 0 && p.LagSeconds > 0.5 })
	s.frozen(v.Sequence(), v.Digest().String())
	if n := s.log.count("still frozen, for another reason"); n != 3 {
		t.Errorf("%d log lines about another reason", n)
	}
}

// The stream is shorter, grows, and grows past the checkpoint: lastError follows, the growth alone
// is not logged, and what was seen to be replaced does not thaw by itself any more.
func TestReasonAfterRegrowth(t *testing.T) {
	s := newSystem(t)
	old, full := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "full")
	s.publishAround(old)
	s.start()
	v := s.reach(s.info(events.DefaultStream).State.LastSeq)
	s.restartBroker(func() {
		move(t, s.dir, full)
		move(t, old, s.dir)
	})
	s.says("ends at 20, before the checkpoint 30")
	evs := others(25)
	s.publish(evs[:5]...)
	s.says("ends at 25, before the checkpoint 30. Nothing is applied until the stream is back as it was, which ends this by itself, or until")
	if n := s.log.count("still frozen"); n != 0 {
		t.Errorf("%d log lines about a length", n)
	}
	s.publish(evs[5:]...)
	s.says("holds another message at the checkpoint 30. Nothing is applied until registry recover")
	s.progress("lastSequence beside it", func(p Progress) bool { return p.LastSequence == 45 })
	s.restartBroker(func() {
		remove(t, s.dir)
		move(t, full, s.dir)
	})
	s.says("looks right again. Nothing is applied until registry recover")
	s.frozen(v.Sequence(), v.Digest().String())
	if n := s.log.count("still frozen, for another reason"); n != 2 {
		t.Errorf("%d log lines about another reason", n)
	}
}

// A stream that has regrown without a message at the checkpoint neither thaws nor is called
// shorter; with the message it thaws.
func TestReasonWithoutMessage(t *testing.T) {
	s := newSystem(t)
	old, full := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "full")
	s.publishAround(old)
	s.start()
	v := s.reach(30)
	s.restartBroker(func() {
		move(t, s.dir, full)
		move(t, old, s.dir)
	})
	s.says("ends at 20, before the checkpoint 30")
	stream, err := s.js.Stream(context.Background(), events.DefaultStream)
	require.NoError(t, err)
	// Purged up to a sequence that it has not reached, a stream goes on behind that.
	require.NoError(t, stream.Purge(context.Background(), jetstream.WithPurgeSequence(41)))
	s.publish(others(1)...)
	s.says("no message at the checkpoint 30")
	s.restartBroker(func() {
		remove(t, s.dir)
		move(t, full, s.dir)
	})
	s.progress("thawed", func(p Progress) bool { return !p.Frozen && p.Connected && p.LastError == "" })
	if got := s.model.View(); got.Sequence() != v.Sequence() || got.Digest() != v.Digest() {
		t.Errorf("view after thawing: %d %s", got.Sequence(), got.Digest())
	}
}

// frozen waits until the projector is, and checks that it serves its last good state and says so
// once.
func (s *system) frozen(at uint64, digest string) {
	s.t.Helper()
	s.progress("frozen", func(p Progress) bool { return p.Frozen })
	p := s.p.Progress()
	if !p.CaughtUp || p.Checkpoint != at || !strings.Contains(p.LastError, "accept-stream") {
		s.t.Errorf("progress when frozen: %+v", p)
	}
	if v := s.model.View(); v.Sequence() != at || v.Digest().String() != digest {
		s.t.Errorf("view when frozen: %d %s, before %d %s", v.Sequence(), v.Digest(), at, digest)
	}
	if n := s.log.count("msg=\"frozen"); n != 1 {
		s.t.Errorf("%d log lines about freezing", n)
	}
}

// Another stream of the same name, with fewer messages, as many and more, while the projector runs
// and while it does not: nothing of it is applied.
func TestStreamRecreated(t *testing.T) {
	for _, messages := range []int{0, 5, 10, 30} {
		for _, running := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d of 10, running %v", messages, running), func(t *testing.T) {
				s := newSystem(t)
				s.start()
				v := s.reach(s.publish(eventstest.Events(10, 1)...))
				if !running {
					s.mustStop()
				}
				require.NoError(t, s.js.DeleteStream(context.Background(), events.DefaultStream))
				eventstest.Stream(t, s.js)
				other := eventstest.Events(messages, 99)
				for i := range other {
					other[i].ID = fmt.Sprint("other-", i)
				}
				s.publish(other...)
				if !running {
					s.log = &logBuffer{}
					s.start()
				}
				s.frozen(v.Sequence(), v.Digest().String())
				if messages > 0 {
					s.publish(events.Event{ID: "more", Source: "test", Type: events.TypeListed, Data: eventstest.Entries(1, 98)[0]})
				}
				s.frozen(v.Sequence(), v.Digest().String())
			})
		}
	}
}

// A stream made again with the old one's metadata, past a checkpoint for which the new one
// has no message: while the projector runs, and, frozen before or not, when it starts.
func TestStreamMadeAgainWithItsEpoch(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprint("running ", running), func(t *testing.T) {
			s := newSystem(t)
			s.start()
			v := s.reach(s.publish(eventstest.Events(10, 1)...))
			if !running {
				s.mustStop()
			}
			cfg := s.info(events.DefaultStream).Config
			require.NoError(t, s.js.DeleteStream(t.Context(), events.DefaultStream))
			cfg.FirstSeq = v.Sequence() + 1
			if _, err := s.js.CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			s.publish(others(5)...)
			if running {
				s.says("was made again")
				s.mustStop()
			}
			s.log = &logBuffer{}
			s.start()
			s.says("was made again")
			s.frozen(v.Sequence(), v.Digest().String())
		})
	}
}

// A stream restored into a cluster was made at another time and is the same: the checkpoint's
// message tells.
func TestStreamRestored(t *testing.T) {
	s := newSystem(t)
	s.start()
	s.reach(s.publish(eventstest.Events(10, 1)...))
	s.mustStop()
	s.tune = func(c *Config) { c.Saved.StreamCreated = c.Saved.StreamCreated.Add(-time.Hour) }
	s.start()
	s.reach(s.publish(others(1)...))
	if p := s.p.Progress(); p.Frozen || !p.StreamCreated.Equal(s.info(events.DefaultStream).Created) {
		t.Errorf("progress: %+v", p)
	}
}

// The stream is gone.
func TestStreamMissing(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprint("running ", running), func(t *testing.T) {
			s := newSystem(t)
			s.start()
			v := s.reach(s.publish(eventstest.Events(10, 1)...))
			if !running {
				s.mustStop()
				s.log = &logBuffer{}
			}
			require.NoError(t, s.js.DeleteStream(context.Background(), events.DefaultStream))
			if !running {
				s.start()
			}
			s.frozen(v.Sequence(), v.Digest().String())
			if _, err := s.js.Stream(context.Background(), events.DefaultStream); err == nil {
				t.Error("the stream has been made again")
			}
		})
	}
}

// The broker comes back with an older state of its directory: shorter than the checkpoint. Thaws
// when the right directory is back.
func TestShorterThaws(t *testing.T) {
	s := newSystem(t)
	old, full := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "full")
	s.publishAround(old)
	s.start()
	v := s.reach(s.info(events.DefaultStream).State.LastSeq)
	s.restartBroker(func() {
		move(t, s.dir, full)
		move(t, old, s.dir)
	})
	s.frozen(v.Sequence(), v.Digest().String())
	s.restartBroker(func() {
		remove(t, s.dir)
		move(t, full, s.dir)
	})
	s.progress("thawed", func(p Progress) bool { return !p.Frozen && p.Connected && p.LastError == "" })
	s.reach(s.publish(eventstest.Events(31, 1)[30:]...))
	s.inspect()
}

// publishAround publishes 20 events, keeps a copy of the broker's directory, and publishes 10 more.
func (s *system) publishAround(backup string) {
	s.t.Helper()
	eventstest.Stream(s.t, s.js)
	evs := eventstest.Events(30, 1)
	s.publish(evs[:20]...)
	s.restartBroker(func() {
		require.NoError(s.t, os.CopyFS(backup, os.DirFS(s.dir)))
	})
	s.publish(evs[20:]...)
}

// The stream lost its tail and has grown past the checkpoint since: only the message at the
// checkpoint tells. The projector never applies what was put in the place of what it has.
func TestTailReplaced(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprint("running ", running), func(t *testing.T) {
			s := newSystem(t)
			old := filepath.Join(t.TempDir(), "old")
			s.publishAround(old)
			s.start()
			v := s.reach(s.info(events.DefaultStream).State.LastSeq)
			if !running {
				s.mustStop()
				s.log = &logBuffer{}
			}
			s.restartBroker(func() {
				remove(t, s.dir)
				move(t, old, s.dir)
			})
			other := eventstest.Events(40, 77)
			for i := range other {
				other[i].ID = fmt.Sprint("other-", i)
			}
			s.publish(other...)
			if !running {
				s.start()
			}
			s.frozen(v.Sequence(), v.Digest().String())
		})
	}
}

// The stream lost its tail while nobody looked, has grown past the checkpoint since, and newer
// messages have pushed out the one at the checkpoint: those stored since that lie before it tell.
// Where the checkpoint had been moved over an erased tail, too.
func TestRewoundWhileAway(t *testing.T) {
	for _, erased := range []bool{false, true} {
		t.Run(fmt.Sprint("erased tail ", erased), func(t *testing.T) {
			s := newSystem(t)
			old := filepath.Join(t.TempDir(), "old")
			s.publishAround(old)
			if erased {
				stream, err := s.js.Stream(t.Context(), events.DefaultStream)
				require.NoError(t, err)
				m, err := stream.GetMsg(t.Context(), 30)
				require.NoError(t, err)
				require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(m.Subject)))
			}
			s.start()
			v := s.reach(30)
			s.mustStop()
			if at := s.store.Checkpoint(); at.MessageTime.IsZero() != erased || at.NewestTime.IsZero() {
				t.Fatalf("checkpoint %+v", at)
			}
			s.log = &logBuffer{}
			s.restartBroker(func() {
				remove(t, s.dir)
				move(t, old, s.dir)
			})
			evs := others(10)
			s.publish(evs[:9]...)
			for i := range events.DefaultHistory + 1 {
				evs[9].ID = fmt.Sprint("again-", i)
				s.publish(evs[9])
			}
			s.start()
			s.says("was put back to an older state: message 21, before the checkpoint 30,")
			s.frozen(v.Sequence(), v.Digest().String())
			s.mustStop()
			s.log = &logBuffer{}
			s.start()
			s.says("was put back to an older state")
		})
	}
}

// What is kept of a checkpoint's time is that of the newest message before it, whatever the
// brokers' clocks were.
func TestNewestTime(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0).UTC() }
	var c chunk
	for i, second := range []int64{50, 90, 60, 99} {
		c.messages = append(c.messages, leader.Delivery{Message: leader.Message{Sequence: uint64(i + 1), Time: at(second)}})
	}
	for _, step := range []struct {
		saved  readmodel.Checkpoint
		limit  uint64
		newest time.Time
	}{
		{readmodel.Checkpoint{}, 3, at(90)},
		{readmodel.Checkpoint{}, 4, at(99)},
		{readmodel.Checkpoint{Sequence: 2, NewestTime: at(95)}, 3, at(95)},
		{readmodel.Checkpoint{Sequence: 2, MessageTime: at(90)}, 3, at(150)}, // of a program that did not keep it
	} {
		part := partOf([]*chunk{&c}, step.saved, step.limit)
		if part.at.Sequence != step.limit || !part.at.NewestTime.Equal(step.newest) {
			t.Errorf("from %+v: %+v", step.saved, part.at)
		}
	}
}

// A checkpoint that was moved over an erased tail has no message; that one is there now means that
// the number was given twice.
func TestTailReplacedWhereNoneWas(t *testing.T) {
	s := newSystem(t)
	stream := eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) { c.DenyDelete = false })
	last := s.publish(eventstest.Events(10, 1)...)
	require.NoError(t, stream.DeleteMsg(context.Background(), last))
	s.start()
	s.reach(last)
	s.mustStop()
	at := s.store.Checkpoint()
	if !at.MessageTime.IsZero() || at.MessageID != "" {
		t.Fatalf("checkpoint over an erased tail: %+v", at)
	}
	// The same position in a stream that has a message there.
	at.Sequence--
	p := New(Config{JetStream: s.js, Saved: at, Model: s.model, Store: storeFunc(nil)})
	if err := p.VerifyStream(context.Background()); err == nil || !strings.Contains(err.Error(), "another message") {
		t.Errorf("verify: %v", err)
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.Rename(from, to))
}

func remove(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(dir))
}

// Whatever the headers of the message at the checkpoint are, a restart of the projector or of the
// broker goes on after it: what receives messages and what compares them have one decoder.
func TestAnyMessageAtTheCheckpoint(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	s.start()
	for i, block := range []string{"NATS/1.0\r\nno colon\r\n\r\n", "garbage", "NATS/1.0\r\nStatus: 409\r\n\r\n"} {
		eventstest.DialRaw(t, s.addr).Publish(fmt.Sprint("registry.scammers.poison", i), block, nil)
		s.progress("rejected", func(p Progress) bool { return p.Rejected == uint64(2*i+1) && p.Lag == 0 })
		s.mustStop()
		s.start()
		s.reach(s.publish(eventstest.Events(2, uint64(i))...))
		eventstest.DialRaw(t, s.addr).Publish(fmt.Sprint("registry.scammers.poison", i), block, nil)
		s.progress("rejected again", func(p Progress) bool { return p.Rejected == uint64(2*i+2) && p.Lag == 0 })
		s.restartBroker(nil)
		s.reach(s.publish(eventstest.Events(2, uint64(i+10))...))
	}
	s.inspect()
}
