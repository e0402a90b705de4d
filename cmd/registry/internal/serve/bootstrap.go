package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
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

// bootstrap makes a store from the newest good snapshot of the stream in the object store; the
// projector replays the rest. If there is none it does nothing, and everything is replayed, which
// is slower and equally right. It only waits for a broker that is away, since nothing can be served
// without it. The error is that of ctx or of the disk, or that the stream has lost events, which
// the server would otherwise serve as if they had never existed.
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
	c := &candidates{nc: nc, acceptLoss: s.cfg.AcceptLoss, stream: leader.Stream{JS: js, Name: s.cfg.Stream}, log: s.log, bucket: s.snapshots.bucket.Load()}
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
	acceptLoss bool

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
	if err = ignoreNone(err); err != nil && !c.acceptLoss {
		return fmt.Errorf("the snapshots cannot be listed, and only they tell whether the stream has lost anything (--accept-loss starts without them): %w", err)
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

// restoreFirst restores the newest candidate that is good, if any.
func (c *candidates) restoreFirst(ctx context.Context, path string) error {
	if c.missing {
		return c.checkMissing()
	}
	if c.info == nil {
		return nil // the projector reports it
	}
	slices.SortStableFunc(c.items, func(a, b bucket.Object) int { return cmp.Compare(b.Manifest.Sequence, a.Manifest.Sequence) })
	for _, item := range c.items {
		began := time.Now()
		err := c.restore(ctx, item, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.log.Warn("skipping unusable snapshot; trying an older one, or else a full replay; registry snapshot create makes a good one",
				"name", item.Name, "reason", err.Error())
			continue
		}
		c.log.Info("starting from a snapshot", "name", item.Name, "sequence", item.Manifest.Sequence,
			"digest", item.Manifest.Digest, "took", time.Since(began).Round(time.Millisecond).String())
		return nil
	}
	if c.info.State.LastSeq == 0 { // made again, perhaps with another epoch
		return c.checkMissing()
	}
	return c.checkLoss(ctx)
}

// checkLoss returns an error if no snapshot of the stream could be used and the stream has less
// than the newest one. It considers snapshots of the stream's current history. If the stream has no
// history, its marker may be lost too, so it considers the newest snapshot of each history.
func (c *candidates) checkLoss(ctx context.Context) error {
	h, marked, err := lineage.History(ctx, c.stream)
	if err != nil {
		return fmt.Errorf("it is not known whether the stream has lost anything: %w", err)
	}
	newest := map[string]bucket.Object{} // by history
	for _, o := range c.items {          // the highest sequence first
		name := o.Manifest.HistoryName()
		if _, has := newest[name]; !has && o.Manifest.Stream == c.stream.Name && o.Manifest.StreamEpoch == lineage.Of(c.info).StreamEpoch {
			newest[name] = o
		}
	}
	if o, has := newest[h.Name]; has && marked > 0 {
		newest = map[string]bucket.Object{h.Name: o}
	}
	for _, name := range slices.Sorted(maps.Keys(newest)) {
		if err := c.compare(newest[name]); err != nil {
			return err
		}
	}
	return nil
}

// compare returns an error if the stream has less than a snapshot of it.
func (c *candidates) compare(o bucket.Object) error {
	lost := ""
	switch has := c.info.State; {
	case c.beginsAfter(o.Manifest):
		lost = fmt.Sprintf("begins at %d, after its newest snapshot (%s, at %d)", has.FirstSeq, o.Name, o.Manifest.Sequence)
	case has.NumSubjects < uint64(o.Manifest.RecordCount()):
		lost = fmt.Sprintf("has %d subjects, fewer than the %d of its newest snapshot (%s)", has.NumSubjects, o.Manifest.RecordCount(), o.Name)
	default:
		return nil
	}
	if c.acceptLoss {
		c.log.Warn("starting from a stream that has lost events, as --accept-loss says: the stream " + lost)
		return nil
	}
	return fmt.Errorf("the stream %s %s, and no snapshot can be used: people who are listed would be unknown. Bring back what it lost with "+
		"registry recover, or start with --accept-loss to serve only what the stream has", c.stream.Name, lost)
}

// beginsAfter reports whether messages between the snapshot and the stream's first may be lost.
func (c *candidates) beginsAfter(m snapshots.Manifest) bool {
	return c.info.State.FirstSeq > m.Sequence+1
}

// checkMissing returns an error if there are snapshots of a stream that is missing or empty: the
// server would report every listed person as unlisted.
func (c *candidates) checkMissing() error {
	how, create := "empty", ""
	if c.missing {
		how, create = "missing", " --create-stream"
	}
	i := slices.IndexFunc(c.items, func(o bucket.Object) bool { return o.Manifest.Stream == c.stream.Name && o.Manifest.RecordCount() > 0 })
	switch {
	case i < 0:
		return nil
	case c.acceptLoss:
		c.log.Warn("the stream is "+how+", and there are snapshots of it; serving an empty one, as --accept-loss says", "name", c.items[i].Name)
		return nil
	}
	return fmt.Errorf("the stream %s is %s, and there are snapshots of it (such as %s): people who are listed would be unknown. Bring it back with "+
		"registry recover NAME%s, and --tombstones FILE beside it, or start with --accept-loss to serve an empty one "+
		"(with the embedded broker, do this first and set --min-entries)", c.stream.Name, how, c.items[i].Name, create)
}

// restore makes the store from one snapshot, if both its object and the archive itself show that
// the stream continues it.
func (c *candidates) restore(ctx context.Context, item bucket.Object, path string) error {
	if item.Err != nil {
		return item.Err
	}
	accept := func(m snapshots.Manifest) error { return c.accept(ctx, m) }
	if err := accept(item.Manifest); err != nil {
		return err
	}
	archive, err := c.bucket.Open(ctx, item)
	if err != nil {
		return err
	}
	r, err := snapshots.NewReader(archive)
	if err != nil {
		return err
	}
	if err := accept(r.Manifest); err != nil {
		return err
	}
	_, err = snapshots.Restore(ctx, r, snapshots.RestoreConfig{Path: path})
	if errors.Is(err, snapshots.ErrNotSynced) {
		c.log.Warn("restored from a snapshot, but after a power failure it may have to be done again", "name", item.Name, "error", err)
		return nil
	}
	return err
}

// accept returns why this stream does not continue a snapshot, or nil.
func (c *candidates) accept(ctx context.Context, m snapshots.Manifest) error {
	if m.Stream != c.stream.Name {
		return fmt.Errorf("it was made from the stream %.64q", m.Stream)
	}
	if err := lineage.Check(ctx, c.stream, m.Checkpoint); err != nil {
		return err
	}
	if c.beginsAfter(m) {
		return fmt.Errorf("it is at %d, and the stream begins at %d: what was in between may be lost to it", m.Sequence, c.info.State.FirstSeq)
	}
	return nil
}
