package httpapi

import (
	"context"
	"slices"
	"strconv"
	"time"

	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/respond"
	"example.org/registry/httpapi/site"
	"example.org/registry/readmodel"
)

// newsQuery is the days of what is new. Without from and until, they are the last ones.
type newsQuery struct {
	from, until readmodel.Day
	skip        int
}

// Days of what is new.
const (
	usualNewsDays = 7
	maxNewsDays   = 31 // from the first to the last
)

// parseNews reads the query string of what is new. It is a pure function.
func parseNews(raw string) (q newsQuery, err error) {
	p := readParams(raw)
	q.from, q.until = p.day("od"), p.day("do")
	q.skip = p.number("skip", 0, bounds.MaxRankedSkip, 0)
	switch {
	case q.from == 0 && q.until != 0:
		q.from = max(q.until-usualNewsDays+1, 1)
	case q.until == 0 && q.from != 0:
		q.until = q.from + usualNewsDays - 1
	case q.from > q.until || q.until-q.from > maxNewsDays:
		p.refuse("do")
	}
	return q, p.err
}

// day reads an ISO date from January 2, 1970 to the end of 2200, or returns 0 if it is absent.
func (p *params) day(name string) readmodel.Day {
	s := p.trimmed(name)
	if s == "" {
		return 0
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || readmodel.DayOf(t) < 1 || t.Year() > 2200 {
		p.refuse(name)
		return 0
	}
	return readmodel.DayOf(t)
}

// newsRoute serves what is new, as the page or the feed that write makes.
func (p *Public) newsRoute(r *route, write func(dst []byte, page site.NewsPage) ([]byte, error)) handler {
	today := func() readmodel.Day { return readmodel.DayOf(time.Now()) }
	r.policy = p.checkCache
	r.parse = func(raw string) (q query, err error) {
		q.news, err = parseNews(raw)
		return q, err
	}
	r.tag = func(at state, _ *query) *respond.Tags {
		return p.pageTags(at.view.CheckTag()+"-"+strconv.Itoa(int(today())), at.staleSince)
	}
	r.build = func(_ context.Context, at state, q *query, dst []byte) ([]byte, error) {
		page := site.NewsPage{From: q.news.from, Until: q.news.until, Skip: q.news.skip, AsOf: at.staleSince}
		if page.Until == 0 {
			page.Until = today()
			page.From = page.Until - usualNewsDays + 1
		}
		page.Removed = make([]int32, page.Until-page.From+1)
		for _, l := range site.NewsLists() {
			rows, total := at.view.ReportedOn(l, page.From, page.Until, page.Skip+site.NewsSize)
			page.Rows, page.Total = append(page.Rows, rows...), page.Total+total
			for i := range page.Removed {
				page.Removed[i] += at.view.DelistingsOn(l, page.From+readmodel.Day(i))
			}
		}
		slices.SortStableFunc(page.Rows, func(a, b *readmodel.Row) int { return b.Reported().Compare(a.Reported()) })
		page.Rows = page.Rows[min(page.Skip, len(page.Rows)):min(page.Skip+site.NewsSize, len(page.Rows))]
		return write(dst, page)
	}
	return p.cacheable(r)
}
