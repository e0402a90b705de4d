package readmodel

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/readmodel/lookalike"
)

// likeness is what a check's text is compared by with names that do not match it as they stand
// (API contract, check: similar).
type likeness struct {
	needle        string // folded
	keys          lookalike.Keys
	shape, folded int // code points of the keys
}

func newLikeness(search, needle string) *likeness {
	k := lookalike.KeysOf(search)
	return &likeness{needle, k, utf8.RuneCountInString(k.Shape), utf8.RuneCountInString(k.Folded)}
}

// minAlike is how many code points a key has to have to be like anything.
const minAlike = 3

// possible says whether anything can be similar: digits are an id, and nobody is named like an id.
func (k *likeness) possible() bool {
	return max(k.shape, k.folded) >= minAlike &&
		strings.ContainsFunc(k.needle, func(r rune) bool { return !unicode.IsDigit(r) })
}

// The ranks of a similar name, best first.
const (
	alikeEqual = iota
	alikeStarts
	alikeContains
	numAlike // no likeness
)

// rank says how much the name of r, which is of scammers or servers, looks like the search, if it
// does and does not match as it stands.
func (k *likeness) rank(r *Row) (rank int, ok bool) {
	name := r.keys()
	rank = min(keyRank(name.Shape, k.keys.Shape, k.shape), keyRank(name.Folded, k.keys.Folded, k.folded))
	if rank == numAlike || rank != alikeEqual && r.filter&bitVerified == 0 {
		return rank, false // of the risk list, who is only accused, equal keys alone point at anybody
	}
	_, literal := r.rank(k.needle)
	return rank, !literal
}

// keyRank compares a key of a name with the same one of a search, which has n code points.
func keyRank(name, search string, n int) int {
	switch at := strings.Index(name, search); {
	case at < 0 || n < minAlike:
		return numAlike
	case len(name) == len(search):
		return alikeEqual
	case 2*n < utf8.RuneCountInString(name):
		return numAlike
	case at == 0:
		return alikeStarts
	default:
		return alikeContains
	}
}

// numAccused is how many lists have similar entries: scammers and servers, the first of
// events.Lists.
const numAccused = 2

// checkAlike finds the similar entries of scammers and servers. Its error is ctx's.
func (v *View) checkAlike(ctx context.Context, k *likeness, found *[numLists][]*Row) error {
	if !k.possible() {
		return nil
	}
	var ranks [numAccused][numAlike][]*Row
	for i, ref := range v.likes.candidates(&k.keys) {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		list := ref >> listShift
		r := v.lists[list].rows.get(ref & (1<<listShift - 1))
		if rank, ok := k.rank(r); ok {
			ranks[list][rank] = keepNewest(ranks[list][rank], r)
		}
	}
	for list := range ranks {
		found[list] = firstOf(ranks[list][:])
	}
	return ctx.Err()
}

// keepNewest puts r among rows, which are the newest so far in the order newest, if it is one.
func keepNewest(rows []*Row, r *Row) []*Row {
	at, _ := slices.BinarySearchFunc(rows, r, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.reported, a.reported), byTime.tie(b, a))
	})
	if at == maxGroup {
		return rows
	}
	return slices.Insert(rows[:min(len(rows), maxGroup-1)], at, r)
}

// firstOf is the first rows of all ranks, as many as a group shows.
func firstOf(ranks [][]*Row) (best []*Row) {
	for _, rows := range ranks {
		best = append(best, rows[:min(len(rows), maxGroup-len(best))]...)
	}
	return best
}

// alikeBits say which keys are not kept because they are what stands before them.
type alikeBits uint8

const (
	bitShapeIsName   alikeBits = 1 << iota // the folded name
	bitFoldedIsShape                       // the other key
)

// appendKeys appends the look-alike keys of the name, without what is there already: most names
// have one key, and half of those are it.
func (r *Row) appendKeys(b []byte, from *rendering) []byte {
	if from.keys.Shape == from.name {
		r.alike |= bitShapeIsName
	} else {
		b = append(b, from.keys.Shape...)
	}
	r.shapeEnd = uint32(len(b))
	if from.keys.Folded == from.keys.Shape {
		r.alike |= bitFoldedIsShape
	} else {
		b = append(b, from.keys.Folded...)
	}
	r.keysEnd = uint32(len(b))
	return b
}

// keys are the look-alike keys of the name.
func (r *Row) keys() lookalike.Keys {
	k := lookalike.Keys{Shape: r.blob[r.textEnd:r.shapeEnd], Folded: r.blob[r.shapeEnd:r.keysEnd]}
	if r.alike&bitShapeIsName != 0 {
		k.Shape = r.foldedName()
	}
	if r.alike&bitFoldedIsShape != 0 {
		k.Folded = k.Shape
	}
	return k
}
