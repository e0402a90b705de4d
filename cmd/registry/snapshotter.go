package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/httpapi"
	"example.org/registry/snapshots"
	"example.org/registry/snapshots/bucket"
)

const (
	// snapshotRest makes a snapshot take less than a third of one processor: it rests 2.5 times as long
	// as it works.
	snapshotRest = 2.5
	// flushWithin is how long the store may take to be brought to the checkpoint.
	flushWithin = 10 * time.Second
)

// snapshotter makes snapshots and exports of the running server, one at a time. Any goroutine may use it.
type snapshotter struct {
	live *live
	log  *slog.Logger
	work snapshots.Work
	cfg  snapshotConfig
	busy chan struct{} // holds one while something is being made

	bucket atomic.Pointer[bucket.Bucket] // nil until there is a connection to the broker
	stats  snapshotStats
}

type snapshotConfig struct {
	every    time.Duration // 0: nothing is made unasked
	keep     int
	replicas int
}

func newSnapshotter(l *live, f *serveCmd, log *slog.Logger) *snapshotter {
	return &snapshotter{
		live: l, log: log, busy: make(chan struct{}, 1),
		work: snapshots.Work{Dir: f.temporaryDir(), Rest: snapshotRest, Workers: 1},
		cfg:  snapshotConfig{every: f.SnapshotEvery, keep: f.SnapshotKeep, replicas: f.StreamReplicas},
	}
}

// reach lets snapshots be put into the object store from now on. The connection may be down, now or later.
func (k *snapshotter) reach(nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	host, _ := os.Hostname() // a name for people; the process id tells two on one machine
	k.bucket.Store(bucket.New(js, bucket.Config{
		Replicas: k.cfg.replicas, Holder: fmt.Sprintf("%s, process %d", host, os.Getpid())}))
	return nil
}

// created is what POST /snapshots answers.
type created struct {
	Name  string `json:"name"`
	Bytes uint64 `json:"bytes"` // of the archive
	snapshots.Manifest
}

func createdFrom(i bucket.Item) created {
	return created{Name: i.Name, Bytes: i.Bytes, Manifest: i.Manifest}
}

// Create puts a snapshot at the checkpoint into the object store, for an operator.
func (k *snapshotter) Create(ctx context.Context) (any, error) {
	done, err := k.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	item, err := k.put(ctx)
	if errors.Is(err, bucket.ErrBusy) {
		return nil, httpapi.Refused(err.Error())
	}
	if err != nil {
		k.stats.failed(ctx)
		return nil, err
	}
	return createdFrom(item), nil
}

// Archive makes an archive at the checkpoint that goes to an operator alone.
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

// Export writes everything that the store holds at the checkpoint.
func (k *snapshotter) Export(ctx context.Context, w io.Writer, begin func()) error {
	done, err := k.begin()
	if err != nil {
		return err
	}
	defer done()
	if err := k.flush(ctx); err != nil {
		return err
	}
	return k.live.now().store.Export(ctx, w, k.work, begin)
}

// begin refuses a second one: each takes as much disk as the store.
func (k *snapshotter) begin() (done func(), err error) {
	select {
	case k.busy <- struct{}{}:
		return func() { <-k.busy }, nil
	default:
		return nil, httpapi.Refused("a snapshot or export is being made; try again when it is done")
	}
}

// put makes an archive and puts it into the object store, and then erases what is too many there.
// Whoever calls it has begun.
func (k *snapshotter) put(ctx context.Context) (bucket.Item, error) {
	b := k.bucket.Load()
	if b == nil || !k.connected() {
		return bucket.Item{}, httpapi.Unavailable("the broker is away, and with it the object store; snapshot create --output FILE does without")
	}
	began := time.Now()
	if err := b.Create(ctx); err != nil {
		return bucket.Item{}, fmt.Errorf("object store: %w", err)
	}
	ctx, lock, err := b.Lock(ctx)
	if err != nil {
		return bucket.Item{}, fmt.Errorf("object store: lock: %w", err)
	}
	defer lock.Release()
	a, err := k.archive(ctx)
	if err != nil {
		return bucket.Item{}, because(ctx, err)
	}
	defer a.Close()
	item, err := b.Put(ctx, a.Manifest, a.Reader())
	if err != nil {
		return bucket.Item{}, fmt.Errorf("object store: %w", because(ctx, err))
	}
	k.stats.made(item, time.Since(began))
	k.log.Info("snapshot made", "name", item.Name, "sequence", item.Manifest.Sequence, "digest", item.Manifest.Digest,
		"bytes", item.Bytes, "took", time.Since(began).Round(time.Millisecond))
	k.tidy(ctx, b, item)
	return item, nil
}

// because prefers what ended ctx to what it led to.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// tidy erases old snapshots, and what was left of unfinished ones. That it fails is no reason not to have
// made one.
func (k *snapshotter) tidy(ctx context.Context, b *bucket.Bucket, newest bucket.Item) {
	gone, err := b.Prune(ctx, newest.Manifest.Stream, newest.Manifest.StreamEpoch, k.cfg.keep)
	if err != nil {
		k.log.Warn("old snapshots were not erased", "error", err)
	}
	left, err := b.Clean(ctx)
	if err != nil {
		k.log.Warn("what is left of unfinished snapshots was not erased", "error", err)
	}
	if len(gone)+left > 0 {
		k.log.Info("old snapshots erased", "names", gone, "unfinished", left)
	}
}

// archive makes one at the checkpoint.
func (k *snapshotter) archive(ctx context.Context) (*snapshots.Archive, error) {
	if err := k.flush(ctx); err != nil {
		return nil, err
	}
	g := k.live.now()
	if g.store.Checkpoint().Sequence == 0 {
		return nil, httpapi.Unavailable("the stream has no events yet, so there is nothing to save")
	}
	return g.store.Archive(ctx, k.work)
}

// flush brings the store to the checkpoint. Before the model has been complete there is nothing that
// could be called one.
func (k *snapshotter) flush(ctx context.Context) error {
	g := k.live.now()
	p, running := g.progress()
	if !running || !p.CaughtUp {
		return httpapi.Unavailable("the server has not caught up with the stream yet; try again when registry ready says so")
	}
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if err := g.projector.Flush(ctx); err != nil {
		return httpapi.Unavailable("the store is not at the checkpoint: " + err.Error())
	}
	return nil
}

func (k *snapshotter) connected() bool {
	p, running := k.live.now().progress()
	return running && p.Connected
}
