package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/snapshots"
)

// storage is what the status page asks about this service itself.
type storage struct {
	store  *snapshots.Store
	js     jetstream.JetStream
	stream string
}

// showStorage lets the status page ask from now on. The connection may be down, now or later.
func (s *server) showStorage(store *snapshots.Store, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	s.live.storage.Store(&storage{store, js, string(s.flags.Stream)})
	return nil
}

// database is nil when the store can be read and written and the stream answers. Both are asked
// at once, the stream within ctx.
func (l *live) database(ctx context.Context) error {
	s := l.storage.Load()
	p, running := l.progress()
	switch {
	case s == nil || !running:
		return errors.New("loading the saved state")
	case !p.Connected:
		return errors.New("the broker is away")
	case p.Frozen:
		return errors.New("frozen: " + p.LastError)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := s.store.Probe(); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		if _, err := s.js.Stream(ctx, s.stream); err != nil {
			return fmt.Errorf("stream %s: %w", s.stream, err)
		}
		return nil
	})
	return group.Wait()
}
