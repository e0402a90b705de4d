package readmodel

import (
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/maypok86/otter/v2"

	"example.org/registry/readmodel/gramindex"
)

// accelerator is what makes searches fast and is allowed to be missing, behind or wiped: the text
// index and the remembered results. It belongs to a Model and is shared by all its views; any
// goroutine may use it. Nothing in it decides an answer: see View.matching.
type accelerator struct {
	index      atomic.Pointer[indexed]
	remembered *otter.Cache[searchKey, *remembered]

	hits, misses atomic.Uint64 // of remembered
}

// Remembered is what is known of the searches that a model remembers. Hits and Misses count, since the
// model was made, the searches that found their result remembered and those that did not.
type Remembered struct {
	Searches     int
	Bytes        uint64 // by estimate
	Hits, Misses uint64
}

// Remembered is shared by all views of a model.
func (v *View) Remembered() Remembered {
	a := v.accelerator
	return Remembered{a.remembered.EstimatedSize(), a.remembered.WeightedSize(), a.hits.Load(), a.misses.Load()}
}

// rememberedBytes bounds the remembered results.
const rememberedBytes = 32 << 20

func newAccelerator() *accelerator {
	return &accelerator{remembered: otter.Must(&otter.Options[searchKey, *remembered]{
		MaximumWeight: rememberedBytes,
		Weigher:       func(k searchKey, r *remembered) uint32 { return r.weight + uint32(len(k.needle)) },
		Executor:      func(f func()) { f() }, // no goroutine that nobody waits for
	})}
}

// searchKey is one question to the text of one list.
type searchKey struct {
	list   int
	text   gramindex.Text
	needle string // folded
}

// remembered is the exact answer to a question at one sequence: slots of the list. Immutable.
type remembered struct {
	sequence uint64
	slots    *roaring.Bitmap
	weight   uint32
}

func (a *accelerator) remember(k searchKey, sequence uint64, slots *roaring.Bitmap) {
	const overhead = 256
	a.remembered.Set(k, &remembered{sequence, slots, uint32(slots.GetSizeInBytes()) + overhead})
}

// indexed is a snapshot of the index, which covers the model up to a sequence.
type indexed struct {
	snapshot *gramindex.Snapshot
	made     uint64        // at this sequence
	sequence atomic.Uint64 // grows while nothing with text changes
	users    atomic.Int64  // the accelerator is one of them
}

// covers is the sequence up to which the snapshot is true for v; false for a view that is older.
func (x *indexed) covers(v *View) (sequence uint64, ok bool) {
	return min(x.sequence.Load(), v.sequence), x.made <= v.sequence
}

func newIndexed(s *gramindex.Snapshot, sequence uint64) *indexed {
	x := &indexed{snapshot: s, made: sequence}
	x.sequence.Store(sequence)
	x.users.Store(1)
	return x
}

// acquire is the index as far as it has come, nil when there is none. Whoever gets one releases it.
func (a *accelerator) acquire() *indexed {
	for {
		x := a.index.Load()
		if x == nil {
			return nil
		}
		if n := x.users.Load(); n > 0 && x.users.CompareAndSwap(n, n+1) {
			return x
		}
		// It was replaced between the two loads: the next one is there already.
	}
}

func (x *indexed) release() {
	if x.users.Add(-1) == 0 {
		_ = x.snapshot.Release() // its error would be that it was released already
	}
}

// replace makes x the index that searches use; nil for none.
func (a *accelerator) replace(x *indexed) {
	if old := a.index.Swap(x); old != nil {
		old.release()
	}
}
