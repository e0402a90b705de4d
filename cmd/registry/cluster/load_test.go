//go:build !race

package cluster

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// writer publishes states of some entries over and over, each until it is acknowledged, as a backend must.
type writer struct {
	publisher *events.Publisher
	entries   []events.Entry
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu      sync.Mutex
	acked   map[string]string // reason by entry, of the last event that was acknowledged
	last    uint64            // its sequence
	count   int
	retried int
}

// writing starts a writer that the test ends with end.
func writing(t *testing.T, js jetstream.JetStream) *writer {
	ctx, cancel := context.WithCancel(context.Background())
	w := &writer{
		publisher: events.NewPublisher(js, events.PublisherConfig{Stream: events.DefaultStream, Timeout: 2 * time.Second}),
		entries:   eventstest.Entries(300, 6), stop: cancel, acked: map[string]string{},
	}
	w.running.Go(func() { w.run(ctx) })
	t.Cleanup(w.end)
	return w
}

func (w *writer) run(ctx context.Context) {
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for version := 0; ctx.Err() == nil; version++ {
		e := w.entries[version%len(w.entries)]
		e.Reason = fmt.Sprint("state ", version)
		w.publish(ctx, eventstest.Listed(e, version), e)
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
}

// publish sends one event until it is acknowledged. An end in between leaves the entry unknown.
func (w *writer) publish(ctx context.Context, event events.Event, e events.Entry) {
	for {
		ack, err := w.publisher.Publish(ctx, event)
		w.mu.Lock()
		key := e.Subject()
		switch {
		case err == nil:
			w.acked[key], w.last = e.Reason, max(w.last, ack.Sequence)
			w.count++
		case ctx.Err() != nil:
			delete(w.acked, key)
		default:
			w.retried++
		}
		w.mu.Unlock()
		if err == nil || !pause(ctx, 20*time.Millisecond) {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// end stops it and waits.
func (w *writer) end() {
	w.stop()
	w.running.Wait()
}

// done is how many events have been acknowledged, and the last one's sequence.
func (w *writer) done() (count int, last uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, w.last
}

// reader asks one address without end, and keeps the first thing that was wrong.
type reader struct {
	answered atomic.Int64
	wrong    atomic.Pointer[string]
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// reading starts one that the test ends with end. each says that the address is one replica, whose answers
// must never get older.
func reading(t *testing.T, base string, each bool) *reader {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reader{stop: cancel}
	r.running.Go(func() {
		seen := uint64(0)
		for i := 0; pause(ctx, 5*time.Millisecond); i++ {
			seen = r.read(base+paths[i%len(paths)], seen, each)
		}
	})
	t.Cleanup(r.end)
	return r
}

// paths are what readers ask, lists and checks.
var paths = []string{"/api/scammers?limit=5", "/api/servers?sort=az&limit=5", "/api/check?search=kowalski", "/api/legit", "/api/scammers?search=state&limit=2"}

func (r *reader) read(url string, seen uint64, each bool) uint64 {
	a, err := ask(url, nil)
	sequence, _ := strconv.ParseUint(a.header.Get("Registry-Sequence"), 10, 64) // 0 is wrong enough
	switch {
	case err != nil:
		r.complain("%s: %v", url, err)
	case a.status != 200:
		r.complain("%s: %d %s", url, a.status, a.body)
	case sequence == 0, each && sequence < seen:
		r.complain("%s: at sequence %d after %d", url, sequence, seen)
	default:
		r.answered.Add(1)
	}
	return max(seen, sequence)
}

func (r *reader) complain(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.wrong.CompareAndSwap(nil, &text)
}

func (r *reader) end() {
	r.stop()
	r.running.Wait()
}

// flawless ends it and reports.
func (r *reader) flawless(t *testing.T) {
	t.Helper()
	r.end()
	if wrong := r.wrong.Load(); wrong != nil {
		t.Error("a reader: " + *wrong)
	}
	if r.answered.Load() == 0 {
		t.Error("a reader got no answers")
	}
	t.Logf("%d reads answered", r.answered.Load())
}
