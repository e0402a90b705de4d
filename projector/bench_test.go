package projector

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
	"example.org/registry/snapshots"
)

// BenchmarkCatchUp reads 60,000 entries from the stream into an empty store. Its speed is events/s.
func BenchmarkCatchUp(b *testing.B) {
	const entries = 60_000
	js := eventstest.Connect(b, eventstest.Broker(b))
	eventstest.Stream(b, js)
	var messages []publish.Message
	for _, e := range eventstest.Entries(entries, 1) {
		messages = append(messages, publish.Message{Event: events.StateEvent(e)})
	}
	_, err := publish.New(js, publish.Config{}).PublishAll(b.Context(), messages)
	require.NoError(b, err)

	for b.Loop() {
		store, model, err := snapshots.Open(b.Context(), filepath.Join(b.TempDir(), "registry.db"))
		require.NoError(b, err)
		p := New(Config{JetStream: js, Model: model, Store: store})
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		eventstest.Until(b, func() bool { return p.Progress().CaughtUp })
		cancel()
		require.NoError(b, <-ended)
		require.NoError(b, store.Close())
	}
	b.ReportMetric(entries*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
