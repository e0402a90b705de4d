package httpapi

import (
	"context"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// list answers GET /api/scammers, /api/servers and /api/legit (API contract, lists).
func (p *Public) list(l events.List) handler {
	return p.answers(&form{
		policy: &p.listCache,
		parse: func(raw string) (q question, err error) {
			q.list, err = parseList(l, raw)
			return q, err
		},
		tag: func(at position, q *question) *tagSet { return at.heads.tags.list(l, q.list.Sort) },
		build: func(ctx context.Context, at position, q *question, dst []byte) ([]byte, error) {
			page, err := p.findPage(ctx, at.view, q.list)
			if err != nil {
				return nil, err
			}
			return page.AppendJSON(dst), nil
		}})
}

// findPage looks a page up; text searches wait for their turn.
func (p *Public) findPage(ctx context.Context, view *readmodel.View, q readmodel.ListQuery) (readmodel.Page, error) {
	leave, err := p.searches.enter(ctx, q.Search != "" && q.ID == "")
	if err != nil {
		return readmodel.Page{}, err
	}
	defer leave()
	return view.List(ctx, q)
}

// check answers GET /api/check (API contract, check).
func (p *Public) check() handler {
	return p.answers(&form{
		policy: &p.checkCache,
		parse: func(raw string) (q question, err error) {
			q.check, err = parseCheck(raw)
			return q, err
		},
		tag: func(at position, q *question) *tagSet { return &at.heads.tags.check },
		build: func(ctx context.Context, at position, q *question, dst []byte) ([]byte, error) {
			found, err := p.findPerson(ctx, at.view, q.check)
			if err != nil {
				return nil, err
			}
			return found.AppendJSON(dst), nil
		}})
}

// findPerson looks somebody up; text searches wait for their turn.
func (p *Public) findPerson(ctx context.Context, view *readmodel.View, q readmodel.CheckQuery) (readmodel.CheckResult, error) {
	leave, err := p.searches.enter(ctx, q.ID == "")
	if err != nil {
		return readmodel.CheckResult{}, err
	}
	defer leave()
	return view.Check(ctx, q)
}
