package projector

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// A message that was erased before it was sent, by a later one on its subject, leaves the model
// without that subject at the end that the stream had at start: it is not served there (promise 7).
func TestCaughtUpLacksNothing(t *testing.T) {
	s := newSystem(t)
	entries := eventstest.Entries(3, 1)
	s.tune = func(c *Config) { c.History = 1 }
	s.start()
	var target uint64
	for _, e := range entries {
		target = s.publish(eventstest.Listed(e, 1))
	}
	s.reach(target)
	s.mustStop()
	last := s.publish(eventstest.Listed(entries[0], 2))

	s.path += ".fresh"
	s.beforeRun = func(p *Projector) {
		p.aim(toStart, time.Now(), target)
		p.Hold(target)
	}
	s.start()
	s.progress("at the end that was", func(p Progress) bool { return p.Applied == 2 && p.LastSequence == last })
	if v := s.model.View(); v.Sequence() != target || s.p.Progress().CaughtUp {
		t.Errorf("caught up at %d: %+v", v.Sequence(), s.p.Progress())
	}
	s.p.Release()
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp })
	if v := s.model.View(); v.Sequence() != last || v.Total() != len(entries) {
		t.Errorf("caught up at %d with %d entries", v.Sequence(), v.Total())
	}
	if p := s.p.Progress(); p.AsOf.IsZero() {
		t.Error("complete, and never known to be")
	}
	s.reach(last)
	s.inspect()
}

// A target that a session reached without knowing what was erased is moved to the stream's end by
// the next one.
func TestCaughtUpInAnotherSession(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	last := s.publish(eventstest.Events(3, 1)...)
	s.beforeRun = func(p *Projector) {
		p.aim(toStart, time.Now(), 0)
		p.Hold(0)
	}
	s.start()
	s.progress("following", func(p Progress) bool { return p.Total == 3 && p.LastSequence == last })
	if s.p.Progress().CaughtUp {
		t.Error("caught up with nothing")
	}
	s.p.Release()
	s.reach(last)
	s.inspect()
}

// The stream itself is asked where it ends: of what the broker counts as pending some may never
// come.
func TestArriveAsksForTheEnd(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	last := s.publish(eventstest.Events(3, 1)...)
	p := New(Config{JetStream: s.js, Model: readmodel.New(), ReadOnly: true})
	p.aim(toStart, time.Now(), last-1)
	away, cancel := context.WithCancel(t.Context())
	cancel()
	p.reachTarget(away, last-1)
	if len(p.restart) != 1 || p.phase != toStart {
		t.Error("arrived without an answer, or the session goes on")
	}
	p.reachTarget(t.Context(), last-1)
	if p.Progress().CaughtUp || p.target != last {
		t.Errorf("caught up before %d, target %d", last, p.target)
	}
	p.reachTarget(t.Context(), last)
	if now := p.Progress(); !now.CaughtUp || now.AsOf.IsZero() {
		t.Errorf("not caught up at the end: %+v", now)
	}
}

// A process ends in its first replay, and the broker comes back from a backup that lacks the last
// messages. The next process shows none of what they said: a store at checkpoint 0 is an empty one
// (promise 1).
func TestUnfinishedReplayLeavesNothing(t *testing.T) {
	s := newSystem(t)
	backup := filepath.Join(t.TempDir(), "backup")
	eventstest.Stream(t, s.js)
	entries := eventstest.Entries(40, 3)
	for i := range entries {
		entries[i].Verified = true // else some of legit are not shown
	}
	list := func(entries []events.Entry) (last uint64) {
		for _, e := range entries {
			last = s.publish(eventstest.Listed(e, 1))
		}
		return last
	}
	list(entries[:20])
	s.restartBroker(func() {
		if err := os.CopyFS(backup, os.DirFS(s.dir)); err != nil {
			t.Fatal(err)
		}
	})
	list(entries[20:30])
	saved := make(chan struct{}, 100)
	s.wrap = func(st Store) Store {
		return storeFunc(func(c readmodel.Commit) error {
			err := st.Save(c)
			if len(c.Records) > 0 {
				saved <- struct{}{}
			}
			return err
		})
	}
	s.tune = func(c *Config) { c.SaveEvery = time.Hour } // one save, at the end
	s.beforeRun = func(p *Projector) { p.Hold(28) }
	s.start()
	s.progress("in the first replay", func(p Progress) bool { return p.Applied == 28 })
	identity := s.p.Progress().StreamIdentity
	s.mustStop()
	<-saved
	s.restartBroker(func() {
		remove(t, s.dir)
		move(t, backup, s.dir)
	})
	s.beforeRun, s.wrap, s.tune = nil, nil, nil
	last := list(entries[30:])
	s.open()
	if at := s.store.Checkpoint(); at.Sequence != 0 || at.StreamEpoch != identity.StreamEpoch || s.model.View().Total() != 0 {
		t.Errorf("opened at %+v with %d entries", at, s.model.View().Total())
	}
	s.nc.Close()
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	s.start()
	v := s.reach(last)
	for i, e := range entries {
		if shown, want := v.Entry(e.List, e.EntryID) != nil, i < 20 || i >= 30; shown != want {
			t.Errorf("entry %d is shown: %v, want %v", i, shown, want)
		}
	}
	s.inspect()
}

// The answer about the stream's end that ends the first catching up is lost, so the next session
// ends it, on a stream that is idle since. The store gets the checkpoint all the same.
func TestCaughtUpInAnotherSessionIsSaved(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	last := s.publish(eventstest.Events(300, 1)...)
	r := s.relay()
	var lose atomic.Bool
	r.Lose(func(m []byte) bool {
		switch {
		case bytes.Contains(m, []byte("$JS.ACK.")): // a delivery
			lose.Store(true)
		case bytes.Contains(m, []byte("consumer_create_response")), bytes.Contains(m, []byte("consumer_delete_response")):
			lose.Store(false) // the session has ended
		}
		return lose.Load() && bytes.Contains(m, []byte("stream_info_response"))
	})
	s.start()
	s.reach(last)
	if got := s.store.Checkpoint().Sequence; got != last {
		t.Errorf("caught up at %d, saved %d", last, got)
	}
	s.inspect()
}
