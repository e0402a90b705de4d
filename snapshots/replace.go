package snapshots

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"example.org/registry/events/failpoint"
)

// rebuildingSuffix is behind the name of a store that is to replace the one of that name.
const rebuildingSuffix = ".rebuilding"

// Begin makes an empty store beside the one at cfg.Path, which it is to replace: another data set. What a
// Begin before has left is removed. The caller ends the store with Replace and Close, or with Discard.
func Begin(cfg Config) (*Store, error) {
	s := &Store{path: cfg.Path + rebuildingSuffix, logger: cfg.Logger, sum: newSummer()}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if err := removeIfThere(s.path); err != nil {
		return nil, fmt.Errorf("store: %w%s", err, remedy(err))
	}
	if err := s.create(); err != nil {
		return nil, fmt.Errorf("store: %w%s", errors.Join(err, s.Discard()), remedy(err))
	}
	return s, nil
}

// Discard closes a store that replaces nothing after all, and removes its file.
func (s *Store) Discard() error {
	return errors.Join(s.Close(), removeIfThere(s.path))
}

// Replace gives s the name of old, whose file is kept as registry.db.replaced-<UTC time>, the name that is
// returned. Both stay open, each with its own file. A process that dies on the way leaves the one or
// the other under the name, whole: it always names a file. After an error both are as they were.
func (s *Store) Replace(old *Store) (aside string, err error) {
	old.mu.Lock()
	defer old.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	target := old.path
	if aside, err = freeName(target, "replaced", time.Now()); err != nil {
		return "", fmt.Errorf("store: %w%s", err, remedy(err))
	}
	if err := secondName(target, aside); err != nil {
		return "", fmt.Errorf("store: keep the replaced one: %w%s", err, remedy(err))
	}
	if err = failpoint.Hit("rebuild/before-replace"); err == nil {
		err = os.Rename(s.path, target)
	}
	if err != nil {
		return "", fmt.Errorf("store: %w%s", errors.Join(err, os.Remove(aside)), remedy(err))
	}
	old.path, s.path = aside, target
	if err := cmp.Or(failpoint.Hit("rebuild/after-replace"), syncDir(filepath.Dir(target))); err != nil {
		s.logger.Warn("store replaced, but the directory cannot be synced: a power failure may bring the old one back",
			"path", target, "error", err)
	}
	return filepath.Base(aside), nil
}

// secondName gives the file at path a second name, or where the file system has no such thing, the
// second name a copy.
func secondName(path, name string) error {
	if os.Link(path, name) == nil {
		return nil
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// Tidy removes what a rebuild or restore that was interrupted left beside the store at path. It is called before
// Open, with the directory locked.
func Tidy(path string, log *slog.Logger) error {
	for _, left := range []string{path + rebuildingSuffix, path + rebuildingSuffix + ".new", path + restoringSuffix} {
		if _, err := os.Lstat(left); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.Remove(left); err != nil {
			return fmt.Errorf("store: %w%s", err, remedy(err))
		}
		log.Info("removed what an interrupted rebuild or restore had left; the read model of before it is used", "path", left)
	}
	return removeSecondNames(path)
}

// removeSecondNames takes back a name that Replace gave the store before it was interrupted.
func removeSecondNames(path string) error {
	store, err := os.Stat(path)
	if err != nil {
		return nil // Open says what there is to say
	}
	names, _ := filepath.Glob(path + ".replaced-*") // the pattern is a good one unless the path is odd; then nothing is found
	for _, name := range names {
		if other, err := os.Lstat(name); err == nil && os.SameFile(store, other) {
			if err := os.Remove(name); err != nil {
				return fmt.Errorf("store: %w%s", err, remedy(err))
			}
		}
	}
	return nil
}
