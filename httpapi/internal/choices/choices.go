// Package choices has the words that the parameters list, sort, status and proofs take. The API
// reads them, and the forms and links of the site write them.
package choices

import (
	"embed"

	"example.org/registry/events"
)

// Sources is this package. Pages of the site show its words, so their tags are made from it.
//
//go:embed *.go
var Sources embed.FS

// Lists returns the values of list: all, and then those of events.Lists.
func Lists() []string {
	words := []string{"all"}
	for _, l := range events.Lists() {
		words = append(words, string(l))
	}
	return words
}

// Sorts returns the values of sort, in the order of the constants of readmodel.Sort.
func Sorts() []string {
	return []string{"newest", "oldest", "popular", "popular_asc", "az", "za"}
}

// Statuses returns the values of status, in the order of the constants of readmodel.Status.
func Statuses() []string { return []string{"all", "verified", "risk"} }

// Proofs returns the values of proofs, in the order of the constants of readmodel.Proofs.
func Proofs() []string { return []string{"all", "with", "private"} }
