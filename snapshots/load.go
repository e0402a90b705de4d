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

// loader reads every record of a store or an archive: one goroutine passes them on, several verify,
// decode and render, and one takes the results. All of them have ended when read returns.
type loader struct {
	workers  int
	rerender bool // the source has another render version

	// verify makes the loader decode each record's event, and compute the digest from its data.
	// Otherwise it trusts the digest that is stored with the record.
	verify bool
	rest   func(context.Context, time.Duration) // called by each worker; see throttle
}

// pair is a record of a table as it is stored. Its bytes are mapped memory of a store's file, or were
// allocated for it.
type pair struct {
	table       *table
	key, stored []byte
}

// source passes pairs to visit in their order (see queue.add), until there are no more or visit
// returns an error.
type source func(visit func(pair) error) error

// A batch has batchSize records, or some more if the last ones share their key, or those that fill
// batchBytes.
const (
	batchSize  = 256
	batchBytes = 1 << 20
)

// batch is a group of records: pairs from the source, then what a worker has decoded. Batches are
// reused: new ones were a fifth of all that a load allocated.
type batch struct {
	pairs   []pair
	bytes   int
	records []readmodel.Record
	states  []readmodel.State // only if the loader verifies
	decoded chan struct{}     // holds one value once the records are there
}

// pipe carries batches between the goroutines. Each channel has room for all batches, so no send
// blocks.
type pipe struct {
	free   chan *batch
	filled chan *batch // to the workers
	inTurn chan *batch // the same, in the order of the source, to the goroutine that takes the records
}

func newPipe(batches int) *pipe {
	p := &pipe{make(chan *batch, batches), make(chan *batch, batches), make(chan *batch, batches)}
	for range batches {
		p.free <- &batch{decoded: make(chan struct{}, 1)}
	}
	return p
}

// read passes every record of from to take, in their order, and returns the number of records of
// each table. One goroutine calls take, which may retain the records, but not the batch.
func (l *loader) read(ctx context.Context, from source, take func(*batch) error) (map[string]int, error) {
	group, ctx := errgroup.WithContext(ctx)
	p := newPipe(4 * l.workers)
	q := queue{ctx: ctx, out: p, counts: map[string]int{}}
	group.Go(func() error {
		defer close(p.inTurn)
		defer close(p.filled)
		return classify(fault.Catch(func() error {
			err := from(q.add)
			q.send()
			return err
		}))
	})
	for range l.workers {
		group.Go(func() error {
			return classify(fault.Catch(func() error { return l.decode(ctx, p.filled) }))
		})
	}
	group.Go(func() error {
		for b := range p.inTurn {
			if _, err := receive(ctx, b.decoded); err != nil {
				return err
			}
			if err := take(b); err != nil {
				return err
			}
			p.free <- b
		}
		return nil
	})
	return q.counts, group.Wait()
}

// queue makes batches of pairs, counts them and checks their order.
type queue struct {
	ctx    context.Context
	out    *pipe
	b      *batch // nil if the next pair begins a batch
	last   pair
	entry  bool // a pair of last's list and key is an entry or a tombstone
	counts map[string]int
}

// add adds a pair. The pairs of one list are in the order of their keys, and those with equal keys in
// the order of their tables: an entry is directly followed by its view total, and both are in one
// batch, as Model.Load requires. A subject is an entry or a tombstone, never both.
func (q *queue) add(p pair) error {
	same := q.last.table != nil && p.table.list == q.last.table.list && bytes.Equal(p.key, q.last.key)
	if !inOrder(q.last, p, same) {
		return fmt.Errorf("%s: keys out of order", p.table.name) // also ends a walk in circles
	}
	is := p.table.kind != events.KindViews
	if q.entry = q.entry && same; q.entry && is {
		return fmt.Errorf("%s: %s is in the list too", p.table.name, p.table.record(p.key))
	}
	q.entry = q.entry || is
	if q.b != nil && (len(q.b.pairs) >= batchSize || q.b.bytes >= batchBytes) && !same {
		q.send()
	}
	if q.b == nil {
		var err error
		if q.b, err = receive(q.ctx, q.out.free); err != nil {
			return err
		}
		q.b.pairs, q.b.bytes = q.b.pairs[:0], 0
	}
	q.b.pairs = append(q.b.pairs, p)
	q.b.bytes += len(p.stored)
	q.counts[p.table.name]++
	q.last = p
	return nil
}

// inOrder reports whether p may follow last; same means that they have one list and key.
func inOrder(last, p pair, same bool) bool {
	switch {
	case last.table == nil:
		return true
	case last.table.list != p.table.list || same:
		return last.table.number < p.table.number
	}
	return bytes.Compare(last.key, p.key) < 0
}

// send passes the batch on, if there is one.
func (q *queue) send() {
	if q.b != nil {
		q.out.filled <- q.b
		q.out.inTurn <- q.b
		q.b = nil
	}
}

// walk returns the records that tx sees.
func walk(tx *bolt.Tx) source {
	return func(visit func(pair) error) error {
		for of := tables(); len(of) > 0; {
			n := 1
			for n < len(of) && of[n].list == of[0].list {
				n++
			}
			if err := walkTables(tx, of[:n], visit); err != nil {
				return err
			}
			of = of[n:]
		}
		return nil
	}
}

// cursor is a position in a table: at a record, or after the last.
type cursor struct {
	pair // its key is nil after the last record
	bolt *bolt.Cursor
}

// walkTables visits the records of some tables in the order of their keys, and records with equal
// keys in the order of the tables.
func walkTables(tx *bolt.Tx, of []table, visit func(pair) error) error {
	cursors := make([]cursor, len(of))
	for i := range of {
		bucket, err := of[i].bucket(tx)
		if err != nil {
			return fmt.Errorf("%s: %w", of[i].name, err)
		}
		c := cursor{pair{table: &of[i]}, bucket.Cursor()}
		c.key, c.stored = c.bolt.First()
		cursors[i] = c
	}
	for {
		var at *cursor
		for i := range cursors {
			if c := &cursors[i]; c.key != nil && (at == nil || bytes.Compare(c.key, at.key) < 0) {
				at = c
			}
		}
		if at == nil {
			return nil
		}
		if err := visit(at.pair); err != nil {
			return err
		}
		at.key, at.stored = at.bolt.Next()
	}
}

// decode decodes batches until there are no more.
func (l *loader) decode(ctx context.Context, in <-chan *batch) error {
	renderer := readmodel.NewRenderer()
	pace := throttle{rest: l.rest}
	for b := range in {
		if err := pace.wait(ctx); err != nil {
			return err
		}
		b.records, b.states = b.records[:0], b.states[:0]
		id := ""
		for _, p := range b.pairs {
			if string(p.key) != id { // an entry and its view total share an id
				id = string(p.key)
			}
			if err := l.record(renderer, p, id, b); err != nil {
				return fmt.Errorf("%s: %s: %w", p.table.name, p.table.record(p.key), err)
			}
		}
		b.decoded <- struct{}{}
	}
	return nil
}

// record decodes p, whose key is id, into b.
func (l *loader) record(renderer *readmodel.Renderer, p pair, id string, b *batch) error {
	t := p.table
	subject := events.Subject{Kind: t.kind, List: t.list, ID: id}
	value, err := unseal(t.name, p.key, p.stored)
	if err != nil {
		return err
	}
	r, err := renderer.DecodeRecord(subject, t.tombstones, value, l.rerender)
	if err != nil {
		return err
	}
	b.records = append(b.records, r)
	if !l.verify {
		return nil
	}
	s, err := readmodel.DecodeState(subject, t.tombstones, value)
	if err == nil && readmodel.StateDigest(s.Data) != r.Digest() {
		err = errors.New("digest does not match the state")
	}
	b.states = append(b.states, s)
	return err
}

func receive[T any](ctx context.Context, from <-chan T) (v T, err error) {
	select {
	case v = <-from:
		return v, nil
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}
