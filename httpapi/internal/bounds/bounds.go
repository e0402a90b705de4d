// Package bounds has the bounds of request parameters: the lengths of texts, the ranges of numbers, and the allowed words. The API
// refuses everything else, the forms and links of the site comply, and a test compares openapi.yaml with these bounds.
package bounds

import (
	"unicode/utf8"

	"example.org/registry/events"
)

// Bounds of texts, in code points.
const (
	MaxValue  = 300          // any value, decoded but not trimmed
	MaxSearch = 100          // a text to search
	MaxID     = events.MaxID // an id, of a chat platform or a donation
)

// Longer reports whether a text has more than limit code points.
func Longer(text string, limit int) bool {
	// A text has at least as many bytes as code points, so most texts need no count.
	return len(text) > limit && utf8.RuneCountInString(text) > limit
}

// MaxQuery bounds a query string as sent, in bytes.
const MaxQuery = 4096

// Bounds of the pages of lists and of ranked search. The defaults apply to a request that gives no limit.
const (
	MaxLimit           = 60
	DefaultLimit       = 30
	DefaultRankedLimit = 20
	MaxSkip            = 20_000
	MaxRankedSkip      = 1000
)

// MaxBatch is how many ids a batch may have.
const MaxBatch = 100

// Bounds of a page of changes.
const (
	MaxChanges     = 1000
	DefaultChanges = 500
	MaxWait        = 25 // seconds
)

// Lists returns the values of the parameter list: "all", and then the names of events.Lists.
func Lists() []string {
	words := []string{"all"}
	for _, l := range events.Lists() {
		words = append(words, string(l))
	}
	return words
}

// Sorts returns the values of the parameter sort, in the order of the constants of readmodel.Sort.
func Sorts() []string {
	return []string{"newest", "oldest", "popular", "popular_asc", "az", "za"}
}

// Statuses returns the values of the parameter status, in the order of the constants of readmodel.Status.
func Statuses() []string { return []string{"all", "verified", "risk"} }

// Proofs returns the values of the parameter proofs, in the order of the constants of readmodel.Proofs.
func Proofs() []string { return []string{"all", "with", "private"} }
