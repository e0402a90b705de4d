package gramindex

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
)

// BlockLen is how many slots a block covers.
const BlockLen = 1 << 14

// Text is one of the texts of a slot.
type Text uint8

// The texts. Names is the beginning of All.
const (
	All Text = iota
	Names
)

// Block is the index of up to BlockLen texts. It never changes; any goroutine may use it. Nil is
// an empty one; the zero value cannot be read. Its memory is given back some time after the last
// reference is gone.
type Block struct{ data []byte } // mapped

// Find sets found to the slots whose text has every gram of needle: those that contain it, and
// where Exact says no, others too. It fails where the block cannot be read any more.
func (b *Block) Find(text Text, needle string, found *Set) (err error) {
	*found = Set{}
	if b == nil {
		return nil
	}
	// The pages may have to come from a disk, and a disk can fail: that is an error, not the end
	// of the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("text index: %v", v)
		}
	}()
	var of gram
	if text == Names {
		of = inNames
	}
	b.find(spansOf(needle, of), found)
	runtime.KeepAlive(b)
	return nil
}

const (
	// maxLists bounds the lists that are read for a needle, the shortest first: more of them
	// hardly rule out more.
	maxLists = 16
	// fewEnough is so few slots that looking at them is cheaper than another list.
	fewEnough = 8
)

func (b *Block) find(spans []span, found *Set) {
	runs := make([]run, 0, len(spans))
	for _, s := range spans {
		r := b.run(s)
		if r.first == r.behind {
			return
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(x, y run) int { return cmp.Compare(x.bytes, y.bytes) })
	for i, r := range runs[:min(maxLists, len(runs))] {
		if i == 0 {
			b.union(r, found)
			continue
		}
		var next Set
		b.union(r, &next)
		if found.and(&next) <= fewEnough {
			return
		}
	}
}

// run is neighbouring lists.
type run struct{ first, behind, bytes int }

// run finds the lists of the grams of s.
func (b *Block) run(s span) run {
	n := b.lists()
	first := sort.Search(n, func(i int) bool { return b.gram(i) >= s.low })
	behind := first
	if s.low == s.high {
		if first < n && b.gram(first) == s.low {
			behind++
		}
	} else {
		behind += sort.Search(n-first, func(i int) bool { return b.gram(first+i) > s.high })
	}
	return run{first, behind, b.end(behind) - b.end(first)}
}

// union adds the slots of the lists of r.
func (b *Block) union(r run, to *Set) {
	for i := r.first; i < r.behind; i++ {
		to.addList(b.data[b.end(i):b.end(i+1)])
	}
}

// lists is how many there are.
func (b *Block) lists() int { return int(binary.LittleEndian.Uint64(b.data)) }

func (b *Block) gram(i int) gram {
	return gram(binary.LittleEndian.Uint64(b.data[headSize+gramSize*i:]))
}

// end is where the list before list i ends, and list i begins.
func (b *Block) end(i int) int {
	n := b.lists()
	first := headSize + entrySize*n
	if i == 0 {
		return first
	}
	return first + int(binary.LittleEndian.Uint32(b.data[headSize+gramSize*n+endSize*(i-1):]))
}

// Bytes is the block's size.
func (b *Block) Bytes() int {
	if b == nil {
		return 0
	}
	return len(b.data)
}
