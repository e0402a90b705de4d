package ranked

import (
	"context"
	"errors"
	"slices"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search/query"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
	"example.org/registry/readmodel/terms"
)

// maxWords is how many words of a query count.
const maxWords = 8

// search is a search in progress.
type search struct {
	ctx      context.Context
	index    *index
	view     *readmodel.View
	query    *readmodel.RankedQuery
	analyzer *terms.Analyzer
	words    []terms.Token // what queryWords returns
}

// Search returns a page of the entries of v that have every word of q. The error is ctx's or readmodel.ErrNoRanking.
func (e *Engine) Search(ctx context.Context, v *readmodel.View, q readmodel.RankedQuery) (page readmodel.RankedPage, err error) {
	x := e.index.Load()
	if x == nil {
		return page, readmodel.ErrNoRanking
	}

	analyzer := e.stemmer.Analyzer()
	s := &search{ctx: ctx, index: x, view: v, query: &q, analyzer: analyzer, words: queryWords(analyzer, q.Words)}

	err = fault.Catch(func() error {
		page, err = s.findPage()
		return err
	})
	if err == nil || ctx.Err() != nil {
		return page, err
	}

	if errors.Is(err, bleve.ErrorIndexClosed) && e.index.Load() != x {
		return e.Search(ctx, v, q) // updateIndex has closed x and has another index
	}
	e.logger().Error("ranked search failed", "error", err)
	return page, readmodel.ErrNoRanking
}

// queryWords returns the first words of a query, each once, and at most maxWords.
func queryWords(analyzer *terms.Analyzer, text string) (words []terms.Token) {
	for _, t := range analyzer.Tokens(nil, text) {
		isRepeated := slices.ContainsFunc(words, func(w terms.Token) bool { return w.Folded == t.Folded })
		if !t.Part && !isRepeated && len(words) < maxWords {
			words = append(words, t)
		}
	}
	return words
}

// findPage runs the query.
func (s *search) findPage() (page readmodel.RankedPage, err error) {
	page.Sequence = min(s.index.since.Load(), s.view.Sequence())
	if len(s.words) == 0 {
		return page, nil
	}

	// A document matches if it has every word.
	matching := bleve.NewConjunctionQuery()
	for i := range s.words {
		matching.AddQuery(hasWord(&s.words[i]))
	}

	// Count the documents of each list.
	for i, l := range events.Lists() {
		n, err := s.countDocuments(append(s.filtersOf(l), matching))
		if err != nil {
			return page, err
		}

		page.Facets[i] = n
		if s.query.List == "" || s.query.List == l {
			page.Total += n
		}
	}
	if page.Total == 0 {
		page.Suggestions, err = s.suggestWords()
		return page, err
	}

	// Take the entries from the view, where they may have changed.
	all := bleve.NewConjunctionQuery(append(s.filtersOf(s.query.List), matching)...)
	request := bleve.NewSearchRequestOptions(all, s.query.Limit, s.query.Skip, false)
	found, err := s.index.SearchInContext(s.ctx, request)
	if err != nil {
		return page, err
	}

	for _, hit := range found.Hits {
		row := rowOf(s.view, hit.ID)
		if row == nil {
			continue
		}

		matches, ok := s.matchRow(row)
		if ok {
			page.Hits = append(page.Hits, readmodel.RankedHit{Row: row, Matches: matches})
		}
	}
	page.HasMore = s.query.Skip+len(found.Hits) < page.Total
	return page, nil
}

// hasWord returns the query for documents that have any term of a word. A name has more weight than a reason,
// since it says more about an entry, and a chat id has most, since it identifies the entry.
func hasWord(word *terms.Token) query.Query {
	in := func(field string, weight float64) query.Query {
		any := bleve.NewDisjunctionQuery()
		for _, term := range word.Terms {
			any.AddQuery(hasTerm(field, term, weight))
		}
		return any
	}
	return bleve.NewDisjunctionQuery(in("Name", 3), in("ID", 8), in("Reason", 1))
}

// hasTerm returns the query for documents that have a term in a field.
func hasTerm(field, term string, weight float64) query.Query {
	q := bleve.NewTermQuery(term)
	q.SetField(field)
	q.SetBoost(weight)
	return q
}

// filtersOf returns queries for the documents that pass the filters of the search, and are of list l unless l is
// empty. The weight of the queries is 0, so they do not change the order of the results.
func (s *search) filtersOf(l events.List) (filters []query.Query) {
	add := func(field, keyword string) {
		if keyword != "" {
			filters = append(filters, hasTerm(field, keyword, 0))
		}
	}
	add("List", string(l))
	add("Status", statusKeywords[s.query.Status])
	add("Proofs", proofsKeywords[s.query.Proofs])
	return filters
}

// countDocuments returns how many documents match all queries.
func (s *search) countDocuments(all []query.Query) (int, error) {
	request := bleve.NewSearchRequestOptions(bleve.NewConjunctionQuery(all...), 0, 0, false)
	request.Score = bleve.ScoreNone
	found, err := s.index.SearchInContext(s.ctx, request)
	if err != nil {
		return 0, err
	}
	return int(found.Total), nil
}

// matchRow returns the places of the words in the current text of a row. ok is false if the row does not match
// the query any more, since the index may lag.
func (s *search) matchRow(r *readmodel.Row) (matches []readmodel.Match, ok bool) {
	if !r.Passes(s.query.Status, s.query.Proofs) {
		return nil, false
	}

	isFound := make([]bool, len(s.words)) // by word of the query
	find := func(field readmodel.MatchField, text string) (found []readmodel.Match) {
		// The parts of a token come after the token and lie within it. If the token is a match, skip its parts.
		endOfLast := 0
		for _, t := range s.analyzer.Tokens(nil, text) {
			isMatch := false
			for i, w := range s.words {
				if shareTerm(t.Terms, w.Terms) {
					isFound[i] = true
					isMatch = true
				}
			}

			if isMatch && t.Start >= endOfLast {
				found = append(found, readmodel.Match{Field: field, Start: t.Start, End: t.End})
				endOfLast = t.End
			}
		}
		return found
	}

	// A word of the query may also be in the chat id, but matches there are not shown.
	name, reason := r.Text()
	matches = append(find(readmodel.InName, name), find(readmodel.InReason, reason)...)
	find("", r.ChatID())
	return matches, !slices.Contains(isFound, false)
}

func shareTerm(a, b []string) bool {
	return slices.ContainsFunc(a, func(term string) bool { return slices.Contains(b, term) })
}
