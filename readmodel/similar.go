package readmodel

import (
	"context"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/readmodel/btree"
	"example.org/registry/readmodel/lookalike"
)

// numSimilarLists is how many lists have similar entries: scammers and servers, the first of
// events.Lists. The entries of legit may be imitated instead.
const numSimilarLists = 2

// similar finds the entries of scammers and servers whose name is similar to a check's search
// (httpapi/CONTRACT.md#similar), and the entries of legit that the search imitates
// (httpapi/CONTRACT.md#imitates). It adds every row that it reads to look, which has the same
// needle; these include all rows with an equal name. Its only error is ctx's.
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
	look.seen = nil
	for list := range ranks {
		found[list] = firstOf(ranks[list][:])
	}
	return found, imitated, ctx.Err()
}

// similarQuery is a check's text, prepared for comparison with names that do not match it
// literally.
type similarQuery struct {
	needle        string // folded
	keys          lookalike.Keys
	shape, folded int // code points of the keys
}

func newSimilarQuery(search, needle string) *similarQuery {
	k := lookalike.KeysOf(search)
	return &similarQuery{needle, k, utf8.RuneCountInString(k.Shape), utf8.RuneCountInString(k.Folded)}
}

// minKeyLen is the minimum number of code points of a key for a similar name.
const minKeyLen = 3

// possible reports whether the search can have similar or imitated names. Digits alone are an id,
// and no name looks like an id.
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

// rank returns how similar the name of r is. r is a row of scammers or servers that does not match
// literally.
func (q *similarQuery) rank(r *Row) (rank int) {
	name := r.keys
	rank = min(keyRank(name.Shape, q.keys.Shape, q.shape), keyRank(name.Folded, q.keys.Folded, q.folded))
	if rank != similarEqual && r.filter&bitVerified == 0 {
		return notSimilar // unverified entries are similar only if a key is equal
	}
	return rank
}

// imitates reports whether the search imitates the name of r, a row of legit: a key is equal, and
// the name does not literally contain the search.
func (q *similarQuery) imitates(r *Row) bool {
	name := r.keys
	return name.Alike(q.keys) && !strings.Contains(r.folded, q.needle)
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

// similarIndex is the facet of names: it finds the rows that may be similar to a search, or
// imitated by it, without reading the others. Like idIndex it is a tree of hashes: of parts of the
// look-alike keys.
//
// A search has at least half as many code points as a key that is similar to it, so it covers a
// window of that length wherever it lies in the key. A gram is one code point shorter than the
// window, so each window contains at least one of every two grams. The index therefore stores every
// other gram of a key, about four a key. If a key contains the search, every other gram of the
// search is stored, and a lookup returns the rows that have them all.
//
// Every shown row is also stored under its whole keys, joined. Unverified rows are similar only if a
// key is equal, and rows of legit are imitated only then. For the person check (View.Who) every shown
// row is also stored under the cores of its name, under its literal name, and under the number of its
// report.
type similarIndex struct {
	grams, whole, literal, reports maphash.Seed // random, so that no publisher can choose keys that collide
	tree                           btree.Tree
	scratch                        []btree.Item // used by the owner only
	content                        *content     // nil in a view
}

func newSimilarIndex(c *content) *similarIndex {
	return &similarIndex{grams: maphash.MakeSeed(), whole: maphash.MakeSeed(), literal: maphash.MakeSeed(), reports: maphash.MakeSeed(), content: c}
}

func (x *similarIndex) apply(ch change) {
	if ch.old != nil && ch.row != nil && ch.old.Name() == ch.row.Name() &&
		ch.old.ReportID() == ch.row.ReportID() && (ch.old.filter^ch.row.filter)&bitVerified == 0 {
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

func (x *similarIndex) publish(v *View) {
	v.similarNames = similarIndex{grams: x.grams, whole: x.whole, literal: x.literal, reports: x.reports, tree: x.tree.Snapshot()}
}

// items returns the distinct items of r, in x.scratch.
func (x *similarIndex) items(r *Row) []btree.Item {
	x.scratch = x.appendItems(x.scratch[:0], r)
	slices.SortFunc(x.scratch, btree.ByKey)
	return slices.Compact(x.scratch)
}

// appendItems appends the items of r, with repetitions. A row that is not shown has none.
func (x *similarIndex) appendItems(items []btree.Item, r *Row) []btree.Item {
	if r == nil || !r.shown() {
		return items
	}
	k, name, ref := r.keys, r.Name(), uint32(r.Ref())
	items = append(items,
		btree.Item{Key: x.reportHash(r.ReportID()), Slot: ref},
		btree.Item{Key: x.literalHash(lookalike.Literal(name)), Slot: ref})
	if strings.ContainsFunc(name, isDecoration) || strings.ContainsFunc(r.folded, isDecoration) {
		for _, core := range lookalike.Cores(name) {
			items = x.appendCore(items, ref, core)
		}
	}
	items = x.appendKey(items, r, k.Shape)
	if k.Folded != k.Shape {
		items = x.appendKey(items, r, k.Folded)
	}
	return items
}

// isDecoration reports whether r, in a name or a folded name, may make a core of the name differ from its
// joined keys.
func isDecoration(r rune) bool {
	return r != ' ' && (!lookalike.IsWordly(r) || lookalike.Invisible(r))
}

func (x *similarIndex) appendCore(items []btree.Item, ref uint32, core lookalike.Keys) []btree.Item {
	for _, key := range [...]string{core.Shape, core.Folded} {
		if key != "" {
			items = append(items, btree.Item{Key: maphash.String(x.whole, key), Slot: ref})
		}
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

// wholeOf returns the hash of a whole key.
func (x *similarIndex) wholeOf(key string) uint64 {
	return maphash.String(x.whole, lookalike.Keys{Shape: key}.Joined().Shape)
}

// literalHash returns the hash of a literal name.
func (x *similarIndex) literalHash(literal string) uint64 { return maphash.String(x.literal, literal) }

// candidates returns all rows that may be similar to k, in ascending order.
func (x *similarIndex) candidates(k *lookalike.Keys) []RowRef {
	refs := x.appendHolding(nil, k.Shape)
	if k.Folded != k.Shape {
		refs = x.appendHolding(refs, k.Folded)
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// appendHolding appends the rows whose key may equal or contain a search's key. Such a key has at
// least as many code points and at most twice as many, which determines the possible sizes of its
// grams.
func (x *similarIndex) appendHolding(refs []RowRef, key string) []RowRef {
	refs = x.appendKept(refs, x.wholeOf(key))
	at := appendCodePoints(nil, key)
	n := len(at) - 1
	if n < minKeyLen {
		return refs
	}
	gram := func(p, size int) uint64 { return maphash.String(x.grams, key[at[p]:at[p+size]]) }
	for size := gramSize(windowOf(n)); size <= gramSize(n); size++ {
		if size == maxGram { // keys of any length have grams of this size, in steps of any length
			for p := 0; p+size <= n; p++ {
				refs = x.appendKept(refs, gram(p, size))
			}
			continue
		}
		// A key that contains the search has every other gram of it: from the first on, or from the
		// second. The rarest one selects the rows.
		for first := 0; first < 2 && first+size <= n; first++ {
			rarest, fewest := uint64(0), math.MaxInt
			for p := first; p+size <= n; p += 2 {
				hash := gram(p, size)
				if count := x.tree.Count(hash); count < fewest {
					rarest, fewest = hash, count
				}
			}
			refs = x.appendKept(refs, rarest)
		}
	}
	return refs
}

// appendKept appends the rows stored under a hash, in ascending order.
func (x *similarIndex) appendKept(refs []RowRef, hash uint64) []RowRef {
	x.tree.Find(hash, func(n uint32) { refs = append(refs, RowRef(n)) })
	return refs
}

// The bounds of a gram, in code points.
const (
	minGram = minKeyLen
	maxGram = 12 // longer ones are no rarer
)

// keptGrams yields the grams of a name's key that the index stores.
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

// gramSize returns the code points of the stored grams of a key with this window.
func gramSize(window int) int { return min(max(window-1, minGram), maxGram) }

// windowOf returns the minimum code points of a search that can be similar to a key of n.
func windowOf(n int) int { return max(minKeyLen, (n+1)/2) }

// appendCodePoints appends the start of each code point of s, and the end of the last one.
func appendCodePoints(at []int, s string) []int {
	for i := range s {
		at = append(at, i)
	}
	return append(at, len(s))
}
