package readmodel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.org/registry/readmodel/gramindex"
)

// feed makes a text index and keeps it up with the model. One goroutine owns it.
type feed struct {
	indexer *Indexer
	model   *Model

	next    textIndex // the parts belong to what was published last, too
	own     [numLists][]bool
	begun   bool
	dir     *gramindex.Dir // nil: to be opened
	builder *gramindex.Builder
	failed  time.Time // when writing did; zero: not of late
}

// step learns what v says has changed, offers that to searches, and builds the block that needs it
// most. more says that it built one, and another may be needed.
func (f *feed) step(ctx context.Context, v *View) (more bool, err error) {
	f.note(v)
	list, i, found := f.neediest()
	if !found {
		f.next.complete = v.sequence
		f.builder, f.dir = nil, f.dir.Shrunk() // their memory is worth more than their speed
	}
	f.publish()
	if !found || f.waitsForDisk() {
		return false, nil
	}
	if err := f.build(ctx, v, list, i); err != nil {
		f.dir, f.failed = nil, time.Now()
		return false, err
	}
	f.publish()
	return true, nil
}

// waitsForDisk says that writing failed only just now.
func (f *feed) waitsForDisk() bool {
	return !f.failed.IsZero() && time.Since(f.failed) < afterFailure
}

// idle waits for something to do after v.
func (f *feed) idle(ctx context.Context, v *View) {
	until, cancel := ctx, context.CancelFunc(func() {})
	if !f.failed.IsZero() {
		until, cancel = context.WithDeadline(ctx, f.failed.Add(afterFailure))
	}
	defer cancel()
	_, _ = f.model.Await(until, v.sequence+1) // whatever ends it, there is another look
	wait(ctx, f.indexer.pause())
}

// note marks what has changed since the last view as not indexed.
func (f *feed) note(v *View) {
	changes, ok := v.changes.since(f.next.sequence)
	if !ok || !f.begun {
		f.compare(v)
	}
	for _, c := range changes {
		f.mark(c.list(), c.slot())
	}
	f.begun, f.next.sequence = true, v.sequence
}

// compare is note where changes have been forgotten: by a look at every row.
func (f *feed) compare(v *View) {
	for list, l := range v.lists {
		for n, page := range l.rows.pages {
			for i, r := range page.values {
				if r != nil && (!f.begun || r.sequence > f.next.sequence) {
					f.mark(list, uint32(n*pageLen+i))
				}
			}
		}
	}
}

func (f *feed) mark(list int, slot uint32) {
	i := int(slot / gramindex.BlockLen)
	for len(f.next.lists[list]) <= i {
		f.next.lists[list] = append(f.next.lists[list], part{})
		f.own[list] = append(f.own[list], false)
	}
	p := &f.next.lists[list][i]
	if !f.own[list][i] {
		var direct gramindex.Set
		if p.direct != nil {
			direct = *p.direct
		}
		p.direct, f.own[list][i] = &direct, true
	}
	if p.direct.Add(uint16(slot % gramindex.BlockLen)) {
		p.waits++
	}
}

// publish gives searches the index as it is now.
func (f *feed) publish() {
	x := f.next
	for list := range x.lists {
		x.lists[list] = slices.Clone(x.lists[list])
		clear(f.own[list])
	}
	f.model.accelerator.index.Store(&x)
}

// neediest is the part that lacks most entries; false when none lacks more than is worth a block.
func (f *feed) neediest() (list, i int, found bool) {
	most := f.indexer.slack()
	for l := range f.next.lists {
		for n := range f.next.lists[l] {
			if w := f.next.lists[l][n].waits; w > most {
				list, i, most, found = l, n, w, true
			}
		}
	}
	return list, i, found
}

// build makes a new block of the part's rows in v, which is the view of the last note.
func (f *feed) build(ctx context.Context, v *View, list, i int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("text index: %v", p)
		}
	}()
	direct, err := f.collect(ctx, v, list, i)
	if err != nil {
		return err
	}
	block, err := f.write()
	if err != nil {
		return err
	}
	f.next.lists[list][i] = part{block: block, built: v.sequence, direct: direct}
	return nil
}

// restEvery is how many rows are indexed without a rest: some milliseconds.
const restEvery = 512

// collect puts the part's texts into the builder, and says which did not fit.
func (f *feed) collect(ctx context.Context, v *View, list, i int) (direct *gramindex.Set, err error) {
	if f.builder == nil {
		f.builder = &gramindex.Builder{}
	}
	f.builder.Reset()
	rows, begun := &v.lists[list].rows, time.Now()
	for n := range gramindex.BlockLen {
		if n%restEvery == restEvery-1 {
			rest(ctx, time.Since(begun))
			begun = time.Now()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		r := rows.get(uint32(i*gramindex.BlockLen + n))
		if r == nil || f.builder.Add(uint16(n), r.text(), len(r.nameAndChat())) {
			continue
		}
		if direct == nil {
			direct = &gramindex.Set{}
		}
		direct.Add(uint16(n))
	}
	return direct, nil
}

// write makes a block of what the builder has. The disk may take its time, or for ever: see Trouble.
func (f *feed) write() (block *gramindex.Block, err error) {
	x := f.indexer
	x.writing.Store(time.Now().UnixNano())
	defer x.writing.Store(0)
	if f.dir == nil {
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
