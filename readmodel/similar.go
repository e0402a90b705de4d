package readmodel

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
)

// similarQuery is a check's text, prepared for comparison with names that do not match it literally
// (httpapi/CONTRACT.md#similar, #imitates).
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

// isPossible reports whether the search can have similar or imitated names. Digits alone are an id,
// and no name looks like an id.
func (q *similarQuery) isPossible() bool {
	return strings.ContainsFunc(q.needle, func(r rune) bool { return !unicode.IsDigit(r) })
}

// queries returns what finds all rows of a list that may be similar or imitated, and a few more.
func (q *similarQuery) queries(list int) (all []textQuery) {
	if !q.isPossible() {
		return nil
	}
	add := func(key string, codePoints int) {
		switch {
		case codePoints == 0:
		case events.Lists()[list].Trusted():
			all = append(all, textQuery{list, keyText, "\n" + key + "\n"}) // only equal names are imitated
		case codePoints >= minKeyLen:
			all = append(all, textQuery{list, keyText, key})
		}
	}
	add(q.keys.Shape, q.shape)
	if q.keys.Folded != q.keys.Shape {
		add(q.keys.Folded, q.folded)
	}
	return all
}

// The ranks of a similar name, best first.
const (
	similarEqual = iota
	similarStarts
	similarContains
)

// rank returns how similar the name of r is, or noRank if it is not, or if it matches literally. An
// entry of legit is imitated, or it is not.
func (q *similarQuery) rank(r *Row) int {
	name := r.keys
	if r.List().Trusted() {
		if name.Alike(q.keys) && !strings.Contains(r.folded, q.needle) {
			return similarEqual
		}
		return noRank
	}

	if strings.Contains(r.names, q.needle) {
		return noRank
	}
	rank := min(keyRank(name.Shape, q.keys.Shape, q.shape), keyRank(name.Folded, q.keys.Folded, q.folded))
	if rank != similarEqual && !r.Verified() {
		return noRank // unverified entries are similar only if a key is equal
	}
	return rank
}

// keyRank compares a key of a name with the same key of a search, which has n code points.
func keyRank(name, search string, n int) int {
	switch at := strings.Index(name, search); {
	case at < 0 || n < minKeyLen:
		return noRank
	case len(name) == len(search):
		return similarEqual
	case 2*n < utf8.RuneCountInString(name):
		return noRank
	case at == 0:
		return similarStarts
	default:
		return similarContains
	}
}
