package demo

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

// An import that ended anywhere is repeated when the broker starts again, and leaves the last
// states of an uninterrupted one.
func TestDemoImportRepeated(t *testing.T) {
	t.Parallel()
	all := mustEvents(t)
	for _, ends := range [][]int{{0}, {len(all) - 1}, {len(all) - 1, len(all) / 2, len(all) - 1}} {
		t.Run(fmt.Sprint(ends), func(t *testing.T) {
			dir := t.TempDir()
			for _, end := range ends {
				withBroker(t, dir, func(js jetstream.JetStream) { interrupted(t, js, all[:end]) })
			}
			withBroker(t, dir, func(js jetstream.JetStream) {
				require.NoError(t, Import(t.Context(), config(js)))
				endsAs(t, js, all)
			})
		})
	}
}

func config(js jetstream.JetStream) Config {
	return Config{JetStream: js, Stream: events.DefaultStream, History: events.DefaultHistory, MayCreate: true, Day: time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC),
		Logger: slog.New(slog.DiscardHandler)}
}

func withBroker(t *testing.T, dir string, do func(jetstream.JetStream)) {
	t.Helper()
	b := eventstest.Broker(t, func(c *broker.Config) { c.StoreDir = dir })
	defer b.Shutdown()
	js := eventstest.Connect(t, b)
	defer js.Conn().Close()
	do(js)
}

// interrupted is an import that got no further than these events.
func interrupted(t *testing.T, js jetstream.JetStream, some []events.Event) {
	t.Helper()
	_, err := config(js).ensureStream(t.Context())
	require.NoError(t, err)
	var messages []publish.Message
	for _, e := range some {
		messages = append(messages, publish.Message{Event: e})
	}
	_, err = publish.New(js, publish.Config{}).PublishAll(t.Context(), messages)
	require.NoError(t, err)
}

// endsAs compares the last event of every subject.
func endsAs(t *testing.T, js jetstream.JetStream, all []events.Event) {
	t.Helper()
	stream, err := js.Stream(t.Context(), events.DefaultStream)
	require.NoError(t, err)
	last := map[string]string{}
	for _, e := range all {
		last[e.Data.Subject().String()] = e.ID
	}
	for subject, id := range last {
		msg, err := stream.GetLastMsgForSubject(t.Context(), subject)
		require.NoError(t, err, subject)
		e, err := events.DecodeMessage(subject, msg.Data)
		require.NoError(t, err, subject)
		require.Equal(t, id, e.ID, subject)
	}
}

// A complete import is left alone on its day, and made again on another.
func TestDemoImportOfAnotherDay(t *testing.T) {
	t.Parallel()
	withBroker(t, t.TempDir(), func(js jetstream.JetStream) {
		var ends []uint64
		for _, later := range []time.Duration{0, time.Hour, 24 * time.Hour} {
			cfg := config(js)
			cfg.Day = cfg.Day.Add(later)
			require.NoError(t, Import(t.Context(), cfg))
			stream, err := js.Stream(t.Context(), events.DefaultStream)
			require.NoError(t, err)
			ends = append(ends, stream.CachedInfo().State.LastSeq)
		}
		if n := uint64(len(mustEvents(t))); ends[0] != n || ends[1] != n || ends[2] <= n {
			t.Errorf("the stream ended at %d, of %d events", ends, n)
		}
	})
}
