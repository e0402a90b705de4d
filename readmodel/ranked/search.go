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

// search is one query in progress.
type search struct {
	ctx      context.Context
	index    *index
	view     *readmodel.View
	query    *readmodel.RankedQuery
	analyzer *terms.Analyzer
	words    []terms.Token // of the query, distinct
}

// Search returns a page of the entries of v that have every word of q. The error is ctx's or
// readmodel.ErrNoRanking.
func (e *Engine) Search(ctx context.Context, v *readmodel.View, q readmodel.RankedQuery) (page readmodel.RankedPage, err error) {
	x := e.index.Load()
	if x == nil {
		return page, readmodel.ErrNoRanking
	}
	analyzer := e.stemmer.Analyzer()
	s := &search{ctx: ctx, index: x, view: v, query: &q, analyzer: analyzer, words: queryWords(analyzer, q.Words)}

	err = fault.Catch(func() error {
		page, err = s.page()
		return err
	})
	switch {
	case err == nil || ctx.Err() != nil:
		return page, err
	case errors.Is(err, bleve.ErrorIndexClosed) && e.index.Load() != x:
		return e.Search(ctx, v, q) // another one has replaced it
	default:
		e.log().Error("ranked search has failed", "error", err)
		return page, readmodel.ErrNoRanking
	}
}

// queryWords returns the words of a query that count: distinct ones, and weak ones only if there are
// no others.
func queryWords(analyzer *terms.Analyzer, text string) (words []terms.Token) {
	tokens := analyzer.Tokens(nil, text)
	strong := slices.ContainsFunc(tokens, func(t terms.Token) bool { return !t.Weak })
	for _, t := range tokens {
		if t.Part || t.Weak && strong || len(words) == maxWords ||
			slices.ContainsFunc(words, func(w terms.Token) bool { return w.Folded == t.Folded }) {
			continue
		}
		words = append(words, t)
	}
	return words
}

// page runs the query.
func (s *search) page() (page readmodel.RankedPage, err error) {
	page.Sequence = min(s.index.since.Load(), s.view.Sequence())
	if len(s.words) == 0 {
		return page, nil
	}

	// Count.
	matching := s.allWords()
	for i, l := range events.Lists() {
		n, err := s.count(append(s.filters(l), matching))
		if err != nil {
			return page, err
		}
		page.Facets[i] = n
		if s.query.List == "" || s.query.List == l {
			page.Total += n
		}
	}
	if page.Total == 0 {
		page.Suggestions, err = s.suggest()
		return page, err
	}

	// Take the page from the view.
	request := bleve.NewSearchRequestOptions(bleve.NewConjunctionQuery(append(s.filters(s.query.List), matching)...), s.query.Limit, s.query.Skip, false)
	found, err := s.index.SearchInContext(s.ctx, request)
	if err != nil {
		return page, err
	}
	for _, hit := range found.Hits {
		row := rowOf(s.view, hit.ID)
		if row == nil {
			continue
		}
		matches, ok, err := s.match(row)
		if err != nil {
			return page, err
		}
		if ok {
			page.Hits = append(page.Hits, readmodel.RankedHit{Row: row, Matches: matches})
		}
	}
	page.HasMore = s.query.Skip+len(found.Hits) < page.Total
	return page, nil
}

// allWords returns the query for documents that have every word.
func (s *search) allWords() query.Query {
	all := bleve.NewConjunctionQuery()
	for i := range s.words {
		all.AddQuery(hasWord(&s.words[i]))
	}
	return all
}

// hasWord returns the query for documents that have a word, in any of its meanings. A name says more
// about an entry than its reason does, and a chat id identifies it.
func hasWord(word *terms.Token) query.Query {
	in := func(field string, weight float64) query.Query {
		any := bleve.NewDisjunctionQuery()
		for _, term := range word.Terms {
			any.AddQuery(isTerm(field, term, weight))
		}
		return any
	}
	return bleve.NewDisjunctionQuery(in("Name", 3), in("ID", 8), in("Reason", 1))
}

// isTerm returns the query for documents that have a term in a field.
func isTerm(field, term string, weight float64) query.Query {
	q := bleve.NewTermQuery(term)
	q.SetField(field)
	q.SetBoost(weight)
	return q
}

// filters returns the queries for the documents of a list, or all if it is empty, that pass the
// filters of the query. They do not count in the order.
func (s *search) filters(l events.List) (filters []query.Query) {
	if l != "" {
		filters = append(filters, isTerm("List", string(l), 0))
	}
	if status := wantedStatus(s.query.Status); status != "" {
		filters = append(filters, isTerm("Status", status, 0))
	}
	if proofs := wantedProofs(s.query.Proofs); proofs != "" {
		filters = append(filters, isTerm("Proofs", proofs, 0))
	}
	return filters
}

// wantedStatus returns the Status of the documents that pass a filter, or "" if all do.
func wantedStatus(filter readmodel.Status) string {
	switch filter {
	case readmodel.StatusVerified:
		return verified
	case readmodel.StatusRisk:
		return risk
	default:
		return ""
	}
}

// wantedProofs returns the Proofs of the documents that pass a filter, or "" if all do.
func wantedProofs(filter readmodel.Proofs) string {
	switch filter {
	case readmodel.ProofsWith:
		return withProofs
	case readmodel.ProofsPrivate:
		return privateProofs
	default:
		return ""
	}
}

// count returns how many documents match all queries.
func (s *search) count(all []query.Query) (int, error) {
	request := bleve.NewSearchRequestOptions(bleve.NewConjunctionQuery(all...), 0, 0, false)
	request.Score = bleve.ScoreNone
	found, err := s.index.SearchInContext(s.ctx, request)
	if err != nil {
		return 0, err
	}
	return int(found.Total), nil
}

// match returns the places of the words in the current text of a row, and whether the row still
// matches the query: the index may lag.
func (s *search) match(r *readmodel.Row) (matches []readmodel.Match, ok bool, err error) {
	p, err := r.Public()
	if err != nil {
		return nil, false, err
	}
	status, proofs := keywords(&p)
	if !passes(wantedStatus(s.query.Status), status) || !passes(wantedProofs(s.query.Proofs), proofs) {
		return nil, false, nil
	}

	name, reason, err := r.Text()
	if err != nil {
		return nil, false, err
	}
	has := make([]bool, len(s.words))
	find := func(field readmodel.MatchField, text string) {
		end := 0 // of the last match: a token and its parts have one place
		for _, t := range s.analyzer.Tokens(nil, text) {
			matched := false
			for i, w := range s.words {
				if shareTerm(t.Terms, w.Terms) {
					has[i], matched = true, true
				}
			}
			if matched && t.Start >= end && field != "" {
				matches = append(matches, readmodel.Match{Field: field, Start: t.Start, End: t.End})
				end = t.End
			}
		}
	}
	find(readmodel.InName, name)
	find(readmodel.InReason, reason)
	find("", p.ChatID)
	return matches, !slices.Contains(has, false), nil
}

func passes(wanted, value string) bool { return wanted == "" || wanted == value }

func shareTerm(a, b []string) bool {
	return slices.ContainsFunc(a, func(term string) bool { return slices.Contains(b, term) })
}
