package snapshots

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// canary is a word that stands nowhere but in entries that a test delists.
const canary = "KANAREKWKOPALNI"

// withCanary saves entries with the canary and delists them.
func withCanary(t *testing.T, s *Store, m *readmodel.Model) {
	t.Helper()
	var gone []events.Data
	data := sample(400)
	for i, d := range data {
		if e, ok := d.(events.Entry); ok && i%4 == 0 {
			e.Name, e.Reason = canary+" "+e.Name, strings.Repeat(canary+" ", 1+i*8) // beyond a page, too
			data[i] = e
			gone = append(gone, events.Delisting{Revision: 1, List: e.List, EntryID: e.EntryID})
		}
	}
	for _, c := range [][]events.Data{data, gone, {donation(3)}} {
		require.NoError(t, s.Save(feed(m, c...)))
	}
}

// After EraseFree the file has nothing that was deleted, and everything else.
func TestEraseFree(t *testing.T) {
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	withCanary(t, s, m)
	if !bytes.Contains(readFile(t, s.path), []byte(canary)) {
		t.Fatal("bbolt leaves nothing in its free pages: there is nothing to erase")
	}
	if err := appendTo(s.path, strings.Repeat(canary, 5000)); err != nil { // of a transaction that failed
		t.Fatal(err)
	}
	for range 2 {
		if done, err := s.EraseFree(t.Context(), ArchiveConfig{}); !done || err != nil {
			t.Fatal(done, err)
		}
		if n := bytes.Count(readFile(t, s.path), []byte(canary)); n > 0 {
			t.Fatalf("%d times in the file", n)
		}
		require.NoError(t, s.Save(feed(m, sample(40)...)))
		_, loaded := mustOpen(t, copyOf(t, s))
		if content(t, loaded.View()) != content(t, m.View()) {
			t.Fatal("content differs")
		}
		if err := s.db.View(func(tx *bolt.Tx) error {
			for err := range tx.Check() {
				t.Error(err)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing is erased under an archive that is being copied, and everything afterwards.
func TestEraseFreeWaitsForArchives(t *testing.T) {
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	withCanary(t, s, m)
	rests := 0
	cfg := ArchiveConfig{TempDir: t.TempDir(), Workers: 1, Rest: func(ctx context.Context, _ time.Duration) {
		if rests++; s.readers.Load() == 0 {
			return
		}
		withCanary(t, s, m)
		if done, err := s.EraseFree(ctx, ArchiveConfig{}); done || err != nil {
			t.Error("erased under a reader", err)
		}
	}}
	for rests == 0 {
		a, err := s.Archive(t.Context(), cfg)
		require.NoError(t, err)
		require.NoError(t, a.Close())
	}
	if done, err := s.EraseFree(t.Context(), ArchiveConfig{}); !done || err != nil || bytes.Contains(readFile(t, s.path), []byte(canary)) {
		t.Error(done, err)
	}
}

// A store that was replaced erases its own file, also where the name leads to another.
func TestEraseFreeOfAReplaced(t *testing.T) {
	old, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	withCanary(t, old, m)
	s, err := NewReplacement(Config{Path: old.path})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	model := readmodel.New()
	require.NoError(t, s.Save(feed(model, sample(300)...)))
	_, err = s.Replace(old)
	require.NoError(t, err)
	if done, err := old.EraseFree(t.Context(), ArchiveConfig{}); !done || err != nil {
		t.Fatal(done, err)
	}
	if bytes.Contains(readFile(t, old.path), []byte(canary)) {
		t.Error("not erased")
	}
	_, loaded := mustOpen(t, copyOf(t, s))
	if content(t, loaded.View()) != content(t, model.View()) {
		t.Error("another store's file was touched")
	}
}

// Files that were set aside or replaced go after a time, each with a line; the newest damaged one
// stays while there is no good store.
func TestRemoveSetAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "registry.db")
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"registry.db":                              400 * time.Hour,
		"registry.db.damaged-20260101T000000Z":     300 * time.Hour,
		"registry.db.damaged-while-loading":        200 * time.Hour,
		"registry.db.replaced-20260101T000000Z":    300 * time.Hour,
		"registry.db.replaced-20260102T000000Z":    100 * time.Hour,
		"registry.db.replaced-by-nobody/a":         300 * time.Hour,
		"another.db.damaged-20260101T000000Z":      300 * time.Hour,
		"registry.db.backup-of-an-operator":        300 * time.Hour,
		"registry.db.damaged-20260101T000000Z-2":   299 * time.Hour,
		"registry.db.replaced-20260102T000000Z.gz": 300 * time.Hour, // theirs, maybe; it is replaced text
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		writeFile(t, file, []byte("x"))
		require.NoError(t, os.Chtimes(file, now.Add(-age), now.Add(-age)))
	}
	var log bytes.Buffer
	left := func(keepDamaged bool) (names []string) {
		require.NoError(t, RemoveSetAside(path, now.Add(-168*time.Hour), keepDamaged, slog.New(slog.NewTextHandler(&log, nil))))
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	want := []string{"another.db.damaged-20260101T000000Z", "registry.db", "registry.db.backup-of-an-operator", "registry.db.damaged-while-loading",
		"registry.db.replaced-20260102T000000Z", "registry.db.replaced-by-nobody"}
	if got := left(true); !slices.Equal(got, want) {
		t.Errorf("without a good store: %q", got)
	}
	if got := left(false); !slices.Equal(got, slices.Delete(want, 3, 4)) {
		t.Errorf("with one: %q", got)
	}
	if n := strings.Count(log.String(), "removed a store that was set aside"); n != 5 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}

// A file counts as set aside from then on, and not from its last save.
func TestSetAsideSince(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	for _, aside := range []func() error{
		func() error { return rename(path, path+".damaged-1") },
		func() error { name, err := keepAside(path); _ = os.Remove(path); path = name; return err },
	} {
		writeFile(t, path, []byte("x"))
		old := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(path, old, old))
		require.NoError(t, aside())
		found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "registry.db.*"))
		if err != nil || len(found) == 0 {
			t.Fatal(found, err)
		}
		for _, f := range found {
			if time.Since(lstat(t, f).ModTime()) > time.Minute {
				t.Error(f, "is as old as its last save")
			}
		}
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return f.Close()
}
