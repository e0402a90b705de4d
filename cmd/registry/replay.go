package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"example.org/registry/projector"
	"example.org/registry/readmodel"
)

// besideWithin is how long the replay may take to stand where the server stood.
const besideWithin = 30 * time.Second

// replay is a read model of the stream, made in this process.
type replay struct {
	model     *readmodel.Model
	projector *projector.Projector
	cancel    context.CancelFunc
	ended     chan struct{}
	err       error // of Run; read after ended
}

func startReplay(nc *nats.Conn, stream string) *replay {
	ctx, cancel := context.WithCancel(context.Background())
	r := &replay{model: readmodel.New(), cancel: cancel, ended: make(chan struct{})}
	r.projector = projector.New(projector.Config{Conn: nc, Stream: stream, Model: r.model, ReadOnly: true})
	go func() {
		defer close(r.ended)
		r.err = r.projector.Run(ctx)
	}()
	return r
}

func (r *replay) stop() {
	r.cancel()
	<-r.ended
}

// catchUp waits until everything that the stream had has been applied.
func (r *replay) catchUp(ctx context.Context, terminal io.Writer) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	shown := newBar(terminal, "replaying", 0, false)
	defer shown.finish()
	for {
		p := r.projector.Progress()
		switch {
		case p.CaughtUp:
			return nil
		case p.Frozen:
			return errors.New(p.LastError)
		case p.Total > 0:
			shown.set(int64(p.Done), int64(p.Total))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ended:
			return r.err
		case <-tick.C:
		}
	}
}

// at lets the replay go on to sequence and lists its records there.
func (r *replay) at(ctx context.Context, sequence uint64) (inv *readmodel.Inventory, err error) {
	ctx, cancel := context.WithTimeout(ctx, besideWithin)
	defer cancel()
	r.projector.Hold(sequence)
	if _, err := r.model.Await(ctx, sequence); err != nil {
		return nil, fmt.Errorf("the replay does not reach sequence %d, where the server stands: %w", sequence, err)
	}
	r.projector.Inspect(func(m *readmodel.Model) { inv = m.Inventory() })
	if inv.Sequence != sequence {
		return nil, fmt.Errorf("the replay stands at %d, not at %d", inv.Sequence, sequence) // cannot happen
	}
	return inv, nil
}
