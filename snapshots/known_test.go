package snapshots

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/readmodel"
)

// complete returns a commit of a model that has been complete.
func complete(c readmodel.Commit) readmodel.Commit {
	c.Checkpoint.Complete = true
	return c
}

// A directory owes what its store held when it was complete, until an opened store is complete again
// and has as many subjects. Only an operator's restore lowers it.
func TestOwed(t *testing.T) {
	t.Parallel()
	few, m := filled(t, 10)
	require.NoError(t, few.Save(complete(feed(m, sample(10)...))))
	_, fewer := archiveOf(t, few)
	for name, c := range map[string]struct {
		lose    func(t *testing.T, path string)
		restore bool // from a snapshot, in Open
		owes    bool
	}{
		"intact":           {func(*testing.T, string) {}, false, false},
		"gone":             {func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, false, true},
		"damaged":          {func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 20_000)) }, false, true},
		"half loaded":      {func(_ *testing.T, path string) { writeMarker(path + loadingSuffix) }, false, true},
		"gone, a snapshot": {func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, true, true},
		"an older one":     {func(t *testing.T, path string) { writeFile(t, path, readFile(t, few.path)) }, false, true},
		"an operator's": {func(t *testing.T, path string) {
			_, err := restore(fewer, RestoreConfig{Path: path, Replace: true})
			require.NoError(t, err)
		}, false, false},
		"the whole directory": {func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Remove(knownPath(path)))
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "registry.db")
			s, m := mustOpen(t, path)
			first := complete(feed(m, sample(20)...))
			require.NoError(t, s.Save(first))
			require.NoError(t, s.Save(complete(feed(m, sample(80)...))))
			subjects, at := s.current().records(), s.Checkpoint()
			_, all := archiveOf(t, s)
			incomplete := feed(m, sample(90)...)
			require.NoError(t, s.Close())
			c.lose(t, path)
			for range 2 { // a restart pays nothing
				again, loaded, err := Open(t.Context(), Config{Path: path, Restore: func(context.Context) error {
					if !c.restore {
						return nil
					}
					_, err := restore(all, RestoreConfig{Path: path, Join: true})
					return err
				}})
				require.NoError(t, err)
				owed := again.Owed()
				require.Equal(t, c.owes, owed != nil)
				if c.owes {
					require.Equal(t, subjects, owed.Subjects)
					require.Equal(t, at, owed.Checkpoint)
					require.NoError(t, again.Save(readmodel.Commit{Checkpoint: incomplete.Checkpoint, Digest: loaded.Digest()}))
				}
				require.NoError(t, again.Close())
				c.restore = false
			}
		})
	}
}

// What the file says cannot be read: nothing less than all is owed, unless the store is whole.
func TestOwedUnknown(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{true, false} {
		s, m := filled(t, 20)
		require.NoError(t, s.Save(complete(feed(m, sample(20)...))))
		require.NoError(t, s.Close())
		writeFile(t, knownPath(s.path), []byte(`{"subjects":`))
		if !whole {
			require.NoError(t, os.Remove(s.path))
		}
		again, _ := mustOpen(t, s.path)
		owed := again.Owed()
		if require.Equal(t, whole, owed == nil); !whole {
			require.True(t, owed.Unknown)
			require.NotZero(t, owed.HistoryRevision)
		}
	}
}

// A replacement is no store of the directory until it has the name, and the replaced one is none any
// more.
func TestKnownOfAReplacement(t *testing.T) {
	t.Parallel()
	old, m := filled(t, 20)
	require.NoError(t, old.Save(complete(feed(m, sample(20)...))))
	had := readKnown(knownPath(old.path))
	fresh, err := NewReplacement(Config{Path: old.path})
	require.NoError(t, err)
	defer fresh.Close()
	model := readmodel.New()
	require.NoError(t, fresh.Save(complete(feed(model, sample(40)...))))
	require.Equal(t, had, readKnown(knownPath(old.path)))
	_, err = fresh.Replace(old)
	require.NoError(t, err)
	require.NoError(t, fresh.Save(complete(feed(model, sample(50)...))))
	had = readKnown(knownPath(fresh.path))
	require.Equal(t, fresh.current().records(), had.Subjects)
	require.NoError(t, old.Save(complete(feed(m, sample(3)...))))
	require.Equal(t, had, readKnown(knownPath(fresh.path)))
}
