package httpapi

import (
	"context"
	"errors"
	"strconv"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/site"
	"example.org/registry/readmodel"
)

// RankedIndex is an index of ranked search.
type RankedIndex interface {
	// Search returns the entries of v that q finds. Its error is readmodel.ErrNoRanking or ctx's.
	Search(ctx context.Context, v *readmodel.View, q readmodel.RankedQuery) (readmodel.RankedPage, error)
}

// indexHeader has the last sequence that the index covers.
const indexHeader = "Registry-Index-Sequence"

// rankedWithin bounds the time of one ranked search.
const rankedWithin = 2 * time.Second

// parseRanked reads the query string of ranked search, and accepts one without words. It is a pure function.
func parseRanked(raw string) (readmodel.RankedQuery, error) {
	p := readParams(raw)
	q := readmodel.RankedQuery{Words: p.readText("q", bounds.MaxSearch)}
	if choice := p.readChoice("list", bounds.Lists()); choice > 0 { // 0 is all; the lists follow
		q.List = events.Lists()[choice-1]
	}
	q.Status = readmodel.Status(p.readChoice("status", bounds.Statuses()))
	q.Proofs = readmodel.Proofs(p.readChoice("proofs", bounds.Proofs()))
	q.Skip = p.readNumber("skip", 0, bounds.MaxRankedSkip, 0)
	q.Limit = p.readNumber("limit", 1, bounds.MaxLimit, bounds.DefaultRankedLimit)
	return q, p.err
}

// serveRanked serves GET /api/search (httpapi/CONTRACT.md#ranked).
func serveRanked(x *exchange) error {
	q, err := parseRanked(x.query())
	if err != nil {
		return err
	}
	if q.Words == "" {
		return missing("q")
	}

	found, err := searchRanked(x, q)
	if err != nil {
		return err
	}

	body, err := makeBody(x, sizeOfRanked(&found), &found, appendRanked)
	if err != nil {
		return err
	}

	x.c.Header(indexHeader, strconv.FormatUint(found.Sequence, 10))
	return x.sendHashed(checkCache, body)
}

// serveSearchPage serves GET /szukaj. Without words it shows an empty form, and needs no index.
func serveSearchPage(x *exchange) error {
	q, err := parseRanked(x.query())
	if err != nil {
		return err
	}

	var found readmodel.RankedPage
	if q.Words == "" {
		_, err = x.loadView() // for the headers and the age of the data
	} else {
		found, err = searchRanked(x, q)
	}
	if err != nil {
		return err
	}

	x.page = unindexedPage
	body, err := x.makePage(sizeOfRanked(&found), site.SearchPage{Query: q, Found: found, AsOf: staleSince(x.asOf)})
	if err != nil {
		return err
	}
	if found.Sequence > 0 { // an index has been searched
		x.c.Header(indexHeader, strconv.FormatUint(found.Sequence, 10))
	}
	return x.sendHashed(checkCache, body)
}

// searchRanked loads the view, waits for a turn and runs the query.
func searchRanked(x *exchange, q readmodel.RankedQuery) (found readmodel.RankedPage, err error) {
	view, err := x.loadView()
	if err != nil {
		return found, err
	}

	index := x.api.rankedIndex()
	if index == nil {
		return found, errLoading
	}

	const searchesTexts = true
	found, err = search(x, searchesTexts, func(ctx context.Context) (readmodel.RankedPage, error) {
		ctx, cancel := context.WithTimeout(ctx, rankedWithin)
		defer cancel()
		return index.Search(ctx, view, q)
	})
	if errors.Is(err, readmodel.ErrNoRanking) {
		return found, errLoading
	}
	return found, err
}
