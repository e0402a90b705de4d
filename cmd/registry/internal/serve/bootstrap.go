package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/projector/lineage"
	"example.org/registry/snapshots"
	"example.org/registry/snapshots/bucket"
)

const (
	askWithin = 3 * time.Second // for one request to JetStream
	// awayLook is how often a server without saved state checks for the broker.
	awayLook = 250 * time.Millisecond
)

// bootstrap makes a store from the newest good snapshot of the stream's history in the object store;
// the projector joins it with the stream. If there is none it does nothing, and everything is
// replayed. It only waits for a broker that is away, since nothing can be served without it. The
// error is that of ctx or of the disk, or that the stream or its snapshots cannot be used, which the
// server would otherwise serve as if nobody had been listed.
func (s *server) bootstrap(ctx context.Context, connected <-chan jetstream.JetStream) error {
	var js jetstream.JetStream
	select {
	case js = <-connected:
	case <-ctx.Done():
		return ctx.Err()
	}
	nc := js.Conn()
	const waiting = "nothing is saved here; waiting for the broker"
	s.live.starting.Store(new(waiting))
	defer s.live.starting.Store(nil)
	c := &candidates{nc: nc, acceptLoss: s.cfg.AcceptLoss, embedded: s.cfg.embedded(), stream: leader.Stream{JS: js, Name: s.cfg.Stream}, log: s.log, bucket: s.snapshots.bucket.Load()}
	c.setReason = func(err error) {
		if nc.IsConnected() { // otherwise live has a better reason
			s.live.starting.Store(new(waiting + ": " + err.Error()))
		}
	}
	if err := c.find(ctx); err != nil {
		return err
	}
	s.live.starting.Store(new("nothing is saved here; loading a snapshot"))
	return c.restoreFirst(ctx, s.cfg.storePath())
}

// candidates are the snapshots that a server may start from.
type candidates struct {
	nc         *nats.Conn
	stream     leader.Stream
	log        *slog.Logger
	bucket     *bucket.Bucket
	acceptLoss string // an epoch; see epoch
	embedded   bool   // the broker is this process

	info    *jetstream.StreamInfo // nil: the broker has said why there is none
	missing bool                  // there is no stream
	items   []bucket.Object

	setReason func(error) // called with the reason for the lack of a reply
}

// find requests the stream and the bucket until the broker has replied. The projector reports any
// other error.
func (c *candidates) find(ctx context.Context) error {
	for said := false; ; said = true {
		err := c.list(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		silent := "does not answer about the stream or its snapshots"
		if !c.nc.IsConnected() {
			silent = "cannot be reached"
		}
		if !said {
			c.log.Warn("nothing is saved here and the broker "+silent+"; waiting for it", "error", err)
		}
		c.setReason(err)
		if !pause.For(ctx, awayLook) {
			return ctx.Err()
		}
	}
}

// list returns an error if there was no reply.
func (c *candidates) list(ctx context.Context) error {
	if !c.nc.IsConnected() {
		return errors.New("not connected")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*askWithin)
	defer cancel()
	info, err := c.stream.Info(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		c.missing = true
	case err != nil && c.unanswered(err):
		return err
	case err != nil:
		return nil
	default:
		c.info, c.missing = info, false
	}
	items, _, err := c.bucket.List(ctx)
	if err = ignoreNone(err); err != nil && !c.accepted() {
		return fmt.Errorf("the snapshots cannot be listed, and only they tell whether the stream has lost anything (%s starts without them): %w", c.acceptFlag(), err)
	}
	if err != nil {
		c.log.Warn("the snapshots cannot be listed; replaying the whole stream, as --accept-loss says", "error", err)
	}
	c.items = items
	return nil
}

// unanswered reports whether an error is temporary; the projector reports the others.
func (c *candidates) unanswered(err error) bool {
	return !c.nc.IsConnected() || errors.Is(err, leader.ErrLeaderless) || errors.Is(err, natserr.ErrSilent) || errors.Is(err, natserr.ErrRefused)
}

// ignoreNone treats a bucket that does not exist yet as an empty one.
func ignoreNone(err error) error {
	if errors.Is(err, bucket.ErrNoBucket) {
		return nil
	}
	return err
}

// emptyDir removes the content of a directory, if there is one. The directory stays: it may be a
// mounted disk. Links in it are removed, and not what they lead to.
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

// restoreFirst restores the newest candidate of the stream's history that is good, if any. Whatever
// its position, the projector reads what the stream does not hold as it was.
func (c *candidates) restoreFirst(ctx context.Context, path string) error {
	if c.missing || c.info != nil && c.info.State.LastSeq == 0 {
		return c.checkMissing()
	}
	if c.info == nil || len(c.items) == 0 {
		return nil
	}
	marker, _, err := lineage.Newest(ctx, c.stream, math.MaxUint64)
	if err != nil {
		return fmt.Errorf("the stream's history cannot be read: %w", err)
	}
	names, unusable := marker.Names(lineage.Of(c.info)), error(nil)
	for _, item := range c.items { // the newest first
		if !item.Of(c.stream.Name, names) {
			c.log.Info("passing over a snapshot of another history", "name", item.Name)
			continue
		}
		began := time.Now()
		err := c.restore(ctx, item, path, names)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			unusable = cmp.Or(unusable, fmt.Errorf("%s: %w", item.Name, err))
			c.log.Warn("skipping unusable snapshot; trying an older one; registry snapshot create makes a good one",
				"name", item.Name, "reason", err.Error())
			continue
		}
		c.log.Info("starting from a snapshot", "name", item.Name, "sequence", item.Manifest.Sequence,
			"digest", item.Manifest.Digest, "took", time.Since(began).Round(time.Millisecond).String())
		return nil
	}
	return c.withoutSnapshots(unusable)
}

// withoutSnapshots returns an error if there are snapshots of the stream and none is usable, for the
// reason: they may have what the stream lacks.
func (c *candidates) withoutSnapshots(reason error) error {
	switch {
	case reason == nil:
		return nil
	case c.accepted():
		c.log.Warn("no snapshot of the stream can be used; replaying the whole stream, as --accept-loss says", "reason", reason.Error())
		return nil
	}
	return fmt.Errorf("no snapshot of the stream %s can be used (%w), and only they tell whether the stream has lost anything; "+
		"%s starts without them", c.stream.Name, reason, c.acceptFlag())
}

// checkMissing returns an error if there are snapshots of a stream that is missing or empty: the
// server would report every listed person as unlisted.
func (c *candidates) checkMissing() error {
	how, create := "empty", ""
	if c.missing {
		how, create = "missing", " --create-stream"
	}
	newest, has := c.newest()
	switch {
	case !has:
		return nil
	case c.accepted():
		c.log.Warn("the stream is "+how+", and there are snapshots of it; serving an empty one, as --accept-loss says", "name", newest.Name)
		return nil
	}
	first := ""
	if c.embedded {
		first = "start with " + c.acceptFlag() + " --min-entries 1, for this process is the broker too, and then "
	}
	return fmt.Errorf("the stream %s is %s, and there are snapshots of it (the newest is %s): people who are listed would be unknown. "+
		"To bring it back, %srun registry recover %s%s --tombstones FILE (or --without-tombstones: whoever was delisted since would be listed again); "+
		"%s serves an empty one", c.stream.Name, how, newest.Name, first, newest.Name, create, c.acceptFlag())
}

// newest returns the newest snapshot of the stream that has anything, or false.
func (c *candidates) newest() (bucket.Object, bool) {
	i := slices.IndexFunc(c.items, func(o bucket.Object) bool {
		return o.Of(c.stream.Name, nil) && (o.Err != nil || o.Manifest.RecordCount() > 0)
	})
	if i < 0 {
		return bucket.Object{}, false
	}
	return c.items[i], true
}

// epoch returns what --accept-loss has to name: the stream's epoch, or without a stream the history of
// the newest snapshot.
func (c *candidates) epoch() string {
	if c.info != nil {
		return lineage.Of(c.info).StreamEpoch
	}
	newest, _ := c.newest()
	return cmp.Or(newest.Manifest.HistoryName(), newest.Name)
}

func (c *candidates) accepted() bool { return c.acceptLoss != "" && c.acceptLoss == c.epoch() }

// acceptFlag returns the flag that starts without what may be lost.
func (c *candidates) acceptFlag() string { return "--accept-loss " + c.epoch() }

// restore makes the store from one snapshot.
func (c *candidates) restore(ctx context.Context, item bucket.Object, path string, names []string) error {
	if item.Err != nil {
		return item.Err
	}
	archive, err := c.bucket.Open(ctx, item)
	if err != nil {
		return err
	}
	r, err := snapshots.NewReader(archive)
	if err != nil {
		return err
	}
	if !lineage.Share(r.Manifest.Histories, names) {
		return errors.New("the archive is of another history than its manifest in the bucket")
	}
	_, err = snapshots.Restore(ctx, r, snapshots.RestoreConfig{Path: path, Join: true})
	if errors.Is(err, snapshots.ErrNotSynced) {
		c.log.Warn("restored from a snapshot, but after a power failure it may have to be done again", "name", item.Name, "error", err)
		return nil
	}
	return err
}
