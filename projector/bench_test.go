package projector

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

const benchEvents = 60_000

// BenchmarkCatchUp replays a stream of 60,000 entries into an empty model, with the store, beside a
// broker in the same process: events a second until the model may be served.
func BenchmarkCatchUp(b *testing.B) {
	s := newSystem(b)
	eventstest.Stream(b, s.js)
	s.publishAll(eventstest.Events(benchEvents, 1))
	var took time.Duration
	for b.Loop() {
		s.tune = productionPace
		s.log = &eventstest.Log{}
		start := time.Now()
		s.start()
		s.progress("caught up", func(p Progress) bool { return p.CaughtUp })
		took += time.Since(start)
		if n := s.model.View().Sequence(); n != benchEvents {
			b.Fatalf("caught up at %d", n)
		}
		require.NoError(b, s.stop())
		s.path += "+"
	}
	b.ReportMetric(float64(b.N)*benchEvents/took.Seconds(), "events/s")
}

// BenchmarkLive applies events while they are published by a Publisher in the same process, the
// broker beside it: events a second from the first publish to the last visible.
func BenchmarkLive(b *testing.B) {
	s := newSystem(b)
	s.tune = productionPace
	s.start()
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp })
	const n = 20_000
	round := 0
	var took time.Duration
	for b.Loop() {
		round++
		evs := eventstest.Events(n, 1)
		for i := range evs {
			e := evs[i].Data.(events.Entry)
			e.Name = fmt.Sprint(e.Name, " ", round)
			evs[i] = eventstest.Listed(e, round)
		}
		start := time.Now()
		last := s.publishAll(evs)
		_, err := s.model.Await(context.Background(), last)
		require.NoError(b, err)
		took += time.Since(start)
	}
	b.ReportMetric(float64(b.N)*n/took.Seconds(), "events/s")
}

// BenchmarkLatency is the time from the acknowledgment of one event to its view, when quiet.
func BenchmarkLatency(b *testing.B) {
	s := newSystem(b)
	s.tune = productionPace
	s.start()
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp })
	s.reach(s.publishAll(eventstest.Events(10_000, 1)))
	entry := eventstest.Entries(1, 1)[0]
	var waits []time.Duration
	for b.Loop() {
		seq := s.publish(eventstest.Listed(entry, 1000+len(waits)))
		start := time.Now()
		_, err := s.model.Await(context.Background(), seq)
		require.NoError(b, err)
		waits = append(waits, time.Since(start))
	}
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds()), "median-µs")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds()), "p99-µs")
}

func productionPace(c *Config) {
	c.PollEvery, c.VerifyEvery, c.RetryEvery, c.StartupTimeout, c.SaveEvery = 0, 0, 0, 0, 0
	*c = c.withDefaults()
}

// publishAll publishes in atomic batches and returns the last sequence.
func (s *system) publishAll(evs []events.Event) uint64 {
	s.t.Helper()
	messages := make([]publish.Message, len(evs))
	for i, e := range evs {
		messages[i] = publish.Message{Event: e}
	}
	sum, err := publish.New(s.js, publish.Config{}).PublishAll(context.Background(), messages)
	require.NoError(s.t, err)
	return sum.LastSequence
}
