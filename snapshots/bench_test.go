package snapshots

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// BenchmarkLoad opens a store of n entries: what a restart costs.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{10_000, 200_000, 1_000_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "registry.db")
			fill(b, path, n)
			for b.Loop() {
				s, _, err := Open(context.Background(), Config{Path: path})
				require.NoError(b, err)
				if s.Checkpoint().Sequence != uint64(n) {
					b.Fatal("not the store that was saved")
				}
				b.StopTimer()
				require.NoError(b, s.Close())
				b.StartTimer()
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// fill saves n entries in transactions of a replay's size.
func fill(b *testing.B, path string, n int) {
	b.Helper()
	s, m, err := Open(context.Background(), Config{Path: path})
	require.NoError(b, err)
	m.BeginBulk()
	renderer := readmodel.NewRenderer()
	c := readmodel.Commit{}
	for i, e := range eventstest.Entries(n, 1) {
		c.Records = append(c.Records, renderer.Render(uint64(i+1), e))
		if len(c.Records) < 20_000 && i+1 < n {
			continue
		}
		m.Apply(c.Records, uint64(i+1))
		c.Checkpoint, c.Digest = at(uint64(i+1)), m.Digest()
		require.NoError(b, s.Save(c))
		c.Records = nil
	}
	require.NoError(b, s.Close())
}

// BenchmarkSave saves 1,000 records spread over a store of 100,000.
func BenchmarkSave(b *testing.B) {
	path := filepath.Join(b.TempDir(), "registry.db")
	const n = 100_000
	fill(b, path, n)
	s, m, err := Open(context.Background(), Config{Path: path})
	require.NoError(b, err)
	defer s.Close()
	entries := eventstest.Entries(n, 1)
	round := 0
	for b.Loop() {
		round++
		var data []events.Data
		for i := range 1000 {
			e := entries[(i*97+round)%n]
			e.Name = fmt.Sprint("nazwa ", round)
			data = append(data, e)
		}
		b.StopTimer()
		c := feed(m, data...)
		b.StartTimer()
		require.NoError(b, s.Save(c))
	}
}

// BenchmarkArchive makes an archive of n entries, and restores it.
func BenchmarkArchive(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		path := filepath.Join(b.TempDir(), "registry.db")
		b.Run(fmt.Sprintf("create/entries=%d", n), func(b *testing.B) {
			if !isThere(path) {
				fill(b, path, n)
			}
			s, _ := mustOpen(b, path)
			for b.Loop() {
				a, err := s.Archive(context.Background(), ArchiveConfig{TempDir: b.TempDir()})
				require.NoError(b, err)
				b.ReportMetric(float64(a.Size())/float64(n), "bytes/entry")
				require.NoError(b, a.Close())
			}
		})
		b.Run(fmt.Sprintf("restore/entries=%d", n), func(b *testing.B) {
			s, _ := mustOpen(b, path)
			_, archive := archiveOf(b, s)
			for b.Loop() {
				to := filepath.Join(b.TempDir(), "registry.db")
				_, err := restore(archive, RestoreConfig{Path: to})
				require.NoError(b, err)
				b.ReportMetric(float64(lstat(b, to).Size())/float64(n), "bytes/entry")
				require.NoError(b, os.Remove(to))
			}
		})
	}
}
