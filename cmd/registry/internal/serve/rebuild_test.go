package serve

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/admin"
)

// publish publishes events and waits until the generation that is shown has saved them.
func (r projecting) publish(t *testing.T, all ...events.Event) uint64 {
	t.Helper()
	last := eventstest.Publish(t, r.js, all...)
	eventstest.Until(t, func() bool { p, _ := r.live.current().progress(); return p.Checkpoint >= last && p.Saved >= last })
	return last
}

// TestRebuild: a rebuild shows another model of the same content and takes the store's name, readers
// wait on over it, and the new generation follows the stream and may write into it.
func TestRebuild(t *testing.T) {
	t.Parallel()
	r := project(t)
	r.publish(t, eventstest.Events(200, 21)...)
	old, digest := r.live.current(), r.live.View().Digest()

	rebuilt, err := r.rebuild(t.Context())
	require.NoError(t, err)
	require.Equal(t, digest.String(), rebuilt.After.Digest)
	require.Equal(t, rebuilt.Before, rebuilt.After)
	require.EqualValues(t, 200, rebuilt.Events)
	require.NotSame(t, old, r.live.current())
	r.requireOneStore(t)

	entry := eventstest.Entries(1, 1)[0]
	last := r.publish(t, eventstest.Listed(entry, 1), events.Event{ID: "x", Source: "/test", Type: events.TypeDelisted,
		Data: events.Delisting{Revision: 1 << 30, List: entry.List, EntryID: entry.EntryID}})
	require.Equal(t, last, r.live.current().store.Meta().Sequence)
}

// requireOneStore checks that a rebuild has left no second store. The directory of the text index may be
// there already, or not yet.
func (r projecting) requireOneStore(t *testing.T) {
	t.Helper()
	stores, err := filepath.Glob(r.cfg.storePath() + "*")
	require.NoError(t, err)
	require.Equal(t, []string{r.cfg.storePath()}, stores)
}

// TestRebuildInterrupted: a client that hangs up abandons the rebuild. The old model stays, nothing of
// the new one is left, and the next rebuild is not in its way.
func TestRebuildInterrupted(t *testing.T) {
	t.Parallel()
	r := project(t)
	r.publish(t, eventstest.Events(50, 5)...)
	old := r.live.current()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.rebuild(ctx)
	require.Error(t, err)
	require.Same(t, old, r.live.current())
	r.requireOneStore(t)

	_, err = r.rebuild(t.Context())
	require.NoError(t, err)
}

// TestRebuildErasesNothing: a model that is not shown writes nothing into the stream, since its rebuild
// may still be refused.
func TestRebuildErasesNothing(t *testing.T) {
	t.Parallel()
	r := project(t)
	g := r.live.current()
	require.False(t, r.mayWrite(newGeneration(generation{})), "another generation than the one that is shown")
	require.Equal(t, r.cfg.IsEmbedded() || r.cfg.SnapshotEvery > 0, r.mayWrite(g))
}

// TestRebuildKnowsLess: a stream that lacks what is known is not rebuilt from, and the old model stays.
func TestRebuildKnowsLess(t *testing.T) {
	t.Parallel()
	r := project(t)
	r.publish(t, eventstest.Events(50, 5)...)
	old := r.live.current()
	s, err := r.js.Stream(t.Context(), events.DefaultStream)
	require.NoError(t, err)
	require.NoError(t, s.Purge(t.Context(), jetstream.WithPurgeSubject("registry.scammers.*")))
	eventstest.Until(t, func() bool { p, _ := r.live.current().progress(); return p.Unpublished > 0 })

	_, err = r.rebuild(t.Context())
	require.ErrorAs(t, err, new(admin.Refused))
	require.ErrorContains(t, err, "registry recover comes first")
	require.Same(t, old, r.live.current())
}
