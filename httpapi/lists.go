package httpapi

import (
	"context"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
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
		scan := q.Search != "" && q.ID == ""
		// Look-ups by id are many, and cheaper than to remember.
		return p.send(c, &content{at, at.heads.tags.list(l, q.Sort), &p.listCache, pageKey{list: q}, q.ID == "",
			func(ctx context.Context, dst []byte) ([]byte, error) {
				leave, err := p.searches.enter(ctx, scan)
				if err != nil {
					return nil, err
				}
				defer leave()
				page, err := at.view.List(ctx, q)
				if err != nil {
					return nil, err
				}
				return page.AppendJSON(dst), nil
			}})
	}
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
	return p.send(c, &content{at, &at.heads.tags.check, &p.checkCache, pageKey{check: q}, q.ID == "",
		func(ctx context.Context, dst []byte) ([]byte, error) {
			leave, err := p.searches.enter(ctx, q.ID == "")
			if err != nil {
				return nil, err
			}
			defer leave()
			found, err := at.view.Check(ctx, q)
			if err != nil {
				return nil, err
			}
			return found.AppendJSON(dst), nil
		}})
}
