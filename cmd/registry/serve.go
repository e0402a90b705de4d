package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events/failpoint"
	"example.org/registry/httpapi"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// Run serves until the process's context ends, and then stops in order: the listeners, the
// handlers, the projector with its last save, the store, the broker, the lock.
func (c *serveCmd) Run(p *process) (err error) {
	began := time.Now()
	if err := c.check(); err != nil {
		return err
	}
	token, err := adminToken(c.AdminTokenFile)
	if err != nil {
		return err
	}
	chatToken, err := c.chatToken()
	if err != nil {
		return err
	}
	log := c.logger(p.stderr)
	tune(p.getenv, "/", log)
	lock, err := snapshots.LockDir(c.dataDir())
	if err != nil {
		return lockError(err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if err := failpoint.Hit("start/locked"); err != nil {
		return err
	}
	ports, err := c.listen()
	if err != nil {
		return err
	}
	s := &server{flags: c, log: log, ports: ports, token: token, chatToken: chatToken, live: newLive(), terminal: p.stderr,
		headroom: p.getenv("GOGC") == "", rebuilds: newRebuilds(), listening: make(chan struct{}), began: began}
	s.snapshots = newSnapshotter(s.live, c, log)
	return s.run(p.ctx)
}

// run serves and projects side by side. Whichever fails ends both.
func (s *server) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	drained := make(chan struct{})
	group.Go(func() error {
		defer close(drained)
		return s.web(ctx)
	})
	group.Go(func() error {
		err := s.project(ctx, drained)
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // stopped before everything had started
		}
		return err
	})
	group.Go(func() error { return s.announce(ctx) })
	if s.headroom {
		group.Go(func() error { keepHeadroom(ctx); return nil })
	}
	return group.Wait()
}

// project opens what the projection needs, from the disk up, and closes it in reverse. It lasts until
// the handlers have drained, so that they see a running projector to their end.
func (s *server) project(ctx context.Context, drained <-chan struct{}) (err error) {
	if err := failpoint.Hit("start/before-load"); err != nil {
		return err
	}
	if err := snapshots.Tidy(s.flags.storePath(), s.log); err != nil {
		return err
	}
	nc, stop, err := s.connect()
	if err != nil {
		return err
	}
	defer stop()
	store, model, err := s.load(ctx, nc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.live.now().store.Close()) }() // a rebuild may have shown another
	if err := s.showBroker(nc); err != nil {
		return err
	}
	if s.flags.Demo {
		if err := s.importDemo(ctx, nc, store.Checkpoint()); err != nil {
			return err
		}
	}
	first := s.newGeneration(nc, store, store, model, store.Checkpoint(), 0)
	s.live.show(first)
	defer s.keepSnapshots(ctx)()
	return s.keep(drained, nc, s.start(first))
}

// load opens the store, which an empty data directory gets from a snapshot where there is one, and shows its model.
func (s *server) load(ctx context.Context, nc *nats.Conn) (*snapshots.Store, *readmodel.Model, error) {
	if err := failpoint.Hit("start/connected"); err != nil {
		return nil, nil, err
	}
	if err := s.bootstrap(ctx, nc); err != nil {
		return nil, nil, err
	}
	store, model, err := snapshots.Open(ctx, snapshots.Config{Path: s.flags.storePath(), Logger: s.log})
	if err != nil {
		return nil, nil, err
	}
	s.live.show(newGeneration(generation{model: model, store: store}))
	return store, model, nil
}

// server is one running serve command.
type server struct {
	flags    *serveCmd
	log      *slog.Logger
	ports    *ports
	token    string // of the admin listener; empty: none
	live     *live
	terminal io.Writer // for the progress bar

	chatToken httpapi.Secret // of the chat platform; empty: none
	headroom  bool           // the collector's percentage is ours to set
	rebuilds  *rebuilds      // what operators ask for
	listening chan struct{}  // closed once the log says so
	began     time.Time      // when the process was started, nearly
	snapshots *snapshotter
}
