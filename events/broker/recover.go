package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// minRoom is how many bytes must be free before a server is started anew: enough not to be full again at once.
	minRoom = 8 << 20
	// trialBytes are written and synced to see whether the disk takes anything.
	trialBytes = 1 << 20
	// restartEvery is the least time between two attempts: each of them ends every client's connection.
	restartEvery = 10 * time.Second
)

// errNotAnew begins what Health says when Recover could not start another server.
var errNotAnew = errors.New("no server can be started in the place of the old one")

// Recover starts the server anew, on its address and its streams, when health Passes and its directory can be
// written again; at most every ten seconds. Every connection is cut and made again; what was acknowledged is
// kept. It says whether it has done that. When it could not, Health says why, and the next call tries again, unless
// what was written before cannot be synced.
func (b *Broker) Recover(health error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || !Passes(health) || time.Since(b.restarts) < restartEvery || b.writable() != nil {
		return false
	}
	b.restarts = time.Now()
	if err := b.again(); err != nil {
		b.failed.Store(new(fmt.Errorf("%w: %w", errNotAnew, err)))
		return false
	}
	b.failed.Store(nil)
	return true
}

// again puts a new server in the place of the old one. What can be found wrong before the old one ends is: it
// can still be read.
func (b *Broker) again() error {
	opts, internal, err := options(b.cfg)
	if err != nil {
		return err
	}
	end(b.current.Load().srv)
	return b.launch(opts, internal)
}

// writable tries the disk of the streams. Whoever is killed meanwhile leaves one file, for the next to write over.
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
