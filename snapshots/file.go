package snapshots

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	// lockTimeout bounds the wait for bbolt's own lock on the file. LockDir has excluded other
	// servers; this is for a tool that looks into the file.
	lockTimeout = time.Second

	// initialMmap is the address space reserved for the map, in bytes, so that it seldom has to be
	// moved, which a long read transaction would delay. It costs no memory.
	initialMmap = 1 << 30
)

// damage marks an error that says the file itself is bad, so that it may be set aside.
type damage struct{ error }

func (d damage) Unwrap() error { return d.error }

// classify makes err a damage unless the system, not the file, is to blame.
func classify(err error) error {
	var number syscall.Errno
	if err == nil || errors.As(err, &number) || errors.Is(err, bolterrors.ErrTimeout) || errors.As(err, &damage{}) {
		return err
	}
	return damage{err}
}

// openFile opens the bbolt file for writing. It does not make one.
func openFile(path string) (db *bolt.DB, err error) {
	if err := checkSize(path); err != nil {
		return nil, err
	}
	var file *os.File
	err = guard(func() (err error) {
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
		_ = file.Close() // a panic inside Open leaves it open, and locked
	}
	return db, classify(err)
}

// openExisting keeps bbolt from making a file where there was none, or where one has vanished.
func openExisting(path string, flag int, mode os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag&^os.O_CREATE, mode)
}

// checkSize compares the length that the meta pages ask for with that of the file. Opened for
// reading, bbolt touches the meta pages only.
func checkSize(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return &os.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	}
	if info.Size() == 0 {
		return damage{errors.New("file is empty")} // bbolt would take it for a new one
	}
	var want int64
	err = guard(func() error {
		db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockTimeout, OpenFile: openExisting})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bolt.Tx) error {
			want = tx.Size()
			return nil
		})
	})
	if err == nil && want > info.Size() {
		err = fmt.Errorf("file is cut short: %d bytes of %d", info.Size(), want)
	}
	return classify(err)
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readThrough reads the whole file by ordinary calls. On the memory map a disk error and a bad page look
// alike; here only the disk error is one.
func readThrough(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

// removeIfThere removes a file; that there is none is no error.
func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
