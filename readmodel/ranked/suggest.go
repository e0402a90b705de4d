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
	// maxRead is how many entries are read for the suggestions of one word.
	maxRead = 20
)

// suggestWords returns suggestions for the words of the query that no document has. A suggestion is a word of a
// verified entry, one edit away.
func (s *search) suggestWords() (suggestions []string, err error) {
	for i := range s.words {
		word := &s.words[i]
		letters := utf8.RuneCountInString(word.Plain)
		if letters < minRespelled || letters > maxRespelled || isNumber(word.Plain) {
			continue
		}

		n, err := s.countDocuments([]query.Query{hasWord(word)})
		if err != nil {
			return nil, err
		}
		if n > 0 {
			continue
		}

		suggestions, err = s.appendNear(suggestions, word)
		if err != nil {
			return nil, err
		}
	}
	return suggestions, nil
}

// appendNear appends the words that are one edit away from word. The index finds verified entries that may have
// such words, and the view has the current texts of these entries.
func (s *search) appendNear(suggestions []string, word *terms.Token) ([]string, error) {
	fuzzy := bleve.NewFuzzyQuery(word.Plain)
	fuzzy.SetField("Words") // only verified entries have this field
	found, err := s.index.SearchInContext(s.ctx, bleve.NewSearchRequestOptions(fuzzy, maxRead, 0, false))
	if err != nil {
		return nil, err
	}

	for _, hit := range found.Hits {
		row := rowOf(s.view, hit.ID)
		if row == nil || !row.Verified() { // changed since it was indexed
			continue
		}

		name, reason := row.Text()
		for _, t := range s.analyzer.Tokens(s.analyzer.Tokens(nil, name), reason) {
			if len(suggestions) == maxSuggestions {
				return suggestions, nil
			}
			// Words are compared without diacritics (Plain) and suggested with them (Folded).
			isNear := !t.Part && isOneEdit(t.Plain, word.Plain) && !isNumber(t.Plain)
			if isNear && !slices.Contains(suggestions, t.Folded) {
				suggestions = append(suggestions, t.Folded)
			}
		}
	}
	return suggestions, nil
}

func isNumber(word string) bool { return strings.Trim(word, "0123456789") == "" }

// isOneEdit reports whether one word becomes the other by changing, adding or dropping a letter, or by swapping two.
func isOneEdit(a, b string) bool {
	// Remove the common start and the common end of the words.
	x, y := []rune(a), []rune(b)
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}

	isOneLetter := len(x)+len(y) == 1 || len(x) == 1 && len(y) == 1
	isSwap := len(x) == 2 && len(y) == 2 && x[0] == y[1] && x[1] == y[0]
	return isOneLetter || isSwap
}
