package httpapi

import (
	"context"
	"strconv"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/site"
	"example.org/registry/readmodel"
)

// staleAfter is how long ago the data may have been known to be complete before pages say so.
const staleAfter = time.Minute

// listPage answers GET /scammers, /servers and /legit.
func (p *Public) listPage(l events.List) handler {
	return p.answers(&form{
		policy: &p.listCache, page: true,
		parse: func(raw string) (q question, err error) {
			q.list, q.part, err = parseListPage(l, raw)
			return q, err
		},
		tag: func(at position, q *question) *tagSet {
			return p.pageTags(at.view.ListTag(l, q.list.Sort), at.staleSince)
		},
		build: func(ctx context.Context, at position, q *question, dst []byte) ([]byte, error) {
			found, err := p.findPage(ctx, at.view, q.list)
			if err != nil {
				return nil, err
			}
			return p.site.List(dst, site.ListPage{Query: q.list, Part: q.part, Found: found, AsOf: at.staleSince})
		}})
}

// checkPage answers GET /, the person check.
func (p *Public) checkPage() handler {
	return p.answers(&form{
		policy: &p.checkCache, page: true,
		parse: func(raw string) (q question, err error) {
			q.check, err = parseCheckPage(raw)
			q.index = q.check == readmodel.CheckQuery{}
			return q, err
		},
		tag:   func(at position, q *question) *tagSet { return p.pageTags(at.view.CheckTag(), at.staleSince) },
		build: p.buildCheckPage,
	})
}

func (p *Public) buildCheckPage(ctx context.Context, at position, q *question, dst []byte) (_ []byte, err error) {
	page := site.CheckPage{Query: q.check, AsOf: at.staleSince}
	for i, l := range events.Lists() {
		page.Entries[i] = at.view.Entries(l)
	}
	if !q.index {
		if page.Found, err = p.findPerson(ctx, at.view, q.check); err != nil {
			return nil, err
		}
	}
	return p.site.Check(dst, page)
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

// staleSince is asOf to the minute, if that is worth saying; else zero.
func staleSince(asOf time.Time) time.Time {
	if time.Since(asOf) <= staleAfter {
		return time.Time{}
	}
	return asOf.UTC().Truncate(time.Minute)
}

// pageTags are those of the page that the site makes of a content.
func (p *Public) pageTags(content string, asOf time.Time) *tagSet {
	tag := content + "-" + p.site.Version()
	if !asOf.IsZero() {
		tag += "-" + strconv.FormatInt(asOf.Unix(), 36)
	}
	return new(newTagSet(tag))
}
