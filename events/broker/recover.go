package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"example.org/registry/events/natserr"
)

// Health returns nil while every stream can be written. After a write that failed (a full disk, a
// disk that is gone) the server takes no more events into that stream until it is restarted, and
// tells only the publishers; what the stream holds can still be read. Health may wait for the disk.
// Any goroutine may call it until Shutdown.
func (b *Broker) Health() error {
	if err := b.failed.Load(); err != nil {
		return *err
	}
	return gravest(b.current.Load().problems())
}

// problems returns what the server finds wrong with itself, without streams that are being created
// or deleted: those have not been lost since it started.
func (r *running) problems() []server.HealthzError {
	all := r.srv.Healthz(&server.HealthzOptions{Details: true}).Errors
	r.mu.Lock()
	defer r.mu.Unlock()
	first, still := r.lost == nil, map[string]bool{}
	all = slices.DeleteFunc(all, func(e server.HealthzError) bool {
		if !strings.HasSuffix(e.Error, "could not be recovered") {
			return false
		}
		if first || r.lost[e.Error] {
			still[e.Error] = true
		}
		return !still[e.Error]
	})
	r.lost = still
	return all
}

// gravest returns the first problem that does not pass, else the first: a failing disk often turns
// read-only afterwards.
func gravest(all []server.HealthzError) (err error) {
	for _, e := range all {
		if now := errors.New(natserr.OneLine(errors.New(e.Error))); err == nil || Passes(err) && !Passes(now) {
			err = now
		}
	}
	return err
}

// Passes reports whether Recover can end what Health has found once the disk can be written: the
// disk was full or read-only, so nothing of the failed write is on it. After any other error, or
// one of a sync, nobody knows what is on the disk; an operator must check it and start the process
// again.
func Passes(health error) bool {
	switch {
	case errors.Is(health, errNotSynced):
		return false
	case errors.Is(health, errNotRestarted):
		return true
	}
	for _, number := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if strings.Contains(health.Error(), number.Error()) {
			return !strings.Contains(health.Error(), "write error: sync ")
		}
	}
	return false
}

const (
	// minRoom is how many bytes must be free before a restart: enough for the disk not to be full
	// again at once.
	minRoom = 8 << 20
	// trialBytes is how many bytes are written and synced to see whether the disk takes any.
	trialBytes = 1 << 20
	// restartEvery is the least time between two attempts: each of them ends every client's
	// connection.
	restartEvery = 10 * time.Second
)

// errNotRestarted begins what Health says when Recover could not start another server.
var errNotRestarted = errors.New("the broker cannot be started again")

// Recover restarts the server, on its address and its streams, when health Passes and its directory
// can be written again; at most every ten seconds. It reports whether it did. Every connection is
// cut and reconnects; what was acknowledged is kept. When the restart failed, Health says why, and
// the next call tries again, unless what was written before cannot be synced.
func (b *Broker) Recover(health error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || !Passes(health) || time.Since(b.restarts) < restartEvery || b.writable() != nil {
		return false
	}
	b.restarts = time.Now()
	if err := b.restart(); err != nil {
		b.failed.Store(new(fmt.Errorf("%w: %w", errNotRestarted, err)))
		return false
	}
	b.failed.Store(nil)
	return true
}

// restart replaces the server. It checks the options before it ends the old one, which can still be
// read.
func (b *Broker) restart() error {
	opts, internal, err := options(b.cfg)
	if err != nil {
		return err
	}
	end(b.current.Load().srv)
	return b.launch(opts, internal)
}

// writable tries the disk of the streams. A process killed meanwhile leaves one file, which the
// next one overwrites.
func (b *Broker) writable() error {
	if freeBytes(b.cfg.StoreDir) < minRoom {
		return syscall.ENOSPC
	}
	f, err := os.Create(filepath.Join(b.cfg.StoreDir, "trial"))
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, trialBytes))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
}

// errNotSynced begins the error of a disk that does not confirm what was written.
var errNotSynced = errors.New("what an earlier run has written cannot be synced")

// syncStreams syncs every file and directory of the streams below storeDir. A process that was
// killed between a write and its sync leaves a message that was never acknowledged and may not be
// on the disk. The next server finds it, and acknowledges it as a duplicate when it is sent again,
// so it must be on the disk by then. Syncing costs next to nothing when nothing waits to be
// written. Nobody may write meanwhile.
func syncStreams(storeDir string) error {
	if err := errors.Join(syncBelow(filepath.Join(storeDir, server.JetStreamStoreDir)), syncFile(storeDir)); err != nil {
		return fmt.Errorf("%w: %s", errNotSynced, natserr.OneLine(err))
	}
	return nil
}

// syncBelow does nothing when dir does not exist yet.
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

// syncFile syncs a file or a directory. Some file systems cannot sync a directory and answer
// EINVAL.
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
