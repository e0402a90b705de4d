package httpapi

import (
	"context"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// list answers GET /api/scammers, /api/servers and /api/legit (API contract, lists).
func (p *Public) list(l events.List) handler {
	return func(c *gin.Context) error {
		q, err := parseList(l, c.Request.URL.RawQuery)
		if err != nil {
			return err
		}
		at, err := p.admitter.admit(c.Request)
		if err != nil {
			return err
		}
		return p.send(c, &content{
			at: at, tags: at.heads.tags.list(l, q.Sort), policy: &p.listCache, key: pageKey{list: q},
			build: func(ctx context.Context, dst []byte) ([]byte, error) {
				page, err := p.findPage(ctx, at.view, q)
				if err != nil {
					return nil, err
				}
				return page.AppendJSON(dst), nil
			}})
	}
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
func (p *Public) check(c *gin.Context) error {
	q, err := parseCheck(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	at, err := p.admitter.admit(c.Request)
	if err != nil {
		return err
	}
	return p.send(c, &content{
		at: at, tags: &at.heads.tags.check, policy: &p.checkCache, key: pageKey{check: q},
		build: func(ctx context.Context, dst []byte) ([]byte, error) {
			found, err := p.findPerson(ctx, at.view, q)
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
