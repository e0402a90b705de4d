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
	care    [numLists][]care
	begun   bool
	quiet   bool          // the last note found nothing
	dir     gramindex.Dir // empty: to be opened
	builder *gramindex.Builder
	failed  time.Time // when writing did; zero: not of late
}

// care is what the feed knows of a part beside it.
type care struct {
	own   bool      // its set of direct slots has not been published
	rows  int       // in its block
	built time.Time // its block
}

// step learns what v says has changed, offers that to searches, and builds the block that needs it
// most. more says that it built one, and another may be needed.
func (f *feed) step(ctx context.Context, v *View) (more bool, err error) {
	f.note(v)
	list, i, need := f.neediest()
	if need == none {
		f.next.complete = v.sequence
		f.builder = nil // its memory is worth more than its speed
	}
	f.publish()
	if need != now || f.waitsForDisk() {
		return false, nil
	}
	if err := f.build(ctx, v, list, i); err != nil {
		f.dir, f.failed = "", time.Now()
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
	if f.next.complete == v.sequence {
		_, _ = f.model.Await(ctx, v.sequence+1) // its error is ctx's
	}
	wait(ctx, f.indexer.pause())
}

// note marks what has changed since the last view as not indexed.
func (f *feed) note(v *View) {
	changes, ok := v.changes.since(f.next.sequence)
	f.quiet = ok && len(changes) == 0
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
		f.care[list] = append(f.care[list], care{})
	}
	p := &f.next.lists[list][i]
	if !f.care[list][i].own {
		var direct gramindex.Set
		if p.direct != nil {
			direct = *p.direct
		}
		p.direct, f.care[list][i].own = &direct, true
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
		for i := range f.care[list] {
			f.care[list][i].own = false
		}
	}
	f.model.accelerator.index.Store(&x)
}

// need is whether a part's block is to be made anew.
type need int

const (
	none  need = iota
	later      // it lacks some slots, but is about to lack more
	now
)

// seldom is how often a block is made anew at most while it lacks less than half of what it has.
const seldom = 5 * time.Second

// need grows with what the part lacks. While much is changing a block grows by half each time, so that
// filling it costs three times what making it once does.
func (f *feed) need(list, i int) need {
	waits, c := f.next.lists[list][i].waits, f.care[list][i]
	switch {
	case waits <= f.indexer.slack():
		return none
	case f.quiet || waits > c.rows/2 || time.Since(c.built) > seldom:
		return now
	default:
		return later
	}
}

// neediest is the part that needs a new block most.
func (f *feed) neediest() (list, i int, most need) {
	waits := 0
	for l := range f.next.lists {
		for n := range f.next.lists[l] {
			w, need := f.next.lists[l][n].waits, f.need(l, n)
			if need > most || need == most && need != none && w > waits {
				list, i, most, waits = l, n, need, w
			}
		}
	}
	return list, i, most
}

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
	x.writing.Store(time.Now().UnixNano())
	defer x.writing.Store(0)
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
