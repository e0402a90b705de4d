package main

import (
	"context"
	"fmt"
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
	// snapshotRest makes a snapshot take less than a quarter of one processor: it rests 3.5 times as long
	// as it works.
	snapshotRest = 3.5
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

// begin refuses a second one: each takes as much disk as the store.
func (k *snapshotter) begin() (done func(), err error) {
	select {
	case k.busy <- struct{}{}:
		return func() { <-k.busy }, nil
	default:
		return nil, httpapi.Refused("a snapshot or export is being made; try again when it is done")
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
	a, err := g.store.Archive(ctx, k.work)
	return a, advised(err)
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
