package main

import (
	"context"
	"fmt"
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

// TestRebuildUnderLoad: while events arrive and readers ask, the model is rebuilt and verified again and
// again. No request fails, no reader sees the sequence go back, and in the end the content is the same
// as after a replay.
func TestRebuildUnderLoad(t *testing.T) {
	t.Parallel()
	s := startProgram(t)
	s.fill(3000, 11)
	stop, cancel := context.WithCancel(t.Context())
	// One reader: several wait for each other on a busy machine, and may be turned away.
	_, end := registrytest.StartReaders(t, s.HTTP, 1)
	var running sync.WaitGroup
	var last uint64
	running.Go(func() { last = s.views(stop, eventstest.Entries(200, 12)) })
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
