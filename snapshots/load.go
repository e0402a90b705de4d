package snapshots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
)

// load returns a new model of the store. An error is damage, or that of ctx.
func (s *Store) load(ctx context.Context) (*readmodel.Model, error) {
	model := readmodel.New()
	meta := s.Meta()
	model.BeginBulk()
	model.Load(nil, meta.Sequence) // what has been read may have left no state
	if err := s.loadStates(ctx, model, meta.Sequence); err != nil {
		return nil, err
	}
	if is := model.Digest().String(); is != meta.Digest {
		return nil, fmt.Errorf("the digest of the states is %s, not %s", is, meta.Digest)
	}
	model.EndBulk()
	return model, nil
}

// chunkSize is how many states one goroutine decodes at once.
const chunkSize = 256

// chunk is a part of the states, and then their records.
type chunk struct {
	keys    [][]byte
	states  []State
	records []readmodel.Record
	decoded chan struct{} // closed once the records are there
}

// loadStates decodes and renders the states on all CPUs, and loads them in their order.
func (s *Store) loadStates(ctx context.Context, model *readmodel.Model, checkpoint uint64) error {
	group, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	work, order := make(chan *chunk, workers), make(chan *chunk, 4*workers)

	// One goroutine reads, and ends last: the memory of the keys and lines is that of its transaction.
	read := make(chan error, 1)
	used := make(chan struct{})
	go func() {
		read <- s.view(func(tx *bolt.Tx) error {
			defer func() { <-used }()
			defer close(order)
			defer close(work)
			return readChunks(ctx, tx.Bucket([]byte(statesBucket)), work, order)
		})
	}()

	for range workers {
		group.Go(func() error {
			return fault.Catch(func() error { return decodeChunks(work) })
		})
	}
	group.Go(func() error {
		for c := range order {
			select {
			case <-c.decoded:
				model.Load(c.records, checkpoint)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	err := group.Wait()
	close(used)
	if readErr := <-read; err == nil {
		err = readErr
	}
	return err
}

// readChunks sends the states in chunks. A view total is in the chunk of its entry.
func readChunks(ctx context.Context, states *bolt.Bucket, work, order chan<- *chunk) error {
	next := &chunk{decoded: make(chan struct{})}
	send := func() error {
		for _, to := range []chan<- *chunk{work, order} {
			select {
			case to <- next:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		next = &chunk{decoded: make(chan struct{})}
		return nil
	}

	var last []byte
	err := states.ForEach(func(key, stored []byte) error {
		if bytes.Compare(last, key) >= 0 { // also ends a walk in circles
			return errors.New("keys are out of order")
		}
		last = key
		if len(next.keys) >= chunkSize && !isViews(key) {
			if err := send(); err != nil {
				return err
			}
		}
		state, err := decode(stored)
		next.keys, next.states = append(next.keys, key), append(next.states, state)
		return err
	})
	if err != nil {
		return err
	}
	return send()
}

func decodeChunks(work <-chan *chunk) error {
	renderer := readmodel.NewRenderer()
	for c := range work {
		for i, state := range c.states {
			e, err := events.Decode(state.Line)
			if err != nil {
				return fmt.Errorf("%s: %w", masked(c.keys[i]), err)
			}
			if !bytes.Equal(keyOf(e.Data.Subject()), c.keys[i]) {
				return fmt.Errorf("%s: the state of another subject", masked(c.keys[i]))
			}
			c.records = append(c.records, renderer.Render(state.Sequence, e.Data))
		}
		close(c.decoded)
	}
	return nil
}

// masked returns a key for an error, without the id of a donation.
func masked(key []byte) string {
	if bytes.HasPrefix(key, []byte(donationsPrefix)) {
		return "a donation"
	}
	return fmt.Sprintf("%.80q", key)
}
