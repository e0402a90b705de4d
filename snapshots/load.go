package snapshots

import (
	"context"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"example.org/registry/readmodel"
)

// loader reads a store into a model: one goroutine walks the tables, several verify, decode and
// render, one applies. All of them end before load returns.
type loader struct {
	sum      summer
	workers  int
	rerender bool // the store has another render version

	// prove computes each record's digest from what the event said, instead of trusting the one stored
	// with it. rest is how long each worker rests for its work (pacer).
	prove bool
	rest  float64

	// rendered is every record when rerender is set: the store must take them over.
	rendered []readmodel.Record
}

// load fills a new model with what tx shows and proves that it is what was saved (promise 4).
func (l *loader) load(ctx context.Context, tx *bolt.Tx, m meta) (*readmodel.Model, error) {
	model := readmodel.New()
	model.BeginBulk()
	counts, err := l.run(ctx, tx, func(batch []readmodel.Record) {
		model.Apply(batch, m.Checkpoint.Sequence)
		if l.rerender {
			l.rendered = append(l.rendered, batch...)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := m.matches(counts, model.Digest()); err != nil {
		return nil, err
	}
	model.EndBulk()
	return model, nil
}

// matches says whether a content with these counts and this digest is the one that m was saved with.
func (m meta) matches(counts map[string]int, d readmodel.Digest) error {
	for _, t := range tables() {
		if counts[t.name] != m.Counts[t.name] {
			return damage{fmt.Errorf("%s: %d records, not %d", t.name, counts[t.name], m.Counts[t.name])}
		}
	}
	if d.String() != m.Digest {
		return damage{fmt.Errorf("digest of the records is %s, not %s", d, m.Digest)}
	}
	return nil
}

// run reads every record and gives them to take, which one goroutine calls, and counts them.
func (l *loader) run(ctx context.Context, tx *bolt.Tx, take func([]readmodel.Record)) (map[string]int, error) {
	group, ctx := errgroup.WithContext(ctx)
	chunks := make(chan chunk, 2*l.workers)
	records := make(chan []readmodel.Record, 2*l.workers)
	counts := map[string]int{}
	group.Go(func() error {
		defer close(chunks)
		return classify(guard(func() error { return walk(ctx, tx, chunks, counts) }))
	})
	group.Go(func() error {
		defer close(records)
		workers, ctx := errgroup.WithContext(ctx)
		for range l.workers {
			workers.Go(func() error {
				return classify(guard(func() error { return l.decode(ctx, chunks, records) }))
			})
		}
		return workers.Wait()
	})
	group.Go(func() error {
		for batch := range records {
			take(batch)
		}
		return nil
	})
	return counts, group.Wait()
}

// decode is one worker: it verifies and decodes chunks until there are no more.
func (l *loader) decode(ctx context.Context, in <-chan chunk, out chan<- []readmodel.Record) error {
	renderer := readmodel.NewRenderer()
	pace := pacer{rest: l.rest}
	for c := range in {
		if err := pace.turn(ctx); err != nil {
			return err
		}
		batch := make([]readmodel.Record, 0, len(c.pairs))
		for _, p := range c.pairs {
			r, err := l.record(renderer, c.table, p)
			if err != nil {
				return fmt.Errorf("%s: record %.80q: %w", c.table.name, p.key, err)
			}
			batch = append(batch, r)
		}
		if err := send(ctx, out, batch); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) record(renderer *readmodel.Renderer, t table, p pair) (readmodel.Record, error) {
	value, err := l.sum.open(t.name, p.key, p.stored)
	if err != nil {
		return readmodel.Record{}, err
	}
	r, err := renderer.DecodeRecord(t.key(p.key), value, l.rerender)
	if err != nil || !l.prove {
		return r, err
	}
	_, digest, err := readmodel.DecodeState(r.Key, value)
	if err == nil && digest != r.Digest() {
		err = errors.New("digest is not that of its state")
	}
	return r, err
}
