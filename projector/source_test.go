package projector

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/stream"
)

// makeStream makes the stream as this program does, but for a change.
func (w *world) makeStream(change func(*jetstream.StreamConfig)) {
	w.Helper()
	cfg := stream.Config(events.DefaultStream, 1, events.DefaultHistory, stream.Identity{})
	change(&cfg)
	_, err := eventstest.Create(w.Context(), w.js, cfg) // one of the same name may just have been deleted
	require.NoError(w, err)
}

// requireEnd starts a server that must end by itself, and returns why.
func (w *world) requireEnd() string {
	w.Helper()
	w.start()
	s := w.server
	w.server = nil
	select {
	case err := <-s.ended:
		require.Error(w, err)
		require.NoError(w, s.store.Close())
		require.NotContains(w, err.Error(), "\n")
		return err.Error()
	case <-time.After(patience):
		w.Fatalf("the server does not end: %+v", s.Progress())
		return ""
	}
}

// A stream that would lose latest states is refused with the remedy, and left as it is.
func TestRefusedStreams(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*jetstream.StreamConfig)
		says   string
	}{
		"MaxAge":      {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "MaxAge 1h0m0s: events would expire; change"},
		"AllowMsgTTL": {func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }, "AllowMsgTTL"},
		"markers":     {func(c *jetstream.StreamConfig) { c.SubjectDeleteMarkerTTL = time.Minute }, "into a new stream"},
		"MaxMsgs":     {func(c *jetstream.StreamConfig) { c.MaxMsgs = 100 }, "MaxMsgs 100: old events would be dropped"},
		"discard old": {func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }, "discard policy old"},
		"retention": {func(c *jetstream.StreamConfig) {
			c.Retention, c.AllowAtomicPublish = jetstream.InterestPolicy, false
		}, "events would go once delivered"},
		"the demonstration's": {func(c *jetstream.StreamConfig) { c.Metadata[events.MetadataDemo] = "true" }, "--demo"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBroker(t, 1)
			w.makeStream(c.change)
			before, err := w.stream().Info(t.Context())
			require.NoError(t, err)
			require.Contains(t, w.requireEnd(), c.says)
			after, err := w.stream().Info(t.Context())
			require.NoError(t, err)
			require.Equal(t, before.Config, after.Config)
		})
	}
}

// The demonstration is served from an empty stream or its own, and from no other.
func TestDemoMark(t *testing.T) {
	w := newBroker(t, 1)
	w.tune = func(c *Config) { c.Demo = true }
	w.start()
	w.send(entry(events.Scammers, "a", 1000, true))
	w.settle(w.server)
	require.True(t, w.server.Progress().Demo)
	var recovery Recovery
	require.ErrorContains(t, recovery.Add(w.export(w.server)), "demonstration")

	w = newBroker(t, 2)
	w.makeStream(func(*jetstream.StreamConfig) {})
	w.send(entry(events.Scammers, "a", 1000, true))
	w.tune = func(c *Config) { c.Demo = true }
	require.Contains(t, w.requireEnd(), "is not the demonstration's")
}

// A running server does not end when the stream's configuration is spoilt: it serves its last state, and
// says what is wrong until it is mended.
func TestSpoiltWhileServing(t *testing.T) {
	w := serving(t)
	s, err := w.js.Stream(t.Context(), events.DefaultStream)
	require.NoError(t, err)
	cfg := s.CachedInfo().Config
	cfg.MaxAge = time.Hour
	_, err = w.js.UpdateStream(t.Context(), cfg)
	require.NoError(t, err)
	for name := range s.ConsumerNames(t.Context()).Name() { // ends the session
		require.NoError(t, s.DeleteConsumer(t.Context(), name))
	}
	w.awaitProgress(w.server, "the setting is named", func(p Progress) bool { return strings.Contains(p.LastError, "MaxAge") && p.CaughtUp })
	cfg.MaxAge = 0
	_, err = w.js.UpdateStream(t.Context(), cfg)
	require.NoError(t, err)
	w.awaitProgress(w.server, "all is well again", func(p Progress) bool { return p.LastError == "" })
}

// A stream that cannot be made ends Run with a line that says what to do.
func TestStreamThatCannotBeMade(t *testing.T) {
	w := newBroker(t, 1)
	_, err := w.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"registry.scammers.>"}})
	require.NoError(t, err)
	says := w.requireEnd()
	for _, part := range []string{"create stream REGISTRY: ", "another stream holds registry.>", "--stream", "remove it"} {
		require.Contains(t, says, part)
	}

	w = newBroker(t, 2)
	w.tune = func(c *Config) { c.Replicas = 3 }
	require.Contains(t, w.requireEnd(), "lower --stream-replicas")
}

// A stream that takes in no more events is in LastError.
func TestFullStream(t *testing.T) {
	w := newBroker(t, 1)
	w.makeStream(func(c *jetstream.StreamConfig) { c.MaxBytes = 300 << 10 })
	w.start()
	big := entry(events.Scammers, "a", 1000, true)
	big.Reason = strings.Repeat("x", 20_000)
	for i := range 4 {
		big.EntryID = strings.Repeat("a", i+1)
		w.send(big)
	}
	w.awaitProgress(w.server, "full", func(p Progress) bool { return strings.Contains(p.LastError, "is full") && p.CaughtUp })
}
