package snapshots

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/readmodel"
)

// fresh makes a replacement of the store at path, with content of its own.
func fresh(t *testing.T, path string) *Store {
	t.Helper()
	s, err := NewReplacement(Config{Path: path})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	require.NoError(t, s.Save(feed(readmodel.New(), sample(3)...)))
	return s
}

// A store that replaces another has its name and a data-set id of its own, and goes on taking
// commits. The replaced one is beside it, whole, and goes on too.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	old, was := mustOpen(t, path)
	require.NoError(t, old.Save(feed(was, sample(5)...)))
	s := fresh(t, path)
	aside, err := s.Replace(old)
	require.NoError(t, err)
	if a := asides(t, path); len(a) != 1 || filepath.Base(a[0]) != aside {
		t.Errorf("beside the new store: %v, not %s", a, aside)
	}
	if s.current().DataSet == old.current().DataSet {
		t.Error("the same data set")
	}
	more := readmodel.Commit{Checkpoint: at(1000), Digest: was.Digest()}
	if err := old.Save(more); err != nil {
		t.Errorf("Save into the replaced store: %v", err)
	}
	is := readmodel.New()
	if err := s.Save(feed(is, sample(9)...)); err != nil {
		t.Errorf("Save after Replace: %v", err)
	}
	for _, st := range []*Store{s, old} {
		require.NoError(t, st.Close())
	}
	if _, m := mustOpen(t, path); m.Digest() != is.Digest() {
		t.Errorf("under the name: %s, want %s", m.Digest(), is.Digest())
	}
	if again, m := mustOpen(t, filepath.Join(filepath.Dir(path), aside)); m.Digest() != was.Digest() || again.Checkpoint().Sequence != 1000 {
		t.Errorf("aside: %d %s, want %s", again.Checkpoint().Sequence, m.Digest(), was.Digest())
	}
}

// A replacement that cannot take the name leaves the old store, and one that is discarded leaves
// nothing.
func TestReplaceFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	old, _ := mustOpen(t, path)
	s := fresh(t, path)
	require.NoError(t, os.Remove(path+rebuildingSuffix))
	if _, err := s.Replace(old); err == nil {
		t.Error("replaced by a file that is not there")
	}
	require.NoError(t, s.Discard())
	found, err := filepath.Glob(path + "*")
	if err != nil || len(found) != 1 || found[0] != path {
		t.Errorf("left: %v, %v", found, err)
	}
}

// A replacement that a full disk does not take leaves nothing, and its space is free again.
func TestNewReplacementFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	out, err := childCommand(t, "begin", path).Output()
	if err != nil || !strings.Contains(string(out), "file too large") {
		t.Fatalf("child: %v\n%s", err, out)
	}
	if found, _ := filepath.Glob(path + "*"); len(found) != 0 {
		t.Errorf("left: %v", found)
	}
}

// After a crash in a rebuild, at each step of Replace, the next start finds the old store until it
// has been replaced, and nothing beside it.
func TestRemoveLeftovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	old, m := mustOpen(t, path)
	require.NoError(t, old.Save(feed(m, sample(5)...)))
	require.NoError(t, old.Close())
	log := slog.New(slog.DiscardHandler)
	for name, die := range map[string]func(s *Store) error{
		"while it is filled":    func(*Store) error { return nil },
		"between the two names": func(*Store) error { return secondName(path, path+".replaced-20261121T000000Z") },
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t, path)
			require.NoError(t, die(s))
			_ = s.Close()
			require.NoError(t, RemoveLeftovers(path, log))
			if again, is := mustOpen(t, path); is.Digest() != m.Digest() {
				t.Errorf("after RemoveLeftovers: %s, want %s", is.Digest(), m.Digest())
			} else {
				_ = again.Close()
			}
			if found, _ := filepath.Glob(path + ".*"); len(found) != 0 {
				t.Errorf("left: %v", found)
			}
		})
	}
}

// RemoveLeftovers keeps a store that was replaced for good.
func TestLeftoversKeepReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	old, _ := mustOpen(t, path)
	s := fresh(t, path)
	_, err := s.Replace(old)
	require.NoError(t, err)
	require.NoError(t, RemoveLeftovers(path, slog.New(slog.DiscardHandler)))
	if a := asides(t, path); len(a) != 1 {
		t.Errorf("beside the store: %v", a)
	}
}
