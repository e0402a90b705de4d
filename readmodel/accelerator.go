package readmodel

import (
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"example.org/registry/readmodel/gramindex"
)

// accelerator is what makes searches fast and is allowed to be missing or behind: the text index
// and the remembered results. It belongs to a Model and is shared by all its views; any goroutine
// may use it. Nothing in it decides an answer: see View.matching.
type accelerator struct {
	index      atomic.Pointer[textIndex] // nil until an Indexer has begun
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
const rememberedBytes = 24 << 20

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

// remembered is the exact answer to a question at one sequence. Immutable.
type remembered struct {
	sequence uint64
	matches  matches
	weight   uint32
}

func (a *accelerator) remember(k searchKey, sequence uint64, m matches) {
	const overhead = 320
	a.remembered.Set(k, &remembered{sequence, m, uint32(m.slots.GetSizeInBytes()) + overhead})
}

// textIndex is the index of all lists as it was at one moment. Immutable.
type textIndex struct {
	begun    uint64 // what changed before was not followed: no use to an older view
	sequence uint64 // every change from there up to here is known to a part
	complete uint64 // the last such sequence at which no part was waiting to be built
	lists    [numLists][]part
}

// part is the index of BlockLen neighbouring slots of a list: a block; a smaller one of what has changed
// since that was made; and the slots of which neither knows the text, since it has changed again or did
// not fit. Those are looked at.
type part struct {
	block  *gramindex.Block // nil: empty
	newer  *gramindex.Block // of the slots in stale
	stale  *gramindex.Set   // of which block does not know the text. Nil: none
	built  uint64           // the sequence of the view that the last of the two was made from
	direct *gramindex.Set   // nil: none
	waits  int              // how many of direct a new block would take in
}

// candidates sets found to the slots of the part that may contain the needle in v. sure says whether
// those that are not direct do so without a doubt.
func (p *part) candidates(v *View, k *searchKey, found *gramindex.Set) (sure bool) {
	sure = gramindex.Exact(k.needle)
	// An older view may have other texts than the blocks. One that cannot be read makes a search slower.
	if p.built > v.sequence || p.find(k, found) != nil {
		found.Fill()
		sure = false
	}
	if p.direct != nil {
		found.Or(p.direct)
	}
	return sure
}

// find asks both blocks.
func (p *part) find(k *searchKey, found *gramindex.Set) error {
	if err := p.block.Find(k.text, k.needle, found); err != nil || p.stale == nil {
		return err
	}
	found.AndNot(p.stale)
	var newer gramindex.Set
	if err := p.newer.Find(k.text, k.needle, &newer); err != nil {
		return err
	}
	found.Or(&newer)
	return nil
}
