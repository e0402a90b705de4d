package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/httpapi/admin"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/indexing"
	"example.org/registry/snapshots"
	"example.org/registry/snapshots/bucket"
)

const (
	// flushWithin bounds the time of bringing the store to the checkpoint.
	flushWithin = 10 * time.Second
	// snapshotLook is how often the loop checks whether it may begin.
	snapshotLook = 500 * time.Millisecond
	// snapshotGrace is how long a server leaves the CPUs to clients after its start, and the wait
	// after a failure; or --snapshot-every if that is shorter.
	snapshotGrace = time.Minute
)

// snapshotter makes snapshots and exports of the running server, one at a time. Any goroutine may
// use it.
type snapshotter struct {
	live     *live
	log      *slog.Logger
	archives snapshots.ArchiveConfig
	every    time.Duration // 0 makes only those that operators request
	keep     int
	replicas int
	busy     chan struct{} // holds one value while something is being made
	lacking  int           // unpublished states when run looked last; used by run only

	bucket atomic.Pointer[bucket.Bucket] // nil until there is a connection to the broker
	stats  snapshotStats
}

func newSnapshotter(l *live, pacer *indexing.Pacer, cfg Config) *snapshotter {
	return &snapshotter{
		live: l, log: cfg.Logger, busy: make(chan struct{}, 1),
		archives: snapshots.ArchiveConfig{TempDir: cfg.temporaryDir(), Rest: pacer.Rest, Workers: 1},
		every:    cfg.SnapshotEvery, keep: cfg.SnapshotKeep, replicas: cfg.StreamReplicas,
	}
}

// open enables snapshots in the object store. The connection may be down, now or later.
func (k *snapshotter) open(js jetstream.JetStream) {
	k.bucket.Store(bucket.New(js, bucket.Config{Replicas: k.replicas}))
}

// begin refuses concurrent runs, since each takes as much disk as the store.
func (k *snapshotter) begin() (done func(), err error) {
	select {
	case k.busy <- struct{}{}:
		return func() { <-k.busy }, nil
	default:
		return nil, admin.Refused("a snapshot or export is being made; try again when it is done")
	}
}

// archive makes an archive at the checkpoint.
func (k *snapshotter) archive(ctx context.Context) (*snapshots.Archive, error) {
	if err := k.flush(ctx); err != nil {
		return nil, err
	}
	g := k.live.current()
	if g.store.Checkpoint().Sequence == 0 {
		return nil, admin.Unavailable("the stream has no events yet, so there is nothing to save")
	}
	a, err := g.store.Archive(ctx, k.archives)
	return a, cli.Advise(err)
}

// flush brings the store to the checkpoint. It fails until the model has been complete once.
func (k *snapshotter) flush(ctx context.Context) error {
	g := k.live.current()
	if p, _ := g.progress(); !p.CaughtUp {
		return admin.Unavailable("the server has not caught up with the stream yet; try again when registry ready says so")
	}
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if err := g.projector.Flush(ctx); err != nil {
		return admin.Unavailable("the store is not at the checkpoint: " + err.Error())
	}
	return nil
}

func (k *snapshotter) connected() bool {
	p, _ := k.live.progress()
	return p.Connected
}

// run makes snapshots at intervals until ctx ends (cmd/registry/CONTRACT.md#snapshots). Replicas of
// one stream share the interval: the age of the newest snapshot counts, whichever replica made it.
func (k *snapshotter) run(ctx context.Context) error {
	if k.every <= 0 {
		return nil
	}
	for p, _ := k.live.progress(); !p.CaughtUp; p, _ = k.live.progress() { // until the model is complete
		if !pause.For(ctx, snapshotLook) {
			return nil
		}
	}
	last := ""
	for wait := min(k.every, snapshotGrace); k.wait(ctx, wait); {
		var err error
		wait, err = k.makeIfDue(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			last = ""
			continue
		}
		wait = min(k.every, snapshotGrace)
		if errors.Is(err, natserr.ErrRefused) { // each attempt makes an archive first
			wait = k.every
			err = fmt.Errorf("%w; where another server makes the snapshots, give this one --snapshot-every 0", err)
		}
		k.stats.failed(ctx)
		if err.Error() != last { // once for each reason
			k.log.Error("no snapshot was made; trying again in "+wait.String(), "error", err)
		}
		last = err.Error()
	}
	return nil
}

// wait waits for d, or until more states are unpublished. It returns false if ctx has ended.
func (k *snapshotter) wait(ctx context.Context, d time.Duration) bool {
	for end := time.Now().Add(d); time.Until(end) > 0 && !k.lacksMore(); {
		if !pause.For(ctx, min(snapshotLook, time.Until(end))) {
			return false
		}
	}
	return ctx.Err() == nil
}

// lacksMore reports, once, that the stream lacks more of what is known than before.
func (k *snapshotter) lacksMore() bool {
	p, _ := k.live.progress()
	more := p.Unpublished > k.lacking
	k.lacking = p.Unpublished
	return more
}

// makeIfDue makes a snapshot if one is due, and returns when to check again.
func (k *snapshotter) makeIfDue(ctx context.Context) (next time.Duration, err error) {
	at := k.live.current().store.Checkpoint()
	p, _ := k.live.progress()
	if !p.Connected || p.Frozen() || p.Checkpoint == 0 {
		return min(k.every, snapshotGrace), nil // reported elsewhere
	}
	newest, age, err := k.newest(ctx, at, p.LastSequence)
	if err != nil {
		return 0, err
	}
	saved := newest != nil && newest.Err == nil && newest.Manifest.Digest == k.live.View().Digest().String()
	if wait := k.notDue(newest, age, p.Checkpoint); wait > 0 && (saved || p.Unpublished == 0) {
		return wait, nil
	}
	done, err := k.begin()
	if err != nil {
		return min(k.every, snapshotLook), nil // an operator is making one
	}
	defer done()
	_, err = k.upload(ctx)
	return k.every, err
}

// notDue returns how long no snapshot is due, or 0 if one is. newest may be nil.
func (k *snapshotter) notDue(newest *bucket.Object, age time.Duration, checkpoint uint64) time.Duration {
	switch {
	case newest == nil:
	case age >= 0 && age < k.every:
		return k.every - age
	case newest.Manifest.Sequence >= checkpoint && newest.Err == nil:
		return k.every // nothing has changed
	case age < 0: // its time is unknown
		k.log.Warn("the newest snapshot has a time in the future, so the broker's clock was set back; making another",
			"name", newest.Name, "ahead", (-age).Round(time.Second).String())
	}
	return 0
}

// newest returns the snapshot of our stream with the highest sequence up to last, nil if there is
// none, and its age by the broker's clock. A snapshot beyond the stream's end belongs to what the
// stream has lost.
func (k *snapshotter) newest(ctx context.Context, at readmodel.Checkpoint, last uint64) (*bucket.Object, time.Duration, error) {
	items, now, err := k.bucket.Load().List(ctx)
	if errors.Is(err, bucket.ErrNoBucket) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	items = slices.DeleteFunc(items, func(i bucket.Object) bool {
		return i.Manifest.Stream != at.Stream || i.Manifest.HistoryName() != at.HistoryName() || i.Manifest.Sequence > last
	})
	if len(items) == 0 {
		return nil, 0, nil
	}
	newest := slices.MaxFunc(items, func(a, b bucket.Object) int { return cmp.Compare(a.Manifest.Sequence, b.Manifest.Sequence) })
	k.stats.saw(newest)
	return &newest, now.Sub(newest.Time), nil
}

// upload makes an archive, puts it into the object store, and deletes old ones there. The caller has
// called begin.
func (k *snapshotter) upload(ctx context.Context) (bucket.Object, error) {
	b := k.bucket.Load()
	if b == nil || !k.connected() {
		return bucket.Object{}, admin.Unavailable("the broker and its object store cannot be reached; snapshot create --output FILE needs neither")
	}
	began := time.Now()
	if err := b.Create(ctx); err != nil {
		return bucket.Object{}, fmt.Errorf("object store: %w", cli.Advise(err))
	}
	a, err := k.archive(ctx)
	if err != nil {
		return bucket.Object{}, err
	}
	defer a.Close()
	item, err := b.Put(ctx, a.Manifest, a.Reader())
	if err != nil {
		return bucket.Object{}, fmt.Errorf("object store: %w", cli.Advise(err))
	}
	k.stats.made(item, time.Since(began))
	k.log.Info("snapshot made", "name", item.Name, "sequence", item.Manifest.Sequence, "digest", item.Manifest.Digest,
		"bytes", item.Bytes, "took", time.Since(began).Round(time.Millisecond).String())
	k.tidy(ctx, b, item)
	return item, nil
}

// tidy deletes old snapshots and leftovers of unfinished ones. The new snapshot counts even if that
// fails.
func (k *snapshotter) tidy(ctx context.Context, b *bucket.Bucket, newest bucket.Object) {
	gone, err := b.Prune(ctx, newest, k.keep)
	if err != nil {
		k.log.Warn("old snapshots were not erased", "error", err)
	}
	left, err := b.RemoveOrphans(ctx)
	if err != nil {
		k.log.Warn("what unfinished snapshots left was not erased", "error", err)
	}
	if len(gone)+left > 0 {
		k.log.Info("old snapshots erased", "names", gone, "unfinished", left)
	}
}

// Created is the response to POST /snapshots.
type Created struct {
	Name  string `json:"name"`
	Bytes uint64 `json:"bytes"` // of the archive
	snapshots.Manifest
}

// Create puts a snapshot at the checkpoint into the object store, for an operator.
func (k *snapshotter) Create(ctx context.Context) (any, error) {
	done, err := k.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	item, err := k.upload(ctx)
	if err != nil {
		k.stats.failed(ctx)
		return nil, err
	}
	return Created{Name: item.Name, Bytes: item.Bytes, Manifest: item.Manifest}, nil
}

// Archive makes an archive at the checkpoint for an operator. It does not touch the object store.
func (k *snapshotter) Archive(ctx context.Context) (io.ReadCloser, int64, error) {
	done, err := k.begin()
	if err != nil {
		return nil, 0, err
	}
	defer done()
	a, err := k.archive(ctx)
	if err != nil {
		return nil, 0, err
	}
	return archiveReader{a.Reader(), a}, a.Size(), nil
}

type archiveReader struct {
	io.Reader
	io.Closer
}

// Export writes the store's content at the checkpoint.
func (k *snapshotter) Export(ctx context.Context, w io.Writer, begin func()) error {
	done, err := k.begin()
	if err != nil {
		return err
	}
	defer done()
	if err := k.flush(ctx); err != nil {
		return err
	}
	return cli.Advise(k.live.current().store.Export(ctx, w, k.archives, begin))
}

// snapshotStats has the metrics of snapshots. Any goroutine may use it.
type snapshotStats struct {
	mu  sync.Mutex
	now snapshotNumbers
}

type snapshotNumbers struct {
	newest   bucket.Object // of our stream, by any replica; without a name, none is known
	took     time.Duration
	count    uint64 // made by this process
	failures uint64
}

func (s *snapshotStats) numbers() snapshotNumbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *snapshotStats) made(i bucket.Object, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.newest, s.now.took = i, took
	s.now.count++
}

func (s *snapshotStats) saw(i bucket.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.newest = i
}

// failed counts a failure, unless the caller has disconnected or the process is stopping.
func (s *snapshotStats) failed(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.failures++
}
