package projector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/readmodel"
)

// faulty fails some Saves: each fails twice, once lost, once kept although it reported failure.
type faulty struct {
	Store
	mu    sync.Mutex
	calls int
	fail  func(call int) (fail, kept bool)
}

var errFault = errors.New("fsync: input/output error")

func (f *faulty) Save(c readmodel.Commit) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	fail, kept := f.fail(f.calls)
	if fail && !kept {
		return errFault
	}
	if err := f.Store.Save(c); err != nil {
		return err
	}
	if fail {
		return errFault
	}
	return nil
}

// The table of faults: the n-th Save fails, lost or kept. What is saved in the end is promise 4.
func TestSaveFaults(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprintf("save %d, kept %v", n, kept), func(t *testing.T) {
				s := newSystem(t)
				s.wrap = func(st Store) Store {
					return &faulty{Store: st, fail: func(call int) (bool, bool) { return call == n || call == n+1, kept }}
				}
				s.start()
				var last uint64
				for part := range 5 {
					last = s.publish(changes(20, uint64(100*n+part))...)
					s.until("visible", func() bool { return s.model.View().Sequence() >= last })
				}
				s.reach(last)
				s.progress("well again", func(p Progress) bool { return p.LastError == "" && p.Saved == last })
				s.inspect()
			})
		}
	}
}

// While the store fails, events are applied and served; it is said once; and when it works again
// everything is saved.
func TestStoreAway(t *testing.T) {
	s := newSystem(t)
	var mu sync.Mutex
	broken := true
	s.wrap = func(st Store) Store {
		return &faulty{Store: st, fail: func(int) (bool, bool) { mu.Lock(); defer mu.Unlock(); return broken, false }}
	}
	s.start()
	evs := eventstest.Events(60, 1)
	var last uint64
	for part := range 3 {
		last = s.publish(evs[20*part : 20*part+20]...)
		s.until("visible", func() bool { return s.model.View().Sequence() >= last })
	}
	s.progress("said", func(p Progress) bool { return strings.Contains(p.LastError, "store cannot be written") && p.Saved == 0 })
	mu.Lock()
	broken = false
	mu.Unlock()
	s.reach(last)
	s.progress("well again", func(p Progress) bool { return p.LastError == "" })
	if n := s.log.Count("store cannot be written"); n != 1 {
		t.Errorf("%d log lines", n)
	}
	s.inspect()
}

// What a checkpoint passes is handed over with it or before it: rejections, records and what is to be
// erased. A store with a digest that is not the one of its records does not load.
func TestNothingIsSavedAhead(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js)
	s.publish(eventstest.Events(30, 1)...)
	bad := eventstest.PublishRaw(t, s.js, "registry.scammers.bad", []byte("{")) // the last one: the end is reached with it
	rejecting := false
	s.tune = func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
			if bytes.Contains(line, []byte("event rejected")) { // the session waits for this
				s.p.saver.mu.Lock()
				defer s.p.saver.mu.Unlock()
				if rejecting = true; s.p.saver.reached >= bad {
					t.Error("the event at the checkpoint is only being rejected")
				}
			}
			return s.log.Write(line)
		}), nil))
	}
	s.start()
	s.reach(bad)
	require.True(t, rejecting)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// A store that fails to the end: the next process reads the rest from the stream again.
func TestStoreAwayAtStop(t *testing.T) {
	s := newSystem(t)
	s.wrap = func(st Store) Store {
		return &faulty{Store: st, fail: func(call int) (bool, bool) { return call > 1, false }}
	}
	s.start()
	s.until("one save", func() bool { return s.p.Progress().CaughtUp })
	last := s.publish(eventstest.Events(30, 1)...)
	s.until("visible", func() bool { return s.model.View().Sequence() >= last })
	s.mustStop()
	s.wrap = nil
	s.start()
	s.reach(last)
	s.inspect()
}

// Too much waiting for the store stops applying instead of growing without bound.
func TestBacklogIsBounded(t *testing.T) {
	st := &tracker{}
	st.update(func(*Progress) {})
	blocked := make(chan struct{})
	cfg := Config{Store: storeFunc(func(readmodel.Commit) error { <-blocked; return nil })}.withDefaults()
	log := cfg.Logger
	s := newSaver(cfg, st, newRejecter(cfg, leader.Stream{}, st, log), log)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { s.run(ctx) })
	records := make([]readmodel.Record, maxWaiting+1)
	for i := range records {
		records[i] = readmodel.Record{Subject: events.Subject{Kind: events.KindViews, ID: fmt.Sprint(i)}}
	}
	added := make(chan error)
	running.Go(func() { added <- s.add(ctx, 1, readmodel.Commit{Records: records}, false) })
	for !strings.Contains(st.read(time.Now()).LastError, "Too much") {
		select {
		case err := <-added:
			t.Fatalf("add did not wait: %v", err)
		default:
		}
	}
	close(blocked)
	require.NoError(t, <-added)
	if got := st.read(time.Now()); strings.Contains(got.LastError, "Too much") {
		t.Errorf("still said: %q", got.LastError)
	}
}

// What waits is saved before it takes much memory, however few records it is; so is what could not
// be saved.
func TestSaveIsBounded(t *testing.T) {
	fail := true
	cfg := Config{SaveEvery: time.Hour, Store: storeFunc(func(readmodel.Commit) error {
		if fail {
			return errFault
		}
		return nil
	})}.withDefaults()
	st := &tracker{}
	st.update(func(*Progress) {})
	s := newSaver(cfg, st, newRejecter(cfg, leader.Stream{}, st, cfg.Logger), cfg.Logger)
	record := readmodel.NewRenderer().Render(1, events.Entry{List: events.Scammers, Reason: strings.Repeat("<", events.MaxReason)})
	add := func(id int, due bool) {
		t.Helper()
		record.Subject.ID = fmt.Sprint(id)
		require.NoError(t, s.add(t.Context(), 1, readmodel.Commit{Records: []readmodel.Record{record}}, true))
		in, _ := s.due()
		require.Equal(t, due, in == 0, "record %d of %d bytes", id, record.ValueSize())
	}
	fits := (maxSaveBytes - 1) / record.ValueSize()
	for range 3 { // the same subjects take no more
		for id := range fits {
			add(id, false)
		}
	}
	add(fits, true)
	require.False(t, s.save(t.Context()))
	add(0, true)
	fail = false
	require.True(t, s.save(t.Context()))
	add(0, false)
}

// Flush waits for nothing but the disk: here the store would have been written an hour later.
func TestFlush(t *testing.T) {
	s := newSystem(t)
	s.tune = func(c *Config) { c.SaveEvery = time.Hour }
	s.start()
	v, err := s.model.Await(t.Context(), s.publish(eventstest.Events(10, 1)...))
	require.NoError(t, err)
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, s.p.Flush(ctx))
	if got := s.store.Checkpoint().Sequence; got < v.Sequence() {
		t.Errorf("store at %d after Flush, model at %d", got, v.Sequence())
	}
}

// A batch that has been seen in the model is in the store after Flush, also at the moment when
// the projector's checkpoint has not moved yet.
func TestFlushBetweenModelAndCheckpoint(t *testing.T) {
	s := newSystem(t)
	s.start()
	_, err := s.model.Await(t.Context(), s.publish(eventstest.Events(10, 1)...))
	require.NoError(t, err)
	s.progress("compared", func(p Progress) bool { return p.CaughtUp && p.Compared }) // then the session saves nothing by itself
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, s.p.Flush(ctx))
	flushed := make(chan error, 1)
	s.p.withModel(func(m *readmodel.Model) { // as applyPart does
		at := s.p.Checkpoint()
		at.Sequence++
		m.Apply(nil, at.Sequence)
		go func() { flushed <- s.p.Flush(ctx) }()
		select {
		case err := <-flushed:
			t.Errorf("Flush returned before the checkpoint had moved (%v)", err)
			flushed <- err
		case <-time.After(100 * time.Millisecond):
		}
		s.p.setCheckpoint(at)
	})
	require.NoError(t, s.p.save(ctx, nil))
	require.NoError(t, <-flushed)
}

// A store that fails makes Flush fail, instead of waiting for its recovery.
func TestFlushFails(t *testing.T) {
	s := newSystem(t)
	s.tune = func(c *Config) { c.SaveEvery = time.Hour }
	s.wrap = func(st Store) Store {
		return &faulty{Store: st, fail: func(int) (bool, bool) { return true, false }}
	}
	s.start()
	_, err := s.model.Await(t.Context(), s.publish(eventstest.Events(10, 1)...))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.p.Flush(ctx); !errors.Is(err, errFault) {
		t.Errorf("Flush: %v", err)
	}
}
