package readmodel

import (
	"context"
	"slices"
	"time"

	"example.org/registry/readmodel/gramindex"
)

// feed makes a text index and keeps it up with the model. One goroutine owns it.
type feed struct {
	indexer *Indexer
	model   *Model

	next   textIndex // the parts belong to what was published last, too
	care   [numLists][]care
	begun  bool
	view   *View         // of the last note
	quiet  bool          // which found nothing
	dir    gramindex.Dir // empty: to be opened
	large  *gramindex.Builder
	small  *gramindex.Builder // used while large is, too
	failed time.Time          // when writing did; zero: not of late
}

// care is what the feed knows of a part beside it.
type care struct {
	own   bool      // its set of direct slots has not been published
	rows  int       // in its block
	stale int       // slots in its newer block
	block time.Time // when that was built
	last  time.Time // when either was
}

// step learns what v says has changed, offers that to searches, and builds the block that needs it
// most. more says that it built one, and another may be needed.
func (f *feed) step(ctx context.Context, v *View) (more bool, err error) {
	f.note(v)
	list, i, need := f.neediest(false)
	if need == none {
		f.next.complete = v.sequence
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
	wait(ctx, f.indexer.pause())
	if f.next.complete == v.sequence && f.model.View() == v {
		f.large, f.small = nil, nil             // their memory is worth more than their speed
		_, _ = f.model.Await(ctx, v.sequence+1) // its error is ctx's
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
