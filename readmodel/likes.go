package readmodel

import (
	"hash/maphash"
	"slices"

	"example.org/registry/readmodel/lookalike"
)

// likes finds the rows of scammers and servers that can be similar to a search, without asking the
// others: a tree by hash, as chats is, of parts of the look-alike keys.
//
// What is searched for has at least half as many code points as the key that it stands in, so it
// covers any key in a window of that length, wherever it lies. A gram is one code point shorter than
// the window, so that every other one is enough for each window to hold one whole: four or so of a
// key. Of two neighbouring grams of the search one is kept, if the key holds the search at all;
// whoever asks takes the rarest two. Rows of the risk list are similar only when the keys are equal,
// and are kept under their whole keys alone.
type likes struct {
	grams, whole maphash.Seed // random, so nobody can choose keys that meet
	tree         tree
	scratch      []item // of the owner
}

func newLikes() likes { return likes{grams: maphash.MakeSeed(), whole: maphash.MakeSeed()} }

// share is for a view.
func (l *likes) share() likes { return likes{grams: l.grams, whole: l.whole, tree: l.tree.share()} }

// apply keeps the tree true to a change.
func (l *likes) apply(ch change) {
	if ch.old != nil && ch.row != nil && ch.old.keys() == ch.row.keys() && (ch.old.filter^ch.row.filter)&bitVerified == 0 {
		return
	}
	for _, it := range l.items(ch.old) {
		l.tree.remove(it, compareChats)
	}
	for _, it := range l.items(ch.row) {
		l.tree.insert(it, compareChats)
	}
}

// reload makes the tree anew from the rows of both lists.
func (l *likes) reload(lists *[numLists]*catalogue) {
	var items []item
	for _, c := range lists[:numAccused] {
		items = slices.Grow(items, 4*len(c.cells))
		for _, cl := range c.cells {
			items = append(items, l.items(cl.row)...)
		}
	}
	slices.SortFunc(items, compareChats)
	l.tree.load(items)
}

// items are those of r, each once, in l.scratch: none of a row that no search can be similar to.
func (l *likes) items(r *Row) []item {
	l.scratch = l.scratch[:0]
	if r == nil || r.list >= numAccused {
		return nil
	}
	k := r.keys()
	add := l.addGrams
	if r.filter&bitVerified == 0 {
		add = l.addWhole
	}
	add(r, k.Shape)
	if k.Folded != k.Shape {
		add(r, k.Folded)
	}
	slices.SortFunc(l.scratch, compareChats)
	return slices.Compact(l.scratch)
}

func (l *likes) addWhole(r *Row, key string) { l.add(r, maphash.String(l.whole, key)) }

func (l *likes) addGrams(r *Row, key string) {
	for gram := range keptGrams(key) {
		l.add(r, maphash.String(l.grams, gram))
	}
}

func (l *likes) add(r *Row, hash uint64) {
	l.scratch = append(l.scratch, item{hash, uint32(r.list)<<listShift | r.slot})
}

// candidates are all rows, by list and slot and in that order, that may be similar to k.
func (l *likes) candidates(k *lookalike.Keys) []uint32 {
	var hashes []uint64
	for _, key := range [...]string{k.Shape, k.Folded} {
		at := codePoints(key)
		for size := minGram; size <= min(maxGram, len(at)-1); size++ {
			hashes = l.gramsOf(hashes, key, at, size)
		}
		hashes = append(hashes, maphash.String(l.whole, key))
	}
	slices.Sort(hashes)
	var refs []uint32
	for _, h := range slices.Compact(hashes) {
		l.tree.withKey(h, func(ref uint32) { refs = append(refs, ref) })
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// gramsOf appends the hashes of grams of a search's key: so many in a row that one of them is kept
// of any key with grams of that size that holds the search, and of those the rarest.
func (l *likes) gramsOf(hashes []uint64, key string, at []int, size int) []uint64 {
	n := len(at) - 1
	first := len(hashes)
	for p := 0; p+size <= n; p++ {
		hashes = append(hashes, maphash.String(l.grams, key[at[p]:at[p+size]]))
	}
	if size == maxGram || len(hashes)-first <= 2 {
		return hashes // the keys of the longest grams are of any length, and their steps too
	}
	best, fewest := first, int(^uint(0)>>1)
	last := l.tree.countKey(hashes[first])
	for i := first + 1; i < min(len(hashes), first+maxTried); i++ {
		next := l.tree.countKey(hashes[i])
		if last+next < fewest {
			best, fewest = i-1, last+next
		}
		last = next
	}
	return append(hashes[:first], hashes[best:best+2]...)
}

// maxTried bounds the look for the rarest grams in long searches.
const maxTried = 32
