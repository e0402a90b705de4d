// Package gramindex finds the documents whose text holds all grams of a needle: a bleve index
// (scorch, on disk) of which nothing is used but its inverted lists. It is the only place that
// knows bleve.
//
// A document is a number and two texts. Each text is indexed as the set of its grams of one, two
// and three characters, as single terms: nothing is stored, scored or positioned. An answer is
// the documents that hold every gram of the needle in one text: for a needle of up to three
// characters that is exactly those whose text contains it, for a longer one a superset, since
// grams prove neither order nor adjacency. Whoever asks verifies.
//
// # Why
//
// The segments' bitmaps are read directly instead of through bleve's search API, which makes an
// object of every hit: an AND of bitmaps, then one look-up of the document's number in a table
// that is built once for each immutable segment.
package gramindex
