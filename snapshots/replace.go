package snapshots

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"example.org/registry/events/failpoint"
)

// NewReplacement makes an empty store beside the one at cfg.Path, to be filled by a rebuild and to
// replace it. It removes what an unfinished one has left. The caller ends the store with Replace
// and Close, or with Discard.
func NewReplacement(cfg Config) (*Store, error) {
	s := newStore(cfg.Path+rebuildingSuffix, cfg.Logger)
	if err := removeIfThere(s.path); err != nil {
		return nil, storeError(err)
	}
	if err := s.create(); err != nil {
		return nil, storeError(errors.Join(err, s.Discard()))
	}
	return s, nil
}

// Discard closes a replacement that is not wanted and removes its file.
func (s *Store) Discard() error {
	return errors.Join(s.Close(), removeIfThere(s.path))
}

// Replace gives s the name of old and keeps old's file as registry.db.replaced-<UTC time>, the name
// that it returns. Both stay open, each with its own file. The name leads to one whole store or the
// other at every moment, also if the process dies on the way. After an error both stores are as
// they were.
func (s *Store) Replace(old *Store) (aside string, err error) {
	old.mu.Lock()
	defer old.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	target := old.path
	if aside, err = keepAside(target); err != nil {
		return "", fmt.Errorf("store: keep the replaced one: %w; %s", err, remedy(err))
	}
	if err = failpoint.Hit("rebuild/before-replace"); err == nil {
		err = os.Rename(s.path, target)
	}
	if err != nil {
		return "", storeError(errors.Join(err, os.Remove(aside)))
	}
	old.path, s.path = aside, target
	if err := cmp.Or(failpoint.Hit("rebuild/after-replace"), syncDir(filepath.Dir(target))); err != nil {
		s.logger.Warn("store replaced, but the directory cannot be synced: a power failure may bring the old one back",
			"path", target, "error", err)
	}
	return filepath.Base(aside), nil
}

// RemoveLeftovers removes what an interrupted rebuild, restore or Open left beside the store at
// path. Call it before Open, with the directory locked.
func RemoveLeftovers(path string, log *slog.Logger) error {
	for _, left := range []string{path + newSuffix, path + rebuildingSuffix, path + rebuildingSuffix + newSuffix, path + restoringSuffix} {
		if _, err := os.Lstat(left); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.Remove(left); err != nil {
			return storeError(err)
		}
		log.Info("removed what an interrupted rebuild, restore or start left; the read model from before is in use", "path", left)
	}
	return removeSecondNames(path)
}

// removeSecondNames removes the second name that an interrupted Replace or Restore gave the store.
func removeSecondNames(path string) error {
	store, err := os.Stat(path)
	if err != nil {
		return nil // Open reports it
	}
	names, _ := filepath.Glob(path + "." + replacedLabel + "-*") // a path with *, ? or [ finds nothing; that does no harm
	for _, name := range names {
		if other, err := os.Lstat(name); err == nil && os.SameFile(store, other) {
			if err := os.Remove(name); err != nil {
				return storeError(err)
			}
		}
	}
	return nil
}
