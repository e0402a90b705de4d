package readmodel

import (
	"context"
	"fmt"
	"time"

	"example.org/registry/readmodel/gramindex"
)

// build makes a new block of the part's rows in v, which is the view of the last note.
func (f *feed) build(ctx context.Context, v *View, list, i int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("text index: %v", p)
		}
	}()
	direct, rows, err := f.collect(ctx, v, list, i)
	if err != nil {
		return err
	}
	block, err := f.write()
	if err != nil {
		return err
	}
	f.next.lists[list][i] = part{block: block, built: v.sequence, direct: direct}
	f.care[list][i] = care{rows: rows, built: time.Now()}
	return nil
}

// restEvery is how many rows are indexed without a rest: some milliseconds.
const restEvery = 512

// collect puts the part's texts into the builder, and says how many there are and which did not fit.
func (f *feed) collect(ctx context.Context, v *View, list, i int) (direct *gramindex.Set, rows int, err error) {
	if f.builder == nil {
		f.builder = &gramindex.Builder{}
	}
	f.builder.Reset()
	begun := time.Now()
	for n := range gramindex.BlockLen {
		if n%restEvery == restEvery-1 {
			rest(ctx, time.Since(begun))
			begun = time.Now()
			if ctx.Err() != nil {
				return nil, 0, ctx.Err()
			}
		}
		r := v.lists[list].rows.get(uint32(i*gramindex.BlockLen + n))
		if r == nil {
			continue
		}
		rows++
		if !f.builder.Add(uint16(n), r.text(), len(r.nameAndChat())) {
			if direct == nil {
				direct = &gramindex.Set{}
			}
			direct.Add(uint16(n))
		}
	}
	return direct, rows, nil
}

// write makes a block of what the builder has. The disk may take its time, or for ever: see Trouble.
func (f *feed) write() (block *gramindex.Block, err error) {
	x := f.indexer
	x.writing.Store(new(time.Now()))
	defer x.writing.Store(nil)
	if f.dir == "" {
		if f.dir, err = gramindex.Open(x.Dir); err != nil {
			return nil, err
		}
	}
	if block, err = f.dir.Keep(f.builder); err == nil {
		f.failed = time.Time{}
		x.trouble.Store(nil)
	}
	return block, err
}
