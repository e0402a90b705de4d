package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events/failpoint"
)

// ErrExists says that there is a store where one is to be restored.
var ErrExists = errors.New("there is a read model already")

// restoringSuffix is behind the name of a store that is being restored.
const restoringSuffix = ".restoring"

// Restoring says what Restore does with an archive.
type Restoring struct {
	// Path is the store's file. Its directory must exist and be locked by the caller (LockDir).
	Path string

	// Replace renames a store that is there aside (registry.db.replaced-<UTC time>). Without it the
	// error matches ErrExists, before anything is read.
	Replace bool

	// Accept, if not nil, may refuse the archive by its manifest.
	Accept func(Manifest) error

	// Workers is the number of goroutines that decode. 0: one a processor.
	Workers int
}

// Restore makes the store at cfg.Path out of the archive that r reads: into a file beside it, which is
// proved, given a data-set id of its own, synced and renamed. At every moment there is the old store,
// or none where there was none, or the whole new one. aside is the new name of an old one, or empty.
func Restore(ctx context.Context, r io.Reader, cfg Restoring) (m Manifest, aside string, err error) {
	if _, err := os.Lstat(cfg.Path); err == nil && !cfg.Replace {
		return Manifest{}, "", fmt.Errorf("%s: %w", cfg.Path, ErrExists)
	}
	temporary := cfg.Path + restoringSuffix
	if err := removeIfThere(temporary); err != nil {
		return Manifest{}, "", err
	}
	m, err = Unpack(ctx, r, temporary, Work{Workers: cfg.Workers}, cfg.Accept)
	if err != nil {
		return m, "", err
	}
	if err = failpoint.Hit("restore/unpacked"); err == nil {
		err = renewDataSet(temporary)
	}
	if err == nil {
		aside, err = moveInto(temporary, cfg.Path)
	}
	if err != nil {
		os.Remove(temporary)
	}
	return m, aside, err
}

// renewDataSet gives the store at path another data-set id, so that no index made from the old content is
// taken for one of the new, and syncs the whole file.
func renewDataSet(path string) error {
	db, err := openFile(path)
	if err != nil {
		return err
	}
	sum := newSummer()
	err = db.Update(func(tx *bolt.Tx) error {
		m, err := readMeta(tx, sum)
		if err != nil {
			return err
		}
		m.DataSet = newMeta().DataSet
		return m.write(tx, sum)
	})
	return errors.Join(err, db.Sync(), db.Close())
}

// moveInto renames the file at from to path. What is at path gets a second name before, so that there is
// always something.
func moveInto(from, path string) (aside string, err error) {
	if _, err := os.Lstat(path); err == nil {
		if aside, err = freeName(path, "replaced", time.Now()); err != nil {
			return "", err
		}
		if err := secondName(path, aside); err != nil {
			return "", err
		}
	}
	err = failpoint.Hit("restore/before-rename")
	if err == nil {
		err = os.Rename(from, path)
	}
	if err != nil {
		if aside != "" {
			err = errors.Join(err, os.Remove(aside))
		}
		return "", err
	}
	return aside, cmp.Or(failpoint.Hit("restore/renamed"), syncDir(filepath.Dir(path)))
}
