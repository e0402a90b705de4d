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
	damagedSuffix    = ".damaged"    // the last store that could not be loaded
	ReplacedSuffix   = ".replaced"   // the last store that Restore has replaced
)

const (
	// lockTimeout bounds the wait for bbolt's own lock on the file. LockDir keeps other servers out.
	lockTimeout = time.Second

	// mapSize is the address space that bbolt reserves for a store, which costs no memory. A file that outgrew it would
	// make bbolt wait for the end of every reader, to map the file elsewhere.
	mapSize = min(64<<30, math.MaxInt/2)

	// eraseEvery is the time between two erasures of free pages.
	eraseEvery = time.Hour
)

// openBolt opens or makes a bbolt file.
func openBolt(path string) (db *bolt.DB, err error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() == 0 {
		return nil, errors.New("the file is empty") // bbolt would take it for a new one
	}

	err = fault.Catch(func() error {
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout, FreelistType: bolt.FreelistMapType, InitialMmapSize: mapSize})
		return err
	})
	return db, err
}

// eraseFree overwrites the free pages of db, whose file is at path, with zeros, since bbolt leaves deleted text in
// them. db must have no readers: a reader may still read a page that was freed after the reader began.
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

	tx, err := db.Begin(true) // releases the pages that earlier transactions have freed
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // the transaction writes nothing

	const metaPages = 2 // these pages come first, and are never free
	size := int64(db.Info().PageSize)
	for number := int64(metaPages); number*size < info.Size(); number++ {
		page, err := tx.Page(int(number))
		if err != nil {
			return err
		}

		// page is nil after the last page of the database, where a failed transaction may have left text.
		isUsed := page != nil && page.Type != "free"
		if isUsed {
			continue
		}
		if err := erasePage(file, number*size, size); err != nil {
			return err
		}
	}
	return file.Sync()
}

// erasePage overwrites a page with zeros, unless it has only zeros already.
func erasePage(file *os.File, offset, size int64) error {
	content := make([]byte, size)
	n, err := file.ReadAt(content, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}

	zeros := make([]byte, n)
	if bytes.Equal(content[:n], zeros) {
		return nil
	}

	_, err = file.WriteAt(zeros, offset)
	return err
}

// SetAside renames a damaged store, and returns the new name. It replaces a store that was set aside earlier.
func SetAside(path string) (name string, err error) {
	return path + damagedSuffix, RenameDurably(path, path+damagedSuffix)
}

// RemoveLeftovers removes the files that a killed process has left next to the store at path.
func RemoveLeftovers(path string) error {
	return errors.Join(os.RemoveAll(path+RebuildingSuffix), os.RemoveAll(path+restoringSuffix))
}

// RenameDurably renames a file, and syncs its directory.
func RenameDurably(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// isSystemError reports whether err comes from the system or from another program's lock, and not from the content
// of the file.
func isSystemError(err error) bool {
	if errors.Is(err, syscall.EFBIG) { // a damaged page has led far beyond the end of the file
		return false
	}
	var number syscall.Errno
	return errors.As(err, &number) || errors.Is(err, bolterrors.ErrTimeout)
}

// remedies for errors of the store's file or of the data directory.
var remedies = []struct {
	cause  error
	remedy string
}{
	{syscall.EISDIR, "move that directory away, or choose another data directory with --data-dir"},
	{syscall.ENOTDIR, "choose a directory with --data-dir"},
	{fs.ErrPermission, "make it readable and writable for this user, or choose another data directory with --data-dir"},
	{fs.ErrNotExist, "make that directory, or choose another with --data-dir"},
	{bolterrors.ErrTimeout, "close the other program that has the file open"},
	{syscall.ENOSPC, "make space on the disk"},
	{syscall.EDQUOT, "make space on the disk"},
	{syscall.ENOMEM, "lift the limit on the address space of this process (ulimit -v, LimitAS)"},
	{syscall.EROFS, "make the disk writable, or choose a data directory on another disk with --data-dir"},
}

// findRemedy returns what an operator can do about err.
func findRemedy(err error) string {
	for _, r := range remedies {
		if errors.Is(err, r.cause) {
			return r.remedy
		}
	}
	return "check the disk"
}
