package httpapi

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/respond"
	"example.org/registry/httpapi/site"
	"example.org/registry/readmodel"
)

// RankedIndex is the index of ranked search at one moment, until Release.
type RankedIndex interface {
	// Search queries v, which was loaded after the index. Errors: readmodel.ErrNoRanking, or that
	// of ctx.
	Search(ctx context.Context, v *readmodel.View, q readmodel.RankedQuery) (readmodel.RankedPage, error)
	// Sequence returns the last sequence that the index covers.
	Sequence() uint64
	Release()
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
func (p *Public) ranked(c *gin.Context) (respond.Response, error) {
	q, err := parseRanked(c.Request.URL.RawQuery)
	if err != nil {
		return respond.Response{}, err
	}
	at, page, err := p.searchRanked(c, q)
	if err != nil {
		return respond.Response{}, err
	}
	room := p.answers.Room()
	if err := room.Take(body.RankedSize(&page)); err != nil {
		return respond.Response{}, err
	}
	return p.rankedAnswer(at, body.AppendRanked(nil, &page), room), nil
}

// searchPage serves GET /szukaj. Without words it shows an empty form, and needs no index.
func (p *Public) searchPage(c *gin.Context) (respond.Response, error) {
	q, err := parseRanked(c.Request.URL.RawQuery)
	var at rankedState
	var found readmodel.RankedPage
	switch {
	case isMissing(err):
		at.state, err = p.gate.admit(c.Request)
	case err == nil:
		at, found, err = p.searchRanked(c, q)
	}
	if err != nil {
		return respond.Response{}, err
	}
	room := p.answers.Room()
	if err := room.Take(body.RankedSize(&found)); err != nil {
		return respond.Response{}, err
	}
	asOf := staleSince(at.headers.Time)
	page, err := p.site.Search(nil, site.SearchPage{Query: q, Found: found, AsOf: asOf})
	if err != nil {
		room.Release()
		return respond.Response{}, err
	}
	a := p.rankedAnswer(at, page, room)
	a.Page = respond.HiddenPage
	if at.index == 0 {
		a.More = nil
	}
	return a, nil
}

// rankedAnswer returns a response whose tag hashes the body, since the order depends on more than
// the content.
func (p *Public) rankedAnswer(at rankedState, body []byte, room *respond.Room) respond.Response {
	return at.withHeaders(respond.Response{
		Cache: p.checkCache, Tags: respond.TagsOf(body), Body: respond.NewBody(body), Room: room,
		More: []string{"Registry-Index-Sequence", strconv.FormatUint(at.index, 10)},
	})
}

// rankedState is the basis of a response of ranked search.
type rankedState struct {
	state
	index uint64 // Registry-Index-Sequence
}

// searchRanked waits for its turn, as other searches do, and runs the query. It acquires the index
// before it loads the view, so that the view has every change of the index.
func (p *Public) searchRanked(c *gin.Context, q readmodel.RankedQuery) (at rankedState, page readmodel.RankedPage, err error) {
	index := p.rankedIndex()
	if index != nil {
		defer index.Release()
	}
	if at.state, err = p.gate.admit(c.Request); err != nil {
		return at, page, err
	}
	if index == nil {
		return at, page, errLoading
	}
	at.index = index.Sequence()
	ctx, cancel := context.WithTimeout(c.Request.Context(), rankedWithin)
	defer cancel()
	leave, err := p.searches.enter(ctx, true)
	if err != nil {
		return at, page, err
	}
	defer leave()
	if page, err = index.Search(ctx, at.view, q); errors.Is(err, readmodel.ErrNoRanking) {
		err = errLoading
	}
	return at, page, err
}
