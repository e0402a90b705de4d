package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/projector"
	"example.org/registry/snapshots"
	"example.org/registry/snapshots/bucket"
)

// awayLook is how often a server without saved state looks whether the broker has come.
const awayLook = 250 * time.Millisecond

// beginning says what is done before there is a projector.
func (l *live) beginning() string {
	if what := l.starting.Load(); what != nil {
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
	c := &candidates{js: js, nc: nc, stream: string(s.flags.Stream), log: s.log, bucket: s.snapshots.bucket.Load()}
	s.live.starting.Store(new("nothing is saved here; waiting for the broker"))
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
}

// find asks for the stream and the bucket until the broker has answered. What else than an answer
// comes from it is the projector's to tell.
func (c *candidates) find(ctx context.Context) error {
	for said := false; ; said = true {
		err := c.ask(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if !said {
			c.log.Warn("nothing is saved here and the broker cannot be reached; waiting for it", "error", err)
		}
		if !pauseFor(ctx, awayLook) {
			return ctx.Err()
		}
	}
}

// ask returns an error when there was no answer.
func (c *candidates) ask(ctx context.Context) error {
	if !c.nc.IsConnected() {
		return cmp.Or(c.nc.LastError(), errors.New("not connected"))
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
	return !c.nc.IsConnected() || errors.Is(err, projector.ErrLeaderless) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrTimeout)
}

// ignoreNone takes a bucket that nobody has made yet for an empty one.
func ignoreNone(err error) error {
	if errors.Is(err, bucket.ErrNone) {
		return nil
	}
	return err
}

// restoreFirst restores the newest one that is good.
func (c *candidates) restoreFirst(ctx context.Context, path string) error {
	if c.info == nil {
		c.lost()
		return nil
	}
	slices.SortStableFunc(c.items, func(a, b bucket.Item) int { return cmp.Compare(b.Manifest.Sequence, a.Manifest.Sequence) })
	for _, item := range c.items {
		began := time.Now()
		err := c.restore(ctx, item, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.log.Warn("snapshot passed over: an older one or the whole stream does; registry snapshot create makes a good one",
				"name", item.Name, "reason", err.Error())
			continue
		}
		c.log.Info("starting from a snapshot", "name", item.Name, "sequence", item.Manifest.Sequence,
			"digest", item.Manifest.Digest, "took", time.Since(began).Round(time.Millisecond))
		return nil
	}
	return nil
}

// lost tells the operator of snapshots whose stream is gone: an empty one is about to be made.
func (c *candidates) lost() {
	for _, item := range c.items {
		if item.Manifest.Stream == c.stream {
			c.log.Error("the stream is missing, and there are snapshots of it: an empty one is made and served; "+
				"if it was lost, bring it back with registry export NAME | registry publish -", "name", item.Name)
			return
		}
	}
}

// restore makes the store out of one snapshot. It is refused by what its object says, and again by what
// the archive itself says.
func (c *candidates) restore(ctx context.Context, item bucket.Item, path string) error {
	if item.Bad != nil {
		return item.Bad
	}
	accept := func(m snapshots.Manifest) error { return c.accept(ctx, m) }
	if err := accept(item.Manifest); err != nil {
		return err
	}
	archive, err := c.bucket.Open(ctx, item)
	if err != nil {
		return err
	}
	_, _, err = snapshots.Restore(ctx, archive, snapshots.Restoring{Path: path, Accept: accept})
	return err
}

// accept says why a snapshot cannot be continued from this stream.
func (c *candidates) accept(ctx context.Context, m snapshots.Manifest) error {
	epoch, state := projector.EpochOf(c.info), c.info.State
	switch {
	case m.Stream != c.stream:
		return fmt.Errorf("it is of the stream %.64q", m.Stream)
	case m.StreamEpoch != epoch:
		return fmt.Errorf("it is of another stream of this name: its epoch is %.64q, not %.64q", m.StreamEpoch, epoch)
	case m.Sequence > state.LastSeq:
		return fmt.Errorf("it is at %d, and the stream ends at %d", m.Sequence, state.LastSeq)
	case m.Sequence+1 < state.FirstSeq:
		return fmt.Errorf("it is at %d, and the stream begins at %d: what was in between may be lost to it", m.Sequence, state.FirstSeq)
	}
	return c.acceptMessage(ctx, m)
}

// acceptMessage compares the message at the snapshot's sequence. That there is none proves nothing: newer ones
// of its subject push it out, unless the stream was made at another time than the snapshot's.
func (c *candidates) acceptMessage(ctx context.Context, m snapshots.Manifest) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	s, err := c.js.Stream(ctx, c.stream)
	if err != nil {
		return err
	}
	at, err := s.GetMsg(ctx, m.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return c.acceptCreated(m)
	}
	if err != nil {
		return err
	}
	if at.Header.Get(jetstream.MsgIDHeader) != m.MessageID || !at.Time.Equal(m.MessageTime) {
		return fmt.Errorf("the stream has another message at %d", m.Sequence)
	}
	return nil
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

// acceptCreated tells a stream that was made again with the old one's metadata.
func (c *candidates) acceptCreated(m snapshots.Manifest) error {
	if m.StreamCreated.IsZero() || m.StreamCreated.Equal(c.info.Created) {
		return nil
	}
	return fmt.Errorf("the stream was made again at %s, and has no message at %d", c.info.Created.UTC().Format(time.RFC3339), m.Sequence)
}
