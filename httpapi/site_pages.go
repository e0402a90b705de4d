package httpapi

import (
	"context"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/httpapi/site"
	"example.org/registry/readmodel"
)

// staleAfter is how long ago the data may have been known to be complete before pages say so.
const staleAfter = time.Minute

// listPage answers GET /scammers, /servers and /legit.
func (p *Public) listPage(l events.List) handler {
	return func(c *gin.Context) error {
		q, part, err := parseListPage(l, c.Request.URL.RawQuery)
		if err != nil {
			return err
		}
		at, err := p.admitter.admit(c.Request)
		if err != nil {
			return err
		}
		asOf := at.staleSince()
		return p.send(c, &content{
			at: at, tags: p.pageTags(at.view.ListTag(l, q.Sort), asOf), policy: &p.listCache,
			key: pageKey{list: q, part: uint8(part)}, page: true,
			build: func(ctx context.Context, dst []byte) ([]byte, error) {
				found, err := p.findPage(ctx, at.view, q)
				if err != nil {
					return nil, err
				}
				return p.site.List(dst, site.ListPage{Query: q, Part: part, Found: found, AsOf: asOf})
			}})
	}
}

// checkPage answers GET /, the person check.
func (p *Public) checkPage(c *gin.Context) error {
	q, err := parseCheckPage(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	at, err := p.admitter.admit(c.Request)
	if err != nil {
		return err
	}
	asOf, asked := at.staleSince(), q != readmodel.CheckQuery{}
	return p.send(c, &content{
		at: at, tags: p.pageTags(at.view.CheckTag(), asOf), policy: &p.checkCache,
		key: pageKey{check: q, part: 1}, page: true, indexed: !asked,
		build: func(ctx context.Context, dst []byte) ([]byte, error) {
			page := site.CheckPage{Query: q, AsOf: asOf}
			for i, l := range events.Lists() {
				page.Entries[i] = at.view.Entries(l)
			}
			if asked {
				if page.Found, err = p.findPerson(ctx, at.view, q); err != nil {
					return nil, err
				}
			}
			return p.site.Check(dst, page)
		}})
}

// parseListPage is parseList and the part of a reason that is too long for one page. It is a pure function.
func parseListPage(l events.List, raw string) (q readmodel.ListQuery, part int, err error) {
	if q, err = parseList(l, raw); err != nil {
		return q, 0, err
	}
	names, values := [1]string{"part"}, [1]value{}
	if err := scanQuery(raw, names[:], values[:]); err != nil {
		return q, 0, err
	}
	p := params{names: names[:], values: values[:]}
	return q, p.number(0, 1, site.MaxPart, 1), p.err
}

// parseCheckPage is parseCheck, but that nothing needs to be asked. It is a pure function.
func parseCheckPage(raw string) (readmodel.CheckQuery, error) {
	q, err := parseCheck(raw)
	if isMissing(err) {
		return readmodel.CheckQuery{}, nil
	}
	return q, err
}

// staleSince is when the data was last known to be complete, to the minute, if that is worth saying; else zero.
func (at *position) staleSince() time.Time {
	asOf := time.UnixMilli(at.heads.asOf).UTC()
	if time.Since(asOf) <= staleAfter {
		return time.Time{}
	}
	return asOf.Truncate(time.Minute)
}

// pageTags are those of the page that the site makes of a content.
func (p *Public) pageTags(content string, asOf time.Time) *tagSet {
	tag := content + "-" + p.site.Version()
	if !asOf.IsZero() {
		tag += "-" + strconv.FormatInt(asOf.Unix(), 36)
	}
	return new(newTagSet(tag))
}
