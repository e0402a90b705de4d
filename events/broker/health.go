package broker

import (
	"errors"
	"slices"
	"strings"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
)

// Health is nil while every stream can be written. After a write that failed (a full disk, a disk that has
// gone) the server takes no more events into that stream until it is started anew, and says so to
// publishers alone; what the stream holds can still be read. Health may wait for the disk. Any
// goroutine may call it until Shutdown.
func (b *Broker) Health() error {
	if err := b.failed.Load(); err != nil {
		return *err
	}
	return gravest(b.current.Load().troubles())
}

// troubles is what the server finds wrong with itself, but for streams that are being made or removed: those have not been
// lost since it started.
func (r *running) troubles() []server.HealthzError {
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

// gravest is the first that does not pass, else the first: a disk that fails often turns read-only after it.
func gravest(all []server.HealthzError) (err error) {
	for _, e := range all {
		if now := oneLine(errors.New(e.Error)); err == nil || Passes(err) && !Passes(now) {
			err = now
		}
	}
	return err
}

// Passes says whether Recover ends what Health has found, once the disk can be written: it was full or
// read-only, so that nothing of what failed is on it. After any other error, or one of a sync, nobody knows what the disk
// has; an operator is to look at it, and to start the process again.
func Passes(health error) bool {
	switch {
	case errors.Is(health, errNotSynced):
		return false
	case errors.Is(health, errNotAnew):
		return true
	}
	for _, number := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if strings.Contains(health.Error(), number.Error()) {
			return !strings.Contains(health.Error(), "write error: sync ")
		}
	}
	return false
}
