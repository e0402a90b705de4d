package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/httpapi/admin"
	"example.org/registry/snapshots"
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
	dir      string        // of temporary files
	every    time.Duration // 0 makes only those that operators request
	keep     int
	replicas int
	busy     sync.Mutex // held while a snapshot is being made

	bucket atomic.Pointer[snapshots.Bucket] // nil until there is a connection to the broker
	stats  snapshotStats
}

func newSnapshotter(l *live, cfg Config) *snapshotter {
	return &snapshotter{
		live: l, log: cfg.Logger, dir: cfg.temporaryDir(),
		every: cfg.SnapshotEvery, keep: cfg.SnapshotKeep, replicas: cfg.StreamReplicas,
	}
}

// open enables snapshots in the object store. The connection may be down, now or later.
func (k *snapshotter) open(js jetstream.JetStream) {
	k.bucket.Store(snapshots.NewBucket(js, k.replicas))
}

// flush brings the store to the checkpoint, and returns it. It fails until the model has been complete
// once.
func (k *snapshotter) flush(ctx context.Context) (*snapshots.Store, error) {
	g := k.live.current()
	if p, _ := g.progress(); !p.CaughtUp {
		return nil, admin.Unavailable("the server has not caught up with the stream yet; try again when registry ready says so")
	}
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if err := g.projector.Flush(ctx); err != nil {
		return nil, admin.Unavailable(err.Error())
	}
	return g.store, nil
}

// run makes snapshots at intervals until ctx ends. Replicas of one stream share the interval: the age
// of the newest snapshot counts, whichever replica made it.
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
	for wait := min(k.every, snapshotGrace); pause.For(ctx, wait); {
		var err error
		wait, err = k.makeIfDue(ctx)
		if err == nil || ctx.Err() != nil {
			last = ""
			continue
		}
		k.stats.failed(ctx)
		wait = min(k.every, snapshotGrace)
		if errors.Is(err, natserr.ErrRefused) {
			wait = k.every
			err = fmt.Errorf("%w; where another server makes the snapshots, give this one --snapshot-every 0", err)
		}
		if err.Error() != last { // once for each reason
			k.log.Error("no snapshot was made; trying again in "+wait.String(), "error", err)
		}
		last = err.Error()
	}
	return nil
}

// makeIfDue makes a snapshot if one is due, and returns when to check again.
func (k *snapshotter) makeIfDue(ctx context.Context) (next time.Duration, err error) {
	soon := min(k.every, snapshotGrace)
	p, _ := k.live.progress()
	if !p.Connected || p.Frozen != "" || p.Reading || p.Checkpoint == 0 {
		return soon, nil // reported elsewhere
	}
	newest, err := k.newest(ctx)
	if err != nil {
		return 0, err
	}
	unchanged := newest != nil && newest.Header.Digest == k.live.View().Digest().String() && newest.Header.Epoch == p.Epoch
	if unchanged {
		return k.every, nil
	}
	if newest != nil {
		if age := time.Since(newest.Time); age >= 0 && age < k.every {
			return k.every - age, nil
		}
	}
	k.busy.Lock()
	defer k.busy.Unlock()
	_, err = k.upload(ctx)
	return k.every, err
}

// newest returns the newest readable snapshot of the registry, or nil.
func (k *snapshotter) newest(ctx context.Context) (*snapshots.Object, error) {
	all, err := k.bucket.Load().List(ctx)
	if err != nil {
		return nil, err
	}
	p, _ := k.live.progress()
	for i := range all {
		if all[i].Err == nil && p.Related(all[i].Header.Identity) {
			k.stats.saw(all[i])
			return &all[i], nil
		}
	}
	return nil, nil
}

// upload puts a snapshot into the object store, and deletes old ones there. The caller has called
// begin.
func (k *snapshotter) upload(ctx context.Context) (snapshots.Object, error) {
	b := k.bucket.Load()
	p, _ := k.live.progress()
	if b == nil || !p.Connected {
		return snapshots.Object{}, admin.Unavailable("the broker and its object store cannot be reached; snapshot create --output FILE needs neither")
	}
	store, err := k.flush(ctx)
	if err != nil {
		return snapshots.Object{}, err
	}
	if store.Meta().Sequence == 0 {
		return snapshots.Object{}, admin.Unavailable("the stream has no events yet, or is being read again; try again later")
	}

	began := time.Now()
	if err := b.Create(ctx); err != nil {
		return snapshots.Object{}, fmt.Errorf("object store: %w", cli.Advise(err))
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return snapshots.Object{}, fmt.Errorf("data directory: %w", err)
	}
	made, err := b.Put(ctx, store, k.dir)
	if err != nil {
		return snapshots.Object{}, fmt.Errorf("object store: %w", cli.Advise(err))
	}
	k.stats.made(made, time.Since(began))
	k.log.Info("snapshot made", "name", made.Name, "sequence", made.Header.Sequence, "digest", made.Header.Digest,
		"bytes", made.Bytes, "took", time.Since(began).Round(time.Millisecond).String())

	removed, err := b.Prune(ctx, p.Identity, k.keep)
	if err != nil {
		k.log.Warn("old snapshots were not erased", "error", err)
	}
	if len(removed) > 0 {
		k.log.Info("old snapshots erased", "names", removed)
	}
	return made, nil
}

// Created is the response to POST /snapshots.
type Created struct {
	Name  string `json:"name"`
	Bytes uint64 `json:"bytes"` // as stored
	snapshots.Header
}

// Create puts a snapshot at the checkpoint into the object store, for an operator.
func (k *snapshotter) Create(ctx context.Context) (any, error) {
	k.busy.Lock()
	defer k.busy.Unlock()
	made, err := k.upload(ctx)
	if err != nil {
		k.stats.failed(ctx)
		return nil, err
	}
	return Created{Name: made.Name, Bytes: made.Bytes, Header: made.Header}, nil
}

// Export writes the store's content at the checkpoint.
func (k *snapshotter) Export(ctx context.Context, w io.Writer, begin func()) error {
	store, err := k.flush(ctx)
	if err != nil {
		return err
	}
	_, err = snapshots.Write(ctx, store, w, func(snapshots.Header) { begin() })
	return err
}

// snapshotStats has the metrics of snapshots. Any goroutine may use it.
type snapshotStats struct {
	mu  sync.Mutex
	now snapshotNumbers
}

type snapshotNumbers struct {
	newest   snapshots.Object // of our stream, by any replica; without a name, none is known
	took     time.Duration
	count    uint64 // made by this process
	failures uint64
}

func (s *snapshotStats) numbers() snapshotNumbers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *snapshotStats) made(o snapshots.Object, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.newest, s.now.took = o, took
	s.now.count++
}

func (s *snapshotStats) saw(o snapshots.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.newest = o
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
