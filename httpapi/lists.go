package httpapi

import (
	"context"

	"example.org/registry/events"
	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/respond"
	"example.org/registry/readmodel"
)

// list serves GET /api/scammers, /api/servers and /api/legit (httpapi/CONTRACT.md#lists).
func (p *Public) list(l events.List) handler {
	return p.cacheable(&route{
		policy: p.listCache,
		parse: func(raw string) (q query, err error) {
			q.list, err = parseList(l, raw)
			return q, err
		},
		tag: func(at state, q *query) *respond.Tags { return at.headers.tags.list(&q.list) },
		build: func(ctx context.Context, at state, q *query, dst []byte) ([]byte, error) {
			found, _, err := p.searchList(ctx, at.view, q.list)
			if err != nil {
				return nil, err
			}
			if err := at.room.Take(body.Size(found.Rows)); err != nil {
				return nil, err
			}
			return body.AppendPage(dst, found), nil
		},
	})
}

// searchList returns a page of a list from a view, and its totals. A text search waits for its turn,
// and so does the lookup of an id that many entries share.
func (p *Public) searchList(ctx context.Context, view *readmodel.View, q readmodel.ListQuery) (readmodel.Page, readmodel.Totals, error) {
	leave, err := p.searches.enter(ctx, q.ID == "" && q.Search != "" || view.ManyWithID(q.ID))
	if err != nil {
		return readmodel.Page{}, readmodel.Totals{}, err
	}
	defer leave()
	return view.ListTotals(ctx, q)
}

// check serves GET /api/check (httpapi/CONTRACT.md#check).
func (p *Public) check() handler {
	return p.cacheable(&route{
		policy: p.checkCache,
		parse: func(raw string) (q query, err error) {
			q.check, err = parseCheck(raw)
			return q, err
		},
		tag: func(at state, _ *query) *respond.Tags { return &at.headers.tags.check },
		build: func(ctx context.Context, at state, q *query, dst []byte) ([]byte, error) {
			found, err := p.searchPerson(ctx, at.view, q.check)
			if err != nil {
				return nil, err
			}
			if err := at.room.Take(body.CheckSize(found)); err != nil {
				return nil, err
			}
			return body.AppendCheck(dst, found), nil
		},
	})
}

// searchPerson checks q in a view. It waits as searchList does.
func (p *Public) searchPerson(ctx context.Context, view *readmodel.View, q readmodel.CheckQuery) (readmodel.CheckResult, error) {
	leave, err := p.searches.enter(ctx, q.ID == "" || view.ManyWithID(q.ID))
	if err != nil {
		return readmodel.CheckResult{}, err
	}
	defer leave()
	return view.Check(ctx, q)
}
