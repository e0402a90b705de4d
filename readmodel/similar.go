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

// textQueries returns the queries for all rows of a list that may be similar or imitated, and a few more.
// Digits alone are an id, and no name looks like an id.
func (q *similarQuery) textQueries(list int) (all []textQuery) {
	if !strings.ContainsFunc(q.needle, func(r rune) bool { return !unicode.IsDigit(r) }) {
		return nil
	}

	isTrusted := events.Lists()[list].Trusted()
	add := func(key string, codePoints int) {
		if isTrusted && codePoints > 0 {
			all = append(all, textQuery{keyText, "\n" + key + "\n"}) // only equal names are imitated
		} else if codePoints >= minKeyLen {
			all = append(all, textQuery{keyText, key})
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

// rankName returns how similar the name of r is, or noRank if it is not, or if it matches literally. An
// entry of legit is imitated, or it is not.
func (q *similarQuery) rankName(r *Row) int {
	if r.List().Trusted() {
		if r.keys.Alike(q.keys) && !strings.Contains(r.folded, q.needle) {
			return similarEqual
		}
		return noRank
	}

	if strings.Contains(r.names, q.needle) {
		return noRank
	}

	rank := min(keyRank(r.keys.Shape, q.keys.Shape, q.shape), keyRank(r.keys.Folded, q.keys.Folded, q.folded))
	if rank != similarEqual && !r.Verified() {
		return noRank // unverified entries are similar only if a key is equal
	}
	return rank
}

// keyRank compares a key of a name with the same key of a search, which has n code points.
func keyRank(name, search string, n int) int {
	i := strings.Index(name, search)
	if i < 0 || n < minKeyLen {
		return noRank
	}
	if len(name) == len(search) {
		return similarEqual
	}

	// A part of a name is similar if it is at least half of it.
	if 2*n < utf8.RuneCountInString(name) {
		return noRank
	}
	if i == 0 {
		return similarStarts
	}
	return similarContains
}
