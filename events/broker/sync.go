package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
)

// errNotSynced begins what is said of a disk that does not confirm what it has been given.
var errNotSynced = errors.New("what an earlier run has written cannot be synced")

// syncStreams syncs every file and directory of the streams below storeDir. A process that was killed between a write and
// its sync leaves a message that was never acknowledged and may not be on the disk. The next server finds it, and
// acknowledges it as a duplicate when it is sent again: so it has to be there by then. Where nothing is waiting to be
// written that costs next to nothing. Nobody may be writing meanwhile.
func syncStreams(storeDir string) error {
	if err := errors.Join(syncBelow(filepath.Join(storeDir, server.JetStreamStoreDir)), syncFile(storeDir)); err != nil {
		return fmt.Errorf("%w: %w", errNotSynced, oneLine(err))
	}
	return nil
}

// syncBelow does nothing where there is no dir yet.
func syncBelow(dir string) error {
	dir, err := filepath.EvalSymlinks(dir) // the walk would not follow one
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		return syncFile(path)
	})
}

// syncFile syncs a file or a directory. Some file systems have nothing to sync in a directory, and say that it is no argument.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if info, _ := f.Stat(); info != nil && info.IsDir() && errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
