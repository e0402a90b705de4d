package readmodel

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/readmodel/btree"
	"example.org/registry/readmodel/lookalike"
)

// numSimilarLists is how many lists have similar entries: scammers and servers, the first of
// events.Lists. The others, which is legit, have entries that a search may imitate.
const numSimilarLists = 2

// similar finds the entries of scammers and servers whose name is similar to what a check searches
// for (httpapi/CONTRACT.md#similar), and those of legit that it imitates
// (httpapi/CONTRACT.md#imitates). To look, which has the same needle, it adds whatever it looks at:
// all whose name is equal are among them. Its only error is ctx's.
func (v *View) similar(ctx context.Context, q *similarQuery, look *ranking) (found rowsByList, imitated []*Row, err error) {
	if !q.possible() {
		return found, nil, nil
	}
	var ranks [numSimilarLists][notSimilar][]*Row
	look.seen = func(r *Row, matches bool) {
		switch {
		case r.list >= numSimilarLists:
			if q.imitates(r) {
				imitated = keepNewest(imitated, r)
			}
		case !matches:
			if rank := q.rank(r); rank != notSimilar {
				ranks[r.list][rank] = keepNewest(ranks[r.list][rank], r)
			}
		}
	}
	for i, ref := range v.similarNames.candidates(&q.keys) {
		if i%1024 == 0 && ctx.Err() != nil {
			return rowsByList{}, nil, ctx.Err()
		}
		look.add(v.Row(ref))
	}
	look.look()
	look.seen = nil
	for list := range ranks {
		found[list] = firstOf(ranks[list][:])
	}
	return found, imitated, ctx.Err()
}

// similarQuery is what names are compared with that do not match a check's text as it stands.
type similarQuery struct {
	needle        string // folded
	keys          lookalike.Keys
	shape, folded int // code points of the keys
}

func newSimilarQuery(search, needle string) *similarQuery {
	k := lookalike.KeysOf(search)
	return &similarQuery{needle, k, utf8.RuneCountInString(k.Shape), utf8.RuneCountInString(k.Folded)}
}

// minKeyLen is how many code points a key must have to be similar to anything.
const minKeyLen = 3

// possible reports whether anything can be similar or imitated. Digits alone are an id, and nobody
// has a name like an id.
func (q *similarQuery) possible() bool {
	return max(q.shape, q.folded) > 0 &&
		strings.ContainsFunc(q.needle, func(r rune) bool { return !unicode.IsDigit(r) })
}

// The ranks of a similar name, best first.
const (
	similarEqual = iota
	similarStarts
	similarContains
	notSimilar
)

// rank returns how similar the name of r is, a row of scammers or servers that does not match as it
// stands.
func (q *similarQuery) rank(r *Row) (rank int) {
	name := r.keys()
	rank = min(keyRank(name.Shape, q.keys.Shape, q.shape), keyRank(name.Folded, q.keys.Folded, q.folded))
	if rank != similarEqual && r.filter&bitVerified == 0 {
		return notSimilar // who is only accused is named for an equal key alone
	}
	return rank
}

// imitates reports whether the search takes the looks of r, a row of legit: a key is the same, and
// the name does not contain the search as it stands.
func (q *similarQuery) imitates(r *Row) bool {
	name := r.keys()
	return name.Alike(q.keys) && !strings.Contains(r.foldedName(), q.needle)
}

// keyRank compares a key of a name with the same key of a search, which has n code points.
func keyRank(name, search string, n int) int {
	switch at := strings.Index(name, search); {
	case at < 0 || n < minKeyLen:
		return notSimilar
	case len(name) == len(search):
		return similarEqual
	case 2*n < utf8.RuneCountInString(name):
		return notSimilar
	case at == 0:
		return similarStarts
	default:
		return similarContains
	}
}

// similarIndex is the facet of names: it finds the rows that may be similar to a search, or imitated by
// it, without a look at the others. It is a tree of hashes, as idIndex is, of parts of the look-alike keys.
//
// A search has at least half as many code points as the key that it is similar to, so wherever it
// lies in the key it covers a window of that length. A gram is one code point shorter than the
// window, so each window holds one of every two grams whole: every other gram is kept, some four a
// key. So of a key that holds a search every other gram of the search is kept, and a look-up takes
// the rows that have them all. Every row that is shown is also kept under its whole keys,
// without separators: rows that are not verified are similar for an equal key alone, as those of
// legit are imitated, and WithNames looks for any row of such a key. The number of its report is
// kept, too.
type similarIndex struct {
	grams, whole, reports maphash.Seed // random, so nobody can choose keys that collide
	tree                  btree.Tree
	scratch               []btree.Item // of the owner
	content               *content     // nil in a view
}

func newSimilarIndex(c *content) *similarIndex {
	return &similarIndex{grams: maphash.MakeSeed(), whole: maphash.MakeSeed(), reports: maphash.MakeSeed(), content: c}
}

func (x *similarIndex) apply(ch change) {
	if ch.old != nil && ch.row != nil && ch.old.keys() == ch.row.keys() &&
		ch.old.reportID() == ch.row.reportID() && (ch.old.filter^ch.row.filter)&bitVerified == 0 {
		return
	}
	for _, it := range x.items(ch.old) {
		x.tree.Delete(it, btree.ByKey)
	}
	for _, it := range x.items(ch.row) {
		x.tree.Insert(it, btree.ByKey)
	}
}

func (x *similarIndex) reload(s *scratch) {
	items := s.room(4 * x.content.numRows())
	for r := range x.content.rows() {
		items = x.appendItems(items, r)
	}
	s.sorter.Sort(items, nil, btree.ByKey)
	x.tree.Load(slices.Compact(items))
}

func (x *similarIndex) compact() bool { return x.tree.Compact(compactItems) }

func (x *similarIndex) publish(v *View) {
	v.similarNames = similarIndex{grams: x.grams, whole: x.whole, reports: x.reports, tree: x.tree.Snapshot()}
}

// items returns the items of r, each once, in x.scratch.
func (x *similarIndex) items(r *Row) []btree.Item {
	x.scratch = x.appendItems(x.scratch[:0], r)
	slices.SortFunc(x.scratch, btree.ByKey)
	return slices.Compact(x.scratch)
}

// appendItems appends the items of r, some more than once. A row that is not shown has none.
func (x *similarIndex) appendItems(items []btree.Item, r *Row) []btree.Item {
	if r == nil || !r.shown() {
		return items
	}
	k := r.keys()
	items = append(items, btree.Item{Key: x.reportHash(r.reportID()), Slot: uint32(r.Ref())})
	items = x.appendKey(items, r, k.Shape)
	if k.Folded != k.Shape {
		items = x.appendKey(items, r, k.Folded)
	}
	return items
}

func (x *similarIndex) appendKey(items []btree.Item, r *Row, key string) []btree.Item {
	ref := uint32(r.Ref())
	items = append(items, btree.Item{Key: x.wholeOf(key), Slot: ref})
	if r.filter&bitVerified == 0 || r.list >= numSimilarLists {
		return items
	}
	for gram := range keptGrams(key) {
		items = append(items, btree.Item{Key: maphash.String(x.grams, gram), Slot: ref})
	}
	return items
}

// wholeOf is the hash of the core of a key. So names that are equal once they are folded have one
// for the key Folded.
func (x *similarIndex) wholeOf(key string) uint64 {
	var room [64]byte
	return maphash.Bytes(x.whole, lookalike.AppendCore(room[:0], key))
}

// candidates returns all rows that may be similar to k, in ascending order.
func (x *similarIndex) candidates(k *lookalike.Keys) []RowRef {
	refs := x.appendHolding(nil, k.Shape)
	if k.Folded != k.Shape {
		refs = x.appendHolding(refs, k.Folded)
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// appendHolding appends the rows whose key may be or hold a search's key. One that holds it has as
// many code points at least and twice as many at most, and its grams have a size of such a key.
func (x *similarIndex) appendHolding(refs []RowRef, key string) []RowRef {
	refs = x.appendKept(refs, x.wholeOf(key))
	at := appendCodePoints(nil, key)
	n := len(at) - 1
	if n < minKeyLen {
		return refs
	}
	var lists []keptList
	gram := func(p, size int) uint64 { return maphash.String(x.grams, key[at[p]:at[p+size]]) }
	for size := gramSize(windowOf(n)); size <= gramSize(n); size++ {
		if size == maxGram { // keys of any length have these, in steps of any length
			for p := 0; p+size <= n; p++ {
				refs = x.appendKept(refs, gram(p, size))
			}
			continue
		}
		// Every other gram of the search is kept of a key that holds it: from the first on, or from
		// the second. The last is the first to be counted, since many names end with a number.
		for first := 0; first < 2 && first+size <= n; first++ {
			lists = lists[:0]
			for p := first + (n-size-first)/2*2; p >= 0; p -= 2 {
				hash := gram(p, size)
				count := x.tree.Count(hash)
				if lists = append(lists, keptList{hash, count}); count <= fewRows {
					break
				}
			}
			refs = x.appendKeptInAll(refs, lists)
		}
	}
	return refs
}

// keptList is the rows that are kept under a hash.
type keptList struct {
	hash  uint64
	count int
}

const (
	// fewRows are looked at in less time than another list is counted.
	fewRows = 8
	// readInLook is how many rows of a list are read in the time that a look at one takes.
	readInLook = 16
)

// appendKeptInAll appends the rows that are in all of the lists, in ascending order, and others
// where a look at them takes less time. It sorts the lists.
func (x *similarIndex) appendKeptInAll(refs []RowRef, lists []keptList) []RowRef {
	slices.SortFunc(lists, func(a, b keptList) int { return cmp.Compare(a.count, b.count) })
	begun := len(refs)
	refs = x.appendKept(refs, lists[0].hash)
	for _, l := range lists[1:] {
		if l.count > readInLook*(len(refs)-begun) {
			break
		}
		refs = refs[:begun+x.keep(refs[begun:], l.hash)]
	}
	return refs
}

// appendKept appends the rows that are kept under a hash, in ascending order.
func (x *similarIndex) appendKept(refs []RowRef, hash uint64) []RowRef {
	x.tree.Find(hash, func(n uint32) { refs = append(refs, RowRef(n)) })
	return refs
}

// keep moves those of ascending rows to the front that are kept under a hash, and returns how many.
func (x *similarIndex) keep(refs []RowRef, hash uint64) (n int) {
	at := 0
	x.tree.Find(hash, func(slot uint32) {
		for at < len(refs) && refs[at] < RowRef(slot) {
			at++
		}
		if at < len(refs) && refs[at] == RowRef(slot) {
			refs[n] = refs[at]
			n++
		}
	})
	return n
}

// The bounds of a gram, in code points.
const (
	minGram = minKeyLen
	maxGram = 12 // longer ones are no rarer
)

// keptGrams yields the grams of a name's key that a search is found by.
func keptGrams(key string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		var room [64]int
		at := appendCodePoints(room[:0], key)
		n := len(at) - 1
		window := windowOf(n)
		size := gramSize(window)
		step := window - size + 1
		if n < minKeyLen {
			return
		}
		// A gram at p lies in the windows that start at p-step+1 to p.
		for p := step - 1; yield(key[at[p]:at[p+size]]) && p < n-window; {
			p += step
		}
	}
}

// gramSize returns the code points of the grams that are kept of a key with such a window.
func gramSize(window int) int { return min(max(window-1, minGram), maxGram) }

// windowOf returns the fewest code points of a search that can be similar to a key of n.
func windowOf(n int) int { return max(minKeyLen, (n+1)/2) }

// appendCodePoints appends where each code point of s starts, and where the last one ends.
func appendCodePoints(at []int, s string) []int {
	for i := range s {
		at = append(at, i)
	}
	return append(at, len(s))
}
