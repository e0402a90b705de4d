package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// views publishes view totals and amendments, with the server's acknowledgment of each, until stop
// ends.
func (p *program) views(stop context.Context, pool []events.Entry) (last uint64) {
	publisher := p.publisher()
	for n := 0; stop.Err() == nil; n++ {
		e := pool[n%len(pool)]
		event := events.Event{ID: fmt.Sprint("load-", n), Source: "/load", Type: events.TypeViewsCounted,
			Data: events.Views{Revision: 1, List: e.List, EntryID: e.EntryID, Views: int64(n)}}
		if n%10 == 0 {
			e.Name = fmt.Sprint("Jan ", n)
			event.Type, event.Data = events.TypeAmended, e
		}
		event.Data = events.Revised(event.Data, time.Now().UnixMilli()+int64(n)) // above those of an earlier run
		ack, err := publisher.Publish(context.Background(), event)
		if err != nil {
			p.t.Errorf("publish: %v", err)
			return last
		}
		last = ack.Sequence
	}
	return last
}

// The rapid twin of rebuilds: while events arrive and readers ask, the model is rebuilt and
// verified again and again. No request fails, no reader sees the sequence go back (promise 3), a
// reader that waits for its own event gets it, and in the end the content is that of a replay
// (promises 1 and 4).
func TestRebuildUnderLoad(t *testing.T) {
	t.Parallel()
	s := startProgram(t)
	s.fill(3000, 11)
	stop, cancel := context.WithCancel(t.Context())
	_, end := registrytest.Reading(t, s.HTTP, 4)
	var running sync.WaitGroup
	var last uint64
	running.Go(func() { last = s.views(stop, eventstest.Entries(200, 12)) })
	running.Go(func() { s.waiter(stop) })
	rounds := 2
	if eventstest.FullRun() {
		rounds = 4
	}
	for range rounds {
		if out, err := s.try("rebuild"); err != nil {
			t.Errorf("rebuild: %v %s", err, out)
		}
		if out, err := s.try("verify", "--nats-url="+s.NATS); err != nil {
			t.Errorf("verify: %v %s", err, out)
		}
	}
	cancel()
	running.Wait()
	end()
	s.applied(last)
	if out, err := s.try("verify", "--nats-url="+s.NATS); err != nil {
		t.Errorf("verify: %v %s", err, out)
	}
	before := s.projection()
	s.stop()
	s.start()
	if after := s.projection(); after.Digest != before.Digest || after.Checkpoint != before.Checkpoint {
		t.Errorf("after a restart %d %s, before %d %s", after.Checkpoint, after.Digest, before.Checkpoint, before.Digest)
	}
}

// waiter asks for what is a little ahead of the server: answers of at least that state, over
// rebuilds too.
func (p *program) waiter(stop context.Context) {
	for stop.Err() == nil {
		want := p.projection().Checkpoint + 20
		a, err := registrytest.Ask(context.WithoutCancel(stop), p.HTTP+"/api/scammers?limit=1", http.Header{"Registry-Min-Sequence": {strconv.FormatUint(want, 10)}})
		seq, _ := strconv.ParseUint(a.Header.Get("Registry-Sequence"), 10, 64)
		if err != nil || a.Status == http.StatusOK && seq < want {
			p.t.Errorf("answer at %d where at least %d was asked for: %v", seq, want, err)
			return
		}
	}
}

// Who hangs up gives the rebuild up: the old model stays, nothing of the new one is left, and the
// next rebuild is not in its way.
func TestRebuildInterrupted(t *testing.T) {
	t.Parallel()
	s := startProgram(t)
	s.fill(5000, 14)
	before := s.projection()
	interrupted := false
	for range 30 { // a rebuild may be faster than the test
		ctx, cancel := context.WithCancel(t.Context())
		done := s.background(ctx, "rebuild")
		s.until("a change of the rebuild or the stream", func() bool { return s.projection().Rebuilding != nil || len(done) > 0 })
		cancel()
		err := <-done
		s.until("the server has ended it, too", func() bool { return s.projection().Rebuilding == nil })
		if interrupted = err != nil && strings.Contains(err.Error(), "interrupted"); interrupted {
			break
		}
	}
	if !interrupted {
		t.Fatal("no rebuild could be interrupted")
	}
	left, _ := filepath.Glob(filepath.Join(s.data, "registry.db.rebuilding*"))
	if after := s.projection(); after.Digest != before.Digest || len(left) > 0 {
		t.Errorf("after the interruption %s, before %s, left %v", after.Digest, before.Digest, left)
	}
	var out string
	var err error
	s.until("the interrupted rebuild has ended", func() bool {
		out, err = s.try("rebuild")
		return err == nil || !strings.Contains(err.Error(), "another rebuild is under way")
	})
	if err != nil {
		t.Errorf("the next rebuild: %v %s", err, out)
	}
}
