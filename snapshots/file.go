package snapshots

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel/fault"
)

// lockTimeout bounds the wait for bbolt's own lock on the file. LockDir keeps other servers out, so
// this lock can only be held by a tool that reads the file.
const lockTimeout = time.Second

// openFile opens an existing bbolt file for writing. It also returns the file, which closes with
// db. The error is damage or the system's.
func openFile(path string) (db *bolt.DB, file *os.File, err error) {
	small, err := openToRead(path)
	if err != nil {
		return nil, nil, err
	}
	if err := small.Close(); err != nil {
		return nil, nil, err
	}
	err = fault.Catch(func() (err error) {
		db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout:         lockTimeout,
			FreelistType:    bolt.FreelistMapType,
			InitialMmapSize: initialMmap,
			NoStatistics:    true,
			OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
				f, err := openExisting(path, flag, mode)
				file = f
				return f, err
			},
		})
		return err
	})
	if err != nil && file != nil {
		_ = file.Close() // after a panic in bolt.Open it is still open and locked
	}
	if err == nil {
		adviseNormal(db, initialMmap)
	}
	return db, file, classify(err)
}

// openExisting opens a file for bbolt, which would otherwise create a missing one.
func openExisting(path string, flag int, mode os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag&^os.O_CREATE, mode)
}

// openToRead opens an existing bbolt file that no process has open for writing. It compares the
// length of the file with the meta pages, since reading a mapped file beyond its end is a fault.
// Before that, bbolt reads only the meta pages. The error is damage or the system's.
func openToRead(path string) (db *bolt.DB, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	}
	if info.Size() == 0 {
		return nil, damage{errors.New("file is empty")} // bbolt would initialize it
	}
	err = fault.Catch(func() (err error) {
		db, err = bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockTimeout, OpenFile: openExisting, NoStatistics: true})
		if err != nil {
			return err
		}
		adviseNormal(db, info.Size())
		return db.View(func(tx *bolt.Tx) error {
			if tx.Size() > info.Size() {
				return fmt.Errorf("file is cut short: %d bytes of %d", info.Size(), tx.Size())
			}
			return nil
		})
	})
	if err != nil && db != nil {
		_ = db.Close() // err is more specific
	}
	return db, classify(err)
}

// metaOf reads the meta record of an open file, whose pages may be damaged.
func metaOf(db *bolt.DB) (m meta, err error) {
	err = fault.Catch(func() error {
		return db.View(func(tx *bolt.Tx) (err error) {
			m, err = readMeta(tx)
			return err
		})
	})
	return m, err
}

// createFile makes an empty store. The file gets its name when it is complete, so a crash leaves no
// partial file under that name.
func createFile(path string, m meta) error {
	temporary := path + newSuffix
	if err := removeIfThere(temporary); err != nil {
		return err
	}
	if err := writeEmpty(temporary, m); err != nil {
		return errors.Join(err, removeIfThere(temporary)) // a full disk needs the space
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

func writeEmpty(path string, m meta) error {
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
		return m.write(tx)
	})
	return errors.Join(err, db.Close())
}

// Suffixes of the files stored next to the store.
const (
	newSuffix        = ".new"                                // a store being made: an empty one, or a copy of the store
	rebuildingSuffix = ".rebuilding"                         // a store that will replace the store
	restoringSuffix  = ".restoring"                          // a store that an archive is being unpacked into
	loadingSuffix    = ".loading"                            // exists during a load: left over if the load ends the process
	damagedLabel     = "damaged"                             // followed by a time: a store that could not be loaded
	whileLoading     = "." + damagedLabel + "-while-loading" // the last store whose load ended the process, or was killed
	replacedLabel    = "replaced"                            // followed by a time: a store that another one replaced
)

// freeName returns path with label and time, and with a number if that name is taken.
func freeName(path, label string, now time.Time) (string, error) {
	base := path + "." + label + "-" + now.UTC().Format("20060102T150405Z")
	name := base
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
		name = base + "-" + strconv.Itoa(n)
	}
}

// rename renames a store that does not load.
func rename(path, aside string) error {
	if err := failpoint.Hit("store/before-set-aside"); err != nil {
		return err
	}
	stampAside(path)
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	if err := failpoint.Hit("store/after-set-aside"); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// keepAside gives the file at path a second name, so that another file can replace the first in one
// step.
func keepAside(path string) (aside string, err error) {
	if aside, err = freeName(path, replacedLabel, time.Now()); err != nil {
		return "", err
	}
	if err := secondName(path, aside); err != nil {
		return "", err
	}
	stampAside(aside)
	return aside, nil
}

// stampAside sets the file's modification time to now, from which RemoveSetAside counts. If that
// fails, it counts from the last save.
func stampAside(path string) {
	now := time.Now()
	_ = os.Chtimes(path, now, now)
}

// secondName links name to the file at path. On a file system without links, such as exFAT, it
// copies the file.
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

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// isThere reports whether the file exists.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// removeIfThere removes a file. It is no error if the file is missing.
func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
