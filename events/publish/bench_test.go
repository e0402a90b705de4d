package publish_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

// The goal of the project is 20,000 events/s into the broker that syncs before it acknowledges.
func BenchmarkPublishAll(b *testing.B) {
	for _, bc := range []struct {
		name   string
		before bool // all are there already
	}{{"new", false}, {"known", true}} {
		b.Run(bc.name, func(b *testing.B) {
			js := eventstest.Connect(b, eventstest.Broker(b, func(c *broker.Config) { c.UnsafeNoSync = false }))
			eventstest.Stream(b, js)
			p := publish.New(js, publish.Config{Stream: events.DefaultStream})
			messages := make([]publish.Message, b.N)
			for i, e := range eventstest.Events(b.N, 1) {
				messages[i].Event = e
			}
			if bc.before {
				_, err := p.PublishAll(context.Background(), messages)
				require.NoError(b, err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			sum, err := p.PublishAll(context.Background(), messages)
			require.NoError(b, err)
			if got := sum.Done(); got != b.N || (sum.Known > 0) != bc.before {
				b.Fatalf("%+v of %d", sum, b.N)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
