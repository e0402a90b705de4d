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
	// Search returns entries of v. Errors: readmodel.ErrNoRanking, or that of ctx.
	Search(ctx context.Context, v *readmodel.View, q readmodel.RankedQuery) (readmodel.RankedPage, error)
}

// rankedWithin bounds the time of one query.
const rankedWithin = 2 * time.Second

// parseRanked reads the query string of ranked search. It is a pure function.
func parseRanked(raw string) (readmodel.RankedQuery, error) {
	p := readParams(raw)
	q := readmodel.RankedQuery{Words: p.text("q", bounds.MaxSearch)}
	if n := p.choice("list", bounds.Lists()); n > 0 {
		q.List = events.Lists()[n-1]
	}
	q.Status = readmodel.Status(p.choice("status", bounds.Statuses()))
	q.Proofs = readmodel.Proofs(p.choice("proofs", bounds.Proofs()))
	q.Skip = p.number("skip", 0, bounds.MaxRankedSkip, 0)
	q.Limit = p.number("limit", 1, bounds.MaxLimit, bounds.DefaultRankedLimit)
	if p.err == nil && q.Words == "" {
		return q, missing("q")
	}
	return q, p.err
}

// ranked serves GET /api/search (httpapi/CONTRACT.md#ranked).
func (p *Public) ranked(x *exchange) error {
	q, err := parseRanked(x.query())
	if err != nil {
		return err
	}
	found, err := x.searchRanked(q)
	if err != nil {
		return err
	}

	size := sizeOfRanked(&found) + sizeOfEnvelope
	if err := x.takeMemory(size); err != nil {
		return err
	}
	x.c.Header("Registry-Index-Sequence", strconv.FormatUint(found.Sequence, 10))
	return x.sendHashed(checkCache, appendRanked(make([]byte, 0, size), &found))
}

// searchPage serves GET /szukaj. Without words it shows an empty form, and needs no index.
func (p *Public) searchPage(x *exchange) error {
	q, err := parseRanked(x.query())
	if err != nil && !isMissing(err) {
		return err
	}

	var found readmodel.RankedPage
	if err != nil {
		err = x.loadView()
	} else {
		found, err = x.searchRanked(q)
	}
	if err != nil {
		return err
	}

	if err := x.takeMemory(sizeOfRanked(&found)); err != nil {
		return err
	}
	body, err := p.site.Search(nil, site.SearchPage{Query: q, Found: found, AsOf: x.staleSince()})
	if err != nil {
		return err
	}
	if found.Sequence > 0 {
		x.c.Header("Registry-Index-Sequence", strconv.FormatUint(found.Sequence, 10))
	}
	x.page = hiddenPage
	return x.sendHashed(checkCache, body)
}

// searchRanked loads the view and runs the query in its turn.
func (x *exchange) searchRanked(q readmodel.RankedQuery) (page readmodel.RankedPage, err error) {
	if err := x.loadView(); err != nil {
		return page, err
	}
	index := x.rankedIndex()
	if index == nil {
		return page, errLoading
	}

	leave, err := x.takeTurn(true)
	if err != nil {
		return page, err
	}
	defer leave()

	ctx, cancel := context.WithTimeout(x.ctx(), rankedWithin)
	defer cancel()
	page, err = index.Search(ctx, x.view, q)
	if errors.Is(err, readmodel.ErrNoRanking) {
		err = errLoading
	}
	return page, err
}
