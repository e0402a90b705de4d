package snapshots

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"example.org/registry/readmodel/fault"
)

// Suffixes of the files next to a store.
const (
	RebuildingSuffix = ".rebuilding" // a store that will replace the store
	restoringSuffix  = ".restoring"  // a store that a snapshot is being unpacked into
	compactingSuffix = ".compacting" // a copy of the store without its free pages
	damagedSuffix    = ".damaged"    // the last store that could not be loaded
)

const (
	// lockTimeout bounds the wait for bbolt's own lock on the file. LockDir keeps other servers out.
	lockTimeout = time.Second

	// mapSize is the address space for the map of a store: to move the map, bbolt waits until every
	// reader has ended. It costs no memory.
	mapSize = min(64<<30, math.MaxInt/2)
)

// openBolt opens or makes a bbolt file.
func openBolt(path string) (db *bolt.DB, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && path != "":
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, syscall.EISDIR
	case info.Size() == 0:
		return nil, errors.New("the file is empty") // bbolt would take it for a new one
	}
	err = fault.Catch(func() error {
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout, FreelistType: bolt.FreelistMapType, InitialMmapSize: mapSize})
		return err
	})
	return db, err
}

// closeBolt closes db after a transaction with an error. After a panic bbolt may hold its locks for
// ever, so the file stays open then.
func closeBolt(db *bolt.DB, err error) error {
	if errors.Is(err, fault.Err) {
		return nil
	}
	return db.Close()
}

// compact makes the file anew if more than half of its pages are free, since they may hold deleted
// text for ever. If that fails, as on a full disk, the file stays as it is.
func compact(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	from, err := openBolt(path)
	if err != nil {
		return err
	}
	err = fault.Catch(func() error {
		pages := int64(0)
		err := from.View(func(tx *bolt.Tx) error {
			pages = tx.Size() / int64(from.Info().PageSize)
			return nil
		})
		if err != nil || 2*int64(from.Stats().FreePageN) <= pages {
			return err
		}
		if compactInto(path+compactingSuffix, from) != nil {
			return removeIfThere(path + compactingSuffix)
		}
		return rename(path+compactingSuffix, path)
	})
	return errors.Join(err, closeBolt(from, err))
}

// compactTx is how much one transaction of a compaction writes, in bytes.
const compactTx = 16 << 20

func compactInto(path string, from *bolt.DB) error {
	if err := removeIfThere(path); err != nil {
		return err
	}
	to, err := openBolt(path)
	if err != nil {
		return err
	}
	err = bolt.Compact(to, from, compactTx)
	return errors.Join(err, to.Close())
}

// eraseEvery is the time between two erasures of free pages.
const eraseEvery = time.Hour

// eraseFree overwrites the free pages of the file at path, which db has open, with zeros: bbolt leaves
// deleted text in them. db must have no reader. The pages are those that bbolt would use next.
func eraseFree(db *bolt.DB, path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	tx, err := db.Begin(true) // releases what earlier transactions have freed
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing is written in it

	size := db.Info().PageSize
	zero, content := make([]byte, size), make([]byte, size)
	for page := 2; int64(page)*int64(size) < info.Size(); page++ { // the first two are meta pages
		p, err := tx.Page(page)
		if err != nil {
			return err
		}
		if p != nil && p.Type != "free" { // nil: beyond the end, of a failed transaction
			continue
		}
		at := int64(page) * int64(size)
		n, err := file.ReadAt(content, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if bytes.Equal(content[:n], zero[:n]) {
			continue
		}
		if _, err := file.WriteAt(zero[:n], at); err != nil {
			return err
		}
	}
	return file.Sync()
}

// SetAside renames a store that is damaged, replacing an earlier one, and returns its new name.
func SetAside(path string) (name string, err error) {
	return path + damagedSuffix, rename(path, path+damagedSuffix)
}

// RemoveLeftovers removes what a killed process has left next to the store at path.
func RemoveLeftovers(path string) error {
	return errors.Join(removeIfThere(path+RebuildingSuffix), removeIfThere(path+restoringSuffix), removeIfThere(path+compactingSuffix))
}

// rename renames a file, durably.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// removeIfThere removes a file. A missing one is no error.
func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isSystems reports whether err comes from the system or another program's lock, and not from the
// content of the file.
func isSystems(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) || errors.Is(err, bolterrors.ErrTimeout)
}

// remedy returns an operator's remedy for an error of the store's file or of the data directory.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.EISDIR):
		return "move that directory away, or choose another data directory with --data-dir"
	case errors.Is(err, syscall.ENOTDIR):
		return "choose a directory with --data-dir"
	case errors.Is(err, fs.ErrPermission):
		return "make it readable and writable for this user, or choose another data directory with --data-dir"
	case errors.Is(err, fs.ErrNotExist):
		return "make that directory, or choose another with --data-dir"
	case errors.Is(err, bolterrors.ErrTimeout):
		return "close the other program that has the file open"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make space on the disk"
	case errors.Is(err, syscall.ENOMEM):
		return "lift the limit on the address space of this process (ulimit -v, LimitAS)"
	case errors.Is(err, syscall.EROFS):
		return "make the disk writable, or choose a data directory on another disk with --data-dir"
	}
	return "check the disk"
}
