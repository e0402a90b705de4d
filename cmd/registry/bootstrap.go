package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/projector"
	"example.org/registry/snapshots/bucket"
)

// awayLook is how often a server without saved state looks whether the broker has come.
const awayLook = 250 * time.Millisecond

// beginning says what is done before there is a projector.
func (l *live) beginning() string {
	if what := l.starting.Load(); what != nil {
		if why := l.unreachable(); why != "" {
			return *what + ": " + why
		}
		return *what
	}
	return "loading the saved state"
}

// bootstrap fills an empty data directory from the newest good snapshot of the stream in the object store;
// the projector replays the rest. Where there is none it does nothing: everything is replayed, which
// is slower and equally right. Only a broker that is away is waited for, since without it there is
// nothing to answer from. The error is that of ctx or of the disk.
func (s *server) bootstrap(ctx context.Context, nc *nats.Conn) error {
	if err := s.snapshots.reach(nc); err != nil {
		return err
	}
	if err := emptyDir(s.flags.temporaryDir()); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if _, err := os.Lstat(s.flags.storePath()); !errors.Is(err, fs.ErrNotExist) {
		return nil // snapshots.Open sees to what is there
	}
	defer s.live.starting.Store(nil)
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	const waiting = "nothing is saved here; waiting for the broker"
	c := &candidates{js: js, nc: nc, stream: string(s.flags.Stream), log: s.log, bucket: s.snapshots.bucket.Load()}
	s.live.starting.Store(new(waiting))
	c.why = func(err error) {
		if nc.IsConnected() { // else live knows more
			s.live.starting.Store(new(waiting + ": " + err.Error()))
		}
	}
	if err := c.find(ctx); err != nil {
		return err
	}
	s.live.starting.Store(new("nothing is saved here; loading a snapshot"))
	return c.restoreFirst(ctx, s.flags.storePath())
}

// candidates are the snapshots that a server may start from.
type candidates struct {
	js     jetstream.JetStream
	nc     *nats.Conn
	stream string
	log    *slog.Logger
	bucket *bucket.Bucket

	info  *jetstream.StreamInfo // nil: there is no stream
	items []bucket.Item
	why   func(error) // told why there is no answer
}

// find asks for the stream and the bucket until the broker has answered. What else than an answer
// comes from it is the projector's to tell.
func (c *candidates) find(ctx context.Context) error {
	for said := false; ; said = true {
		err := c.ask(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		silent := "does not answer about the stream"
		if !c.nc.IsConnected() {
			silent = "cannot be reached"
		}
		if !said {
			c.log.Warn("nothing is saved here and the broker "+silent+"; waiting for it", "error", err)
		}
		c.why(err)
		if !pauseFor(ctx, awayLook) {
			return ctx.Err()
		}
	}
}

// ask returns an error when there was no answer.
func (c *candidates) ask(ctx context.Context) error {
	if !c.nc.IsConnected() {
		return errors.New("not connected")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*askWithin)
	defer cancel()
	info, err := projector.StreamInfo(ctx, c.js, c.stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
	case err != nil && c.unanswered(err):
		return err
	case err != nil:
		return nil
	default:
		c.info = info
	}
	items, _, err := c.bucket.List(ctx)
	if ignoreNone(err) != nil {
		c.log.Warn("the object store cannot be read; everything is replayed from the stream", "error", err)
	}
	c.items = items
	return nil
}

// unanswered tells what passes from what the projector is to tell.
func (c *candidates) unanswered(err error) bool {
	return !c.nc.IsConnected() || errors.Is(err, projector.ErrLeaderless) || errors.Is(err, projector.ErrSilent) || errors.Is(err, events.ErrRefused)
}

// ignoreNone takes a bucket that nobody has made yet for an empty one.
func ignoreNone(err error) error {
	if errors.Is(err, bucket.ErrNone) {
		return nil
	}
	return err
}

// emptyDir removes what is in a directory, if there is one. It stays: it may be a disk of its own.
func emptyDir(path string) error {
	left, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, entry.Name())))
	}
	return err
}
