package snapshots

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// Opening a store, and restoring one, of 100,000 entries.
func BenchmarkLoad(b *testing.B) {
	s, m := newStore(b)
	var data []events.Data
	for _, e := range eventstest.Entries(100_000, 1) {
		data = append(data, e)
	}
	require.NoError(b, s.Save(feed(m, data...)))
	var packed bytes.Buffer
	_, err := writePacked(b.Context(), s, &packed)
	require.NoError(b, err)
	require.NoError(b, s.Close())

	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			again, _, err := Open(b.Context(), s.path)
			require.NoError(b, err)
			require.NoError(b, again.Close())
		}
	})
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			_, err := Restore(b.Context(), bytes.NewReader(packed.Bytes()), filepath.Join(b.TempDir(), "registry.db"))
			require.NoError(b, err)
		}
		b.ReportMetric(float64(packed.Len())/100_000, "B/entry")
	})
}
