package snapshots

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

// The store tells the state of each subject that it has, removals included, and of no other.
func TestState(t *testing.T) {
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	data := sample(20)
	require.NoError(t, s.Save(feed(m, data...)))
	known := map[events.Subject]events.Data{}
	for i, d := range data {
		known[d.Subject()] = events.Revised(d, int64(i+1)) // as feed does
	}
	for k, want := range known {
		got, ok, err := s.State(k)
		require.NoError(t, err)
		require.True(t, ok, k)
		require.Zero(t, events.Compare(got.Data, want), k)
		require.NotZero(t, got.Sequence)
	}
	_, ok, err := s.State(events.Subject{Kind: events.KindEntry, List: events.Legit, ID: "nothing"})
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, s.Close())
	_, _, err = s.State(data[0].Subject())
	require.ErrorIs(t, err, errClosed)
}
