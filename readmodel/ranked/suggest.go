package ranked

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search/query"

	"example.org/registry/readmodel/terms"
)

// The bounds of suggestions (httpapi/CONTRACT.md#ranked).
const (
	maxSuggestions = 5
	// minRespelled and maxRespelled are the bounds of a word that gets suggestions, in letters.
	minRespelled = 3
	maxRespelled = 32
	// maxRead is how many entries are read for the spellings near a word.
	maxRead = 20
)

// suggest returns words that verified entries have and that are one edit from a word of the query
// that no entry has.
func (s *search) suggest() (suggestions []string, err error) {
	for i := range s.words {
		word := &s.words[i]
		if n := utf8.RuneCountInString(word.Plain); n < minRespelled || n > maxRespelled || isNumber(word.Plain) {
			continue
		}
		if n, err := s.count([]query.Query{hasWord(word)}); err != nil || n > 0 {
			if err != nil {
				return nil, err
			}
			continue
		}
		if suggestions, err = s.near(word, suggestions); err != nil {
			return nil, err
		}
	}
	return suggestions, nil
}

// near appends words near one. Entries that may have one are found by the index, and read as they
// are in the view.
func (s *search) near(word *terms.Token, suggestions []string) ([]string, error) {
	fuzzy := bleve.NewFuzzyQuery(word.Plain)
	fuzzy.SetField("Words")
	found, err := s.index.SearchInContext(s.ctx, bleve.NewSearchRequestOptions(fuzzy, maxRead, 0, false))
	if err != nil {
		return nil, err
	}
	for _, hit := range found.Hits {
		row := rowOf(s.view, hit.ID)
		if row == nil || !row.Verified() {
			continue
		}
		name, reason, err := row.Text()
		if err != nil {
			return nil, err
		}
		for _, t := range s.analyzer.Tokens(s.analyzer.Tokens(nil, name), reason) {
			if len(suggestions) == maxSuggestions {
				return suggestions, nil
			}
			if !t.Part && isOneEdit(t.Plain, word.Plain) && !isNumber(t.Plain) && !slices.Contains(suggestions, t.Folded) {
				suggestions = append(suggestions, t.Folded)
			}
		}
	}
	return suggestions, nil
}

func isNumber(word string) bool { return strings.Trim(word, "0123456789") == "" }

// isOneEdit reports whether two words differ in one letter, which one of them may lack, or in the
// order of two letters.
func isOneEdit(a, b string) bool {
	x, y := []rune(a), []rune(b)
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	switch {
	case len(x)+len(y) == 1, len(x) == 1 && len(y) == 1:
		return true
	default:
		return len(x) == 2 && len(y) == 2 && x[0] == y[1] && x[1] == y[0]
	}
}
