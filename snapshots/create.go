package snapshots

import (
	"errors"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events/failpoint"
)

// createFile makes a store that holds nothing. It becomes path by a rename when it is complete, so
// that a crash leaves no half-made file under that name.
func createFile(path string, m meta, s summer) error {
	temporary := path + ".new"
	if err := removeIfThere(temporary); err != nil {
		return err
	}
	if err := writeEmpty(temporary, m, s); err != nil {
		return errors.Join(err, removeIfThere(temporary)) // a full disk needs the room
	}
	if err := failpoint.Hit("store/before-create"); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return errors.Join(err, removeIfThere(temporary))
	}
	if err := failpoint.Hit("store/after-create"); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// writeEmpty writes a store that holds nothing to path, where there is no file.
func writeEmpty(path string, m meta, s summer) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout, NoStatistics: true})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, t := range tables() {
			if _, err := tx.CreateBucket([]byte(t.name)); err != nil {
				return err
			}
		}
		return m.write(tx, s)
	})
	return errors.Join(err, db.Close())
}
