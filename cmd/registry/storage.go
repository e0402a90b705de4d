package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/projector"
)

// asked is the stream as the status page asks for it.
type asked struct {
	js     jetstream.JetStream
	stream string
}

// showBroker lets the status page ask from now on. The connection may be down, now or later.
func (s *server) showBroker(nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	s.live.broker.Store(&asked{js, string(s.flags.Stream)})
	return nil
}

// database is nil when the store can be read and written and the stream answers. Both are asked
// at once, the stream within ctx.
func (l *live) database(ctx context.Context) error {
	g, b := l.now(), l.broker.Load()
	p, running := g.progress()
	switch {
	case b == nil || !running:
		return errors.New("loading the saved state")
	case !p.Connected:
		return errors.New("the broker is away")
	case p.Frozen:
		return errors.New("frozen: " + p.LastError)
	case l.trouble() != "":
		return errors.New(l.trouble())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := g.store.Probe(); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		if _, err := projector.StreamInfo(ctx, b.js, b.stream); err != nil {
			return fmt.Errorf("stream %s: %w", b.stream, err)
		}
		return nil
	})
	return group.Wait()
}
