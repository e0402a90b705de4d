package projector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/pause"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

const (
	awaitEvery = 20 * time.Millisecond // between two checks of another projector's progress

	// awayWithin is how long the broker may be away during a rebuild or a replay.
	awayWithin = 30 * time.Second
)

// Why a rebuild does not begin, or is not swapped in.
var (
	// ErrKnowsMore means that the new model would lack states, since the stream lacks them.
	ErrKnowsMore = errors.New("the stream lacks states that this server knows; registry recover comes first")

	ErrFrozen = errors.New("frozen")  // Progress.Frozen
	ErrNotYet = errors.New("not now") // a later rebuild may succeed
)

// CheckRebuild returns why a rebuild of p's model must not begin, or nil.
func (p *Projector) CheckRebuild() error {
	now := p.Progress()
	if now.Frozen != "" {
		return fmt.Errorf("%w: %s", ErrFrozen, now.LastError)
	}
	if !now.Connected {
		return fmt.Errorf("%w: the stream cannot be reached, and a rebuild reads it", ErrNotYet)
	}
	if !now.CaughtUp || now.Reading {
		return fmt.Errorf("%w: the read model has not caught up with the stream yet", ErrNotYet)
	}
	if now.Rewound || now.Unpublished > 0 {
		return ErrKnowsMore
	}
	return nil
}

// NewBeside makes a projector that reads p's stream from its beginning, into an empty model and an empty store.
func (p *Projector) NewBeside(model *readmodel.Model, store Store, mayWrite func() bool) *Projector {
	cfg := p.cfg
	cfg.Model = model
	cfg.Store = store
	cfg.Meta = snapshots.Meta{}
	cfg.MayWrite = mayWrite
	return New(cfg)
}

// Replace waits until fresh, which is running, has caught up with p, and then calls swap. During swap neither
// projector applies anything, and fresh knows every state that p knows. If fresh would lack a state, Replace does
// not call swap, and its error matches ErrKnowsMore.
func (p *Projector) Replace(ctx context.Context, fresh *Projector, swap func() error) error {
	if err := awaitCaughtUp(ctx, fresh, nil); err != nil {
		return err
	}

	for {
		if err := fresh.Flush(ctx); err != nil {
			return err
		}
		if err := p.CheckRebuild(); err != nil {
			return err
		}

		swapped, err := trySwap(p, fresh, swap)
		if swapped || err != nil {
			return err
		}
		if !pause.For(ctx, awaitEvery) {
			return context.Cause(ctx)
		}
	}
}

// trySwap calls swap if fresh has read as far as old and has saved everything. If not yet, swapped is false.
func trySwap(old, fresh *Projector, swap func() error) (swapped bool, err error) {
	old.projection.mu.Lock()
	defer old.projection.mu.Unlock()
	fresh.projection.mu.Lock()
	defer fresh.projection.mu.Unlock()

	if fresh.projection.meta.Epoch != old.projection.meta.Epoch {
		return false, fmt.Errorf("%w: the stream has changed meanwhile; try again", ErrNotYet)
	}

	if fresh.projection.meta.Sequence < old.projection.meta.Sequence || !fresh.saver.hasAll() {
		return false, nil
	}

	// Equal digests mean equal states. If the digests differ, compare each state, which takes a while.
	if old.projection.model.Digest() != fresh.projection.model.Digest() {
		if err := checkKnown(old.cfg.Store, fresh.projection.model); err != nil {
			return false, err
		}
	}
	return true, swap()
}

// checkKnown fails if the store has a state of a greater revision than the model knows of the subject.
func checkKnown(store Store, model *readmodel.Model) error {
	missing := 0
	example := "" // the first subject that the model lacks

	err := store.Each(nil, func(state snapshots.State) error {
		e, err := events.Decode(state.Line)
		if err != nil {
			return err
		}
		if subject := e.Data.Subject(); model.Known(subject) < events.Revision(e.Data) {
			missing++
			example = cmp.Or(example, subject.Masked())
		}
		return nil
	})

	if err == nil && missing > 0 {
		return fmt.Errorf("%w: %d, such as the state of %s", ErrKnowsMore, missing, example)
	}
	return err
}

// awaitCaughtUp waits until p, which runs in another goroutine, has caught up. It fails if p cannot go on, or if the
// broker is away for awayWithin. progress may be nil.
func awaitCaughtUp(ctx context.Context, p *Projector, progress func(done, total uint64)) error {
	for lastConnected := time.Now(); time.Since(lastConnected) < awayWithin; {
		now := p.Progress()
		if progress != nil && now.Total > 0 {
			progress(now.Done, now.Total)
		}

		if now.CaughtUp {
			return nil
		}
		if now.Frozen != "" {
			return fmt.Errorf("%w: %s", ErrFrozen, now.LastError)
		}
		if now.unsaved != "" {
			return errors.New("the new read model cannot be saved: " + now.unsaved)
		}
		if now.Connected {
			lastConnected = time.Now()
		}

		select {
		case <-p.ended:
			return errors.New(p.Progress().LastError)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(awaitEvery):
		}
	}
	return fmt.Errorf("%w: the broker went away: %s", ErrNotYet, p.Progress().LastError)
}

// Replay reads the stream from its beginning to its present end, into a new store in dir. It leaves no trace at the
// broker. The caller closes the store. progress may be nil.
func Replay(ctx context.Context, js jetstream.JetStream, name, dir string, progress func(done, total uint64)) (*snapshots.Store, error) {
	store, model, err := snapshots.Open(ctx, filepath.Join(dir, "replay.db"))
	if err != nil {
		return nil, err
	}

	p := New(Config{JetStream: js, Stream: name, ReadOnly: true, Model: model, Store: store})
	running, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() { result <- p.Run(running) }()

	err = awaitCaughtUp(ctx, p, progress)
	cancel() // Run saves everything before it returns
	if runErr := <-result; runErr != nil {
		err = runErr
	}
	if err == nil && !p.saver.hasAll() {
		err = errors.New("the replay cannot be saved: " + p.Progress().LastError)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}
