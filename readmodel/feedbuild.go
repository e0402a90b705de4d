package readmodel

import (
	"context"
	"fmt"
	"time"

	"example.org/registry/readmodel/gramindex"
)

// build makes a new block of the part's rows in v, the view of the last note so far: of all, or of those that
// its block does not know.
func (f *feed) build(ctx context.Context, v *View, list, i int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("text index: %v", p)
		}
	}()
	b, only := f.plan(list, i)
	direct, rows, err := f.collect(ctx, b, v, list, i, only)
	if err != nil {
		return err
	}
	block, err := f.write(b)
	if err != nil {
		return err
	}
	changes, ok := f.view.changes.since(v.sequence)
	if !ok {
		return nil // too much has changed meanwhile; what there was stays
	}
	p, c, now := &f.next.lists[list][i], &f.care[list][i], time.Now()
	if only != nil {
		*p = part{block: p.block, newer: block, stale: only, built: v.sequence, direct: direct}
		*c = care{rows: c.rows, stale: only.Len(), block: c.block, last: now}
	} else {
		*p = part{block: block, built: v.sequence, direct: direct}
		*c = care{rows: rows, block: now, last: now}
	}
	for _, c := range changes {
		if c.list() == list && int(c.slot()/gramindex.BlockLen) == i {
			f.mark(list, c.slot())
		}
	}
	return nil
}

// plan is the builder to use, and the rows that the part's block does not know where these are few; nil: all.
func (f *feed) plan(list, i int) (b *gramindex.Builder, only *gramindex.Set) {
	kept := &f.large
	if f.fewStale(list, i) {
		p := &f.next.lists[list][i]
		kept, only = &f.small, union(p.stale, p.direct)
	}
	if *kept == nil {
		*kept = &gramindex.Builder{}
	}
	return *kept, only
}

func union(a, b *gramindex.Set) *gramindex.Set {
	var u gramindex.Set
	for _, s := range []*gramindex.Set{a, b} {
		if s != nil {
			u.Or(s)
		}
	}
	return &u
}

// restEvery is how many rows are indexed without a rest: some milliseconds.
const restEvery = 512

// collect puts the part's texts into the builder, those in only (nil: all), and says how many there are and
// which did not fit.
func (f *feed) collect(ctx context.Context, b *gramindex.Builder, v *View, list, i int, only *gramindex.Set) (direct *gramindex.Set, rows int, err error) {
	b.Reset()
	begun := time.Now()
	for n := range uint16(gramindex.BlockLen) {
		r := v.lists[list].rows.get(uint32(i*gramindex.BlockLen + int(n)))
		if r == nil || only != nil && !only.Has(n) {
			continue
		}
		if rows++; rows%restEvery == 0 {
			f.rest(ctx, time.Since(begun))
			if only == nil {
				f.meanwhile(ctx)
			}
			begun = time.Now()
			if ctx.Err() != nil {
				return nil, 0, ctx.Err()
			}
		}
		if !b.Add(n, r.text(), len(r.nameAndChat())) {
			if direct == nil {
				direct = &gramindex.Set{}
			}
			direct.Add(n)
		}
	}
	f.rest(ctx, time.Since(begun))
	return direct, rows, nil
}

// rest is for readers, who meanwhile hear of what has changed since.
func (f *feed) rest(ctx context.Context, busy time.Duration) {
	f.note(f.model.View())
	f.publish()
	rest(ctx, busy)
}

// meanwhile makes a small block that is needed while a large one is in the making: searches would notice what
// gathers in that time. What fails is tried again with the large one.
func (f *feed) meanwhile(ctx context.Context) {
	list, i, need := f.neediest(true)
	if need != now || f.waitsForDisk() {
		return
	}
	if f.build(ctx, f.view, list, i) == nil {
		f.publish()
	}
}

// write makes a block of what the builder has. The disk may take its time, or for ever: see Trouble.
func (f *feed) write(b *gramindex.Builder) (block *gramindex.Block, err error) {
	x := f.indexer
	x.writing.Store(new(time.Now()))
	defer x.writing.Store(nil)
	if f.dir == "" {
		if f.dir, err = gramindex.Open(x.Dir); err != nil {
			return nil, err
		}
	}
	if block, err = f.dir.Keep(b); err == nil {
		f.failed = time.Time{}
		x.trouble.Store(nil)
	}
	return block, err
}
