package serve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/snapshots"
)

// What stands for the data directory is missed when it is taken away, and when another has its place.
func TestPlace(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(c Config) error{
		"the directory":             func(c Config) error { return os.Rename(c.DataDir, c.DataDir+"-moved") },
		"the broker's":              func(c Config) error { return os.RemoveAll(c.brokerDir()) },
		"the lock":                  func(c Config) error { return os.Remove(snapshots.LockPath(c.DataDir)) },
		"another in its place":      func(c Config) error { return replaceDir(c.DataDir, c.brokerDir()) },
		"another broker's in place": func(c Config) error { return replaceDir(c.brokerDir()) },
	} {
		c := Config{DataDir: filepath.Join(t.TempDir(), "data")}
		lock, err := LockDir(c.DataDir)
		require.NoError(t, err)
		require.NoError(t, os.Mkdir(c.brokerDir(), 0o700))
		at, err := c.place()
		require.NoError(t, err)
		require.NoError(t, at.gone())
		require.NoError(t, take(c))
		require.ErrorIs(t, at.gone(), errTakenAway, name)
		require.NoError(t, lock.Unlock())
	}
}

// replaceDir moves a directory away, and makes it and others in its place.
func replaceDir(dir string, more ...string) error {
	if err := os.Rename(dir, dir+"-moved"); err != nil {
		return err
	}
	for _, d := range append([]string{dir}, more...) {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	return nil
}
