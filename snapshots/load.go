package snapshots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
)

// loader reads every record of a store: one goroutine walks the tables, several verify, decode and
// render, and one passes the records on. All of them have ended when read returns.
type loader struct {
	workers  int
	rerender bool // the store has another render version

	// verify makes the loader compute each record's digest from the event's data. Otherwise it
	// trusts the digest that is stored with the record.
	verify bool
	rest   func(context.Context, time.Duration) // called by each worker; see throttle
}

// pair is a record of a table, in mapped memory of the file.
type pair struct {
	table       *table
	key, stored []byte
}

// batchSize is how many records a batch has, or one more if the last is an entry with a view total.
const batchSize = 256

// batch is a group of records: pairs from the walk, then the records that a worker decodes. Batches
// are reused: new ones were a fifth of all that a load allocated.
type batch struct {
	pairs   []pair
	records []readmodel.Record
	decoded chan struct{} // holds one value once the records are there
}

// pipe carries batches between the goroutines. Each channel has room for all batches, so no send
// blocks.
type pipe struct {
	free   chan *batch
	walked chan *batch // to the workers
	inTurn chan *batch // the same, in the order of the walk, to the goroutine that takes the records
}

func newPipe(batches int) *pipe {
	p := &pipe{make(chan *batch, batches), make(chan *batch, batches), make(chan *batch, batches)}
	for range batches {
		p.free <- &batch{decoded: make(chan struct{}, 1)}
	}
	return p
}

// read passes every record to take, in the order of groups and keys, and returns the number of
// records of each table. One goroutine calls take, which may retain the records, but not the slice.
func (l *loader) read(ctx context.Context, tx *bolt.Tx, take func([]readmodel.Record)) (map[string]int, error) {
	group, ctx := errgroup.WithContext(ctx)
	p := newPipe(4 * l.workers)
	counts := map[string]int{}
	group.Go(func() error {
		defer close(p.inTurn)
		defer close(p.walked)
		return classify(fault.Catch(func() error { return walk(ctx, tx, p, counts) }))
	})
	for range l.workers {
		group.Go(func() error {
			return classify(fault.Catch(func() error { return l.decode(ctx, p.walked) }))
		})
	}
	group.Go(func() error {
		for b := range p.inTurn {
			if _, err := receive(ctx, b.decoded); err != nil {
				return err
			}
			take(b.records)
			p.free <- b
		}
		return nil
	})
	return counts, group.Wait()
}

// walk sends every record of every table and counts them. An entry is directly followed by its view
// total, in the same batch, as Model.Load requires.
func walk(ctx context.Context, tx *bolt.Tx, out *pipe, counts map[string]int) error {
	for _, tables := range groups() {
		cursors := make([]*cursor, len(tables))
		for i := range tables {
			bucket, err := tables[i].bucket(tx)
			if err != nil {
				return fmt.Errorf("%s: %w", tables[i].name, err)
			}
			cursors[i] = &cursor{pair: pair{table: &tables[i]}, bolt: bucket.Cursor()}
		}
		if err := walkTables(ctx, cursors, out); err != nil {
			return err
		}
		for _, c := range cursors {
			counts[c.table.name] = c.passed
		}
	}
	return nil
}

// cursor is a position in a table: at a record, or after the last.
type cursor struct {
	pair   // its key is nil after the last record
	bolt   *bolt.Cursor
	passed int // records before this one
}

func (c *cursor) first() { c.key, c.stored = c.bolt.First() }

func (c *cursor) next() error {
	last := c.key
	c.passed++
	if c.key, c.stored = c.bolt.Next(); c.key != nil && bytes.Compare(c.key, last) <= 0 {
		return fmt.Errorf("%s: keys out of order", c.table.name) // also ends a walk in circles
	}
	return nil
}

// walkTables sends the records of some tables in the order of their keys, and records with equal
// keys in the order of the tables. It returns an error for an entry that also has a tombstone.
func walkTables(ctx context.Context, cursors []*cursor, out *pipe) error {
	for _, c := range cursors {
		c.first()
	}
	var b *batch     // nil if the next record begins a batch
	var entry []byte // key of the last entry or tombstone
	for {
		var at *cursor
		for _, c := range cursors {
			if c.key != nil && (at == nil || bytes.Compare(c.key, at.key) < 0) {
				at = c
			}
		}
		if b != nil && (at == nil || len(b.pairs) >= batchSize && !bytes.Equal(at.key, b.pairs[len(b.pairs)-1].key)) {
			out.walked <- b
			out.inTurn <- b
			b = nil
		}
		if at == nil {
			return nil
		}
		if at.table.kind == events.KindEntry {
			if bytes.Equal(at.key, entry) {
				return fmt.Errorf("%s: %s is in the list too", at.table.name, at.table.record(at.key))
			}
			entry = at.key
		}
		if b == nil {
			var err error
			if b, err = receive(ctx, out.free); err != nil {
				return err
			}
			b.pairs = b.pairs[:0]
		}
		b.pairs = append(b.pairs, at.pair)
		if err := at.next(); err != nil {
			return err
		}
	}
}

// decode runs one worker.
func (l *loader) decode(ctx context.Context, in <-chan *batch) error {
	renderer := readmodel.NewRenderer()
	pace := throttle{rest: l.rest}
	for b := range in {
		if err := pace.wait(ctx); err != nil {
			return err
		}
		b.records = b.records[:0]
		id := ""
		for _, p := range b.pairs {
			if string(p.key) != id { // an entry and its view total share an id
				id = string(p.key)
			}
			r, err := l.record(renderer, p, id)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", p.table.name, p.table.record(p.key), err)
			}
			b.records = append(b.records, r)
		}
		b.decoded <- struct{}{}
	}
	return nil
}

// record makes a record from p, whose key is id.
func (l *loader) record(renderer *readmodel.Renderer, p pair, id string) (readmodel.Record, error) {
	t := p.table
	subject := events.Subject{Kind: t.kind, List: t.list, ID: id}
	value, err := unseal(t.name, p.key, p.stored)
	if err != nil {
		return readmodel.Record{}, err
	}
	if t.tombstones {
		gone, err := readmodel.DecodeTombstone(subject, value)
		return gone.Record(), err
	}
	r, err := renderer.DecodeRecord(subject, value, l.rerender)
	if err != nil || !l.verify {
		return r, err
	}
	_, digest, err := readmodel.DecodeState(r.Subject, value)
	if err == nil && digest != r.Digest() {
		err = errors.New("digest does not match the state")
	}
	return r, err
}

func receive[T any](ctx context.Context, from <-chan T) (v T, err error) {
	select {
	case v = <-from:
		return v, nil
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}

// verifyFile reads the file at path as Open would, without retaining its content, and computes
// every digest from the events' data. want is the expected meta record. shown counts the entries
// that each list shows.
func verifyFile(ctx context.Context, path string, want meta, cfg ArchiveConfig) (shown map[string]int, err error) {
	db, err := openToRead(path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		var found meta
		err := fault.Catch(func() (err error) { found, err = readMeta(tx); return err })
		if err != nil {
			return err
		}
		if !found.same(want) {
			return errors.New("unexpected meta record")
		}
		l := &loader{workers: cfg.workers(), rest: cfg.Rest, verify: true, rerender: found.Render != readmodel.RenderVersion}
		shown, err = l.verifyAll(ctx, tx, found)
		return err
	})
	return shown, err
}

func (l *loader) verifyAll(ctx context.Context, tx *bolt.Tx, m meta) (map[string]int, error) {
	var d readmodel.Digest
	shown := map[string]int{}
	counts, err := l.read(ctx, tx, func(batch []readmodel.Record) {
		for i := range batch {
			d.Add(batch[i].Digest())
			if batch[i].Shown() {
				shown[string(batch[i].Subject.List)]++
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if err := m.matches(counts, d); err != nil {
		return nil, err
	}
	return shown, nil
}
