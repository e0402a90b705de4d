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

// Health returns nil while every stream can be written. After a failed write (a full disk, a
// removed disk) the server accepts no more events into that stream until it is restarted, and
// reports that only to publishers; the stream can still be read. Health may wait for the disk. Any
// goroutine may call it until Shutdown.
func (b *Broker) Health() error {
	if err := b.failed.Load(); err != nil {
		return *err
	}
	return mostSevere(b.current.Load().problems())
}

// problems returns the server's problems, except for streams that are being created or deleted:
// those were not lost at the start.
func (r *running) problems() []server.HealthzError {
	all := slices.DeleteFunc(r.health(), r.unused)
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

func (r *running) health() []server.HealthzError {
	return healthOf(func() []server.HealthzError { return r.srv.Healthz(&server.HealthzOptions{Details: true}).Errors },
		func() bool { return r.srv.ReadyForConnections(readyWithin) })
}

// healthOf asks again while the server that answers is ready: it gives itself a millisecond to find
// out whether it listens, and says that it does not when a busy machine takes that away.
func healthOf(ask func() []server.HealthzError, ready func() bool) []server.HealthzError {
	for {
		all := ask()
		if len(all) == 0 || all[0].Type != server.HealthzErrorConn || !ready() {
			return all
		}
	}
}

// unused reports whether a problem is of what an earlier configuration left in the store: of an
// account that does not exist now, or has no streams. The server calls its streams lost.
func (r *running) unused(e server.HealthzError) bool {
	if e.Account == "" {
		return false
	}
	acc, err := r.srv.LookupAccount(e.Account)
	return err != nil || !acc.JetStreamEnabled()
}

// warnOfUnused names what stays in the store, because nobody erases from it what is delisted.
func (r *running) warnOfUnused(log *logger, storeDir string) {
	var accounts []string
	for _, e := range slices.DeleteFunc(r.health(), func(e server.HealthzError) bool { return !r.unused(e) }) {
		accounts = append(accounts, e.Account)
	}
	for _, name := range slices.Compact(accounts) {
		log.Warnf("the streams of account %s are not used, as the configuration has no such account with JetStream; "+
			"they keep what is delisted: remove %s if you need nothing of it", name, filepath.Join(storeDir, server.JetStreamStoreDir, name))
	}
}

// mostSevere returns the first problem that is not temporary, else the first: a failing disk often
// turns read-only afterwards.
func mostSevere(all []server.HealthzError) (err error) {
	for _, e := range all {
		if now := errors.New(natserr.OneLine(errors.New(e.Error))); err == nil || Passes(err) && !Passes(now) {
			err = now
		}
	}
	return err
}

// Passes reports whether Recover can solve the problem that Health found, once the disk can be
// written: the disk was full or read-only, so nothing of the failed write is on it. After any other
// error, or a failed sync, the content of the disk is unknown; an operator must check it and
// restart the process.
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
	// minRoom is how many bytes must be free before a restart: enough that the disk is not full
	// again at once.
	minRoom = 8 << 20
	// trialBytes is how many bytes are written and synced to test whether the disk accepts data.
	trialBytes = 1 << 20
	// restartEvery is the minimum time between two attempts: each of them ends every client's
	// connection.
	restartEvery = 10 * time.Second
)

// errNotRestarted begins the error of Health if Recover could not start another server.
var errNotRestarted = errors.New("the broker cannot be started again")

// Recover restarts the server, on its address and its streams, if health Passes and its directory
// can be written again, at most every ten seconds. It reports whether it did. Every connection is
// closed and reconnects; acknowledged messages are kept. If the restart failed, Health returns the
// reason, and the next call tries again, unless earlier writes cannot be synced.
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

// restart replaces the server. It checks the options before it ends the old server, which can still
// be read.
func (b *Broker) restart() error {
	opts, internal, err := options(b.cfg)
	if err != nil {
		return err
	}
	end(b.current.Load().srv)
	return b.launch(opts, internal)
}

// writable tests the disk of the streams. A process killed during the test leaves one file, which
// the next one overwrites.
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

// errNotSynced begins the error of a disk that does not confirm earlier writes.
var errNotSynced = errors.New("what an earlier run has written cannot be synced")

// syncStreams syncs every file and directory of the streams below storeDir. A process that was
// killed between a write and its sync leaves a message that was never acknowledged and may not be
// on the disk. When that message is sent again, the next server finds it and acknowledges it as a
// duplicate, so it must be on the disk by then. A sync costs next to nothing if there is nothing to
// write. There must be no writer.
func syncStreams(storeDir string) error {
	if err := errors.Join(syncBelow(filepath.Join(storeDir, server.JetStreamStoreDir)), syncFile(storeDir)); err != nil {
		return fmt.Errorf("%w: %s", errNotSynced, natserr.OneLine(err))
	}
	return nil
}

// syncBelow does nothing if dir does not exist yet.
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
