package snapshots

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.org/registry/events/failpoint"
)

// NewReplacement makes an empty store next to the one at cfg.Path, for a rebuild to fill and to
// replace it. It removes leftovers of an unfinished one. The caller ends the store with Replace and
// Close, or with Discard.
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

// Discard closes an unwanted replacement and removes its file.
func (s *Store) Discard() error {
	return errors.Join(s.Close(), removeIfThere(s.path))
}

// Replace gives s the name of old and keeps old's file as registry.db.replaced-<UTC time>, the name
// that it returns. Both stay open, each with its own file. At every moment the name belongs to one
// whole store or the other, also if the process dies. After an error both stores are unchanged.
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
	old.known, s.known = "", old.known
	if err := cmp.Or(failpoint.Hit("rebuild/after-replace"), syncDir(filepath.Dir(target))); err != nil {
		s.logger.Warn("store replaced, but the directory cannot be synced: a power failure may bring the old one back",
			"path", target, "error", err)
	}
	return filepath.Base(aside), nil
}

// RemoveLeftovers removes leftovers of an interrupted rebuild, restore or Open next to the store at
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
	names, _ := filepath.Glob(path + "." + replacedLabel + "-*") // a path with *, ? or [ matches nothing, which does no harm
	for _, name := range names {
		if other, err := os.Lstat(name); err == nil && os.SameFile(store, other) {
			if err := os.Remove(name); err != nil {
				return storeError(err)
			}
		}
	}
	return nil
}

// RemoveSetAside removes the files next to the store at path that were renamed aside or replaced
// before a time, and logs each. With keepDamaged it keeps the newest damaged one: without a good
// store there may be nothing else to examine.
func RemoveSetAside(path string, before time.Time, keepDamaged bool, log *slog.Logger) error {
	damaged, err := setAside(path, damagedLabel)
	if err != nil {
		return storeError(err)
	}
	replaced, err := setAside(path, replacedLabel)
	if err != nil {
		return storeError(err)
	}
	if keepDamaged && len(damaged) > 0 {
		damaged = damaged[:len(damaged)-1]
	}
	for _, f := range append(damaged, replaced...) {
		if !f.since.Before(before) {
			continue
		}
		if err := removeIfThere(f.path); err != nil {
			return storeError(err)
		}
		log.Info("removed a store that was set aside or replaced", "path", f.path, "since", f.since.UTC().Format(time.RFC3339))
	}
	return nil
}

// asideFile is a store that was renamed aside, and when.
type asideFile struct {
	path  string
	since time.Time
}

// setAside returns the files next to the store that have the label, the newest last.
func setAside(path, label string) ([]asideFile, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var files []asideFile
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(path)+"."+label+"-") || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		files = append(files, asideFile{filepath.Join(filepath.Dir(path), e.Name()), info.ModTime()})
	}
	slices.SortFunc(files, func(a, b asideFile) int { return a.since.Compare(b.since) })
	return files, nil
}
