package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/respond"
	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

// The site: pages for people (httpapi/CONTRACT.md#site). Pages use the API's path, through adapt
// and cacheable. They differ in their media type, in a few headers, and in that their failures are
// pages too.

// robots hides nothing. Pages about persons have X-Robots-Tag: noindex, which crawlers only see if
// they may fetch the pages.
const robots = "User-agent: *\nDisallow:\n"

// siteRoutes adds the site to the routing table.
func (p *Public) siteRoutes(cfg Config) (err error) {
	if p.site, err = site.New(site.Config{
		BaseURL: cfg.BaseURL, Build: cfg.Build, AppealsURL: cfg.AppealsURL, ReportURL: cfg.ReportURL, Advice: cfg.Advice, About: cfg.About, Proofs: cfg.ProofsURL != "",
		Demo: cfg.Demo,
	}); err != nil {
		return err
	}
	for _, a := range p.site.Assets() { // without a rate limit: a page needs its style
		p.unlimited(a.Path, always(document(a.Type, "public, max-age=31536000, immutable", a.Body)))
	}
	p.sitePage("/", p.checkPage())
	for _, l := range events.Lists() {
		p.sitePage("/"+string(l), p.listPage(l))
		p.get(entryPages+string(l)+"/:id", p.entryPage(l))
	}
	p.sitePage("/szukaj", p.searchPage)
	p.sitePage("/status", p.statusPage)
	about, err := p.site.About(nil)
	if err != nil {
		return err
	}
	p.sitePage(site.AboutPath, always(pageDocument("public, max-age=300", about)))
	if err := p.developerPages(strings.TrimSuffix(cfg.BaseURL, "/")); err != nil {
		return err
	}
	p.get("/.well-known/security.txt", p.securityTxt(cfg))
	const day = "public, max-age=86400"
	p.get("/robots.txt", always(document(plainText, day, []byte(robots))))
	p.get("/favicon.ico", always(document("image/vnd.microsoft.icon", day, site.Favicon())))
	return nil
}

// sitePage adds a page: a path whose failures are pages as well.
func (p *Public) sitePage(path string, h handler) {
	p.sitePaths[path] = true
	p.get(path, h)
}

// listPage serves GET /scammers, /servers and /legit.
func (p *Public) listPage(l events.List) handler {
	return p.cacheable(&route{
		policy: p.listCache, html: true,
		parse: func(raw string) (q query, err error) {
			q.list, err = parseList(l, raw)
			return q, err
		},
		tag: func(at state, q *query) *respond.Tags {
			return p.pageTags(at.view.ListTag(&q.list), at.staleSince)
		},
		build: func(ctx context.Context, at state, q *query, dst []byte) ([]byte, error) {
			found, totals, err := p.searchList(ctx, at.view, q.list)
			if err != nil {
				return nil, err
			}
			if err := at.room.Take(body.Size(found.Rows)); err != nil {
				return nil, err
			}
			return p.site.List(dst, site.ListPage{Query: q.list, Found: found, Totals: totals, AsOf: at.staleSince})
		},
	})
}

// entryPages is the path of the pages of entries. Their failures are pages as well.
const entryPages = "/wpis/"

// entryPage serves GET /wpis/{list}/{entryId}. Its tag depends only on the entry. Caches keep it no
// longer than a check, so that a delisted entry soon disappears.
func (p *Public) entryPage(l events.List) handler {
	return p.cacheable(&route{
		policy: p.checkCache, html: true, name: entryID,
		parse: parseEntryPage,
		tag: func(at state, q *query) *respond.Tags {
			row := at.view.Entry(l, q.entry)
			if row == nil {
				return nil
			}
			return p.pageTags(row.EntryTag(), at.staleSince)
		},
		build: func(_ context.Context, at state, q *query, dst []byte) ([]byte, error) {
			row := at.view.Entry(l, q.entry)
			if err := at.room.Take(body.Size([]*readmodel.Row{row})); err != nil {
				return nil, err
			}
			return p.site.Entry(dst, site.EntryPage{Row: row, AsOf: at.staleSince})
		},
	})
}

// entryID returns the id in the address of an entry's page.
func entryID(c *gin.Context) (string, error) {
	id := c.Param("id")
	if !events.IsID(id) {
		return "", errNotFound
	}
	return id, nil
}

// parseEntryPage reads "<id>?<query string>"; the page has no parameters. It is a pure function.
func parseEntryPage(raw string) (q query, err error) {
	q.entry, raw, _ = strings.Cut(raw, "?")
	return q, readParams(raw).err
}

// checkPage serves GET /, the person check. Search engines may only show it without a query.
func (p *Public) checkPage() handler {
	return p.cacheable(&route{
		policy: p.checkCache, html: true,
		parse: func(raw string) (q query, err error) {
			q.person, err = parsePerson(raw)
			q.indexed = q.person.empty()
			return q, err
		},
		tag: func(at state, q *query) *respond.Tags {
			content := at.view.CheckTag()
			if !q.person.empty() { // the answer says when it looked
				content += "-" + strconv.FormatInt(looked(at).Unix(), 36)
			}
			return p.pageTags(content, at.staleSince)
		},
		build: func(ctx context.Context, at state, q *query, dst []byte) (_ []byte, err error) {
			page := site.CheckPage{Asked: cmp.Or(q.person.text, q.person.id), Looked: looked(at), AsOf: at.staleSince}
			for i, l := range events.Lists() {
				page.Entries[i] = at.view.NumEntries(l)
			}
			if page.Asked != "" {
				if err := p.decide(ctx, at.view, q.person, &page); err != nil {
					return nil, err
				}
			}
			return p.site.Check(dst, page)
		},
	})
}

// looked returns the last moment at which the view was known to be complete, to the minute.
func looked(at state) time.Time { return at.headers.Time.UTC().Truncate(time.Minute) }

// decide makes the verdict, and asks the API's check of the same text. Anything but an id takes milliseconds, so it waits for
// its turn; so does an id that many entries share.
func (p *Public) decide(ctx context.Context, view *readmodel.View, asked person, page *site.CheckPage) error {
	page.API = asked.check()
	leave, err := p.searches.enter(ctx, page.API.ID == "" || asked.text != "" && asked.id != "" || view.ManyWithID(page.API.ID))
	if err != nil {
		return err
	}
	defer leave()

	if page.Verdict, err = verdict.Check(ctx, view, asked.text, asked.id); err != nil {
		return err
	}
	if page.API != (readmodel.CheckQuery{}) {
		if page.Found, err = view.Check(ctx, page.API); err != nil {
			return err
		}
	}
	p.metrics.verdicts.WithLabelValues(string(page.Verdict.Value)).Inc()
	return nil
}

// staleAfter is the age of the data from which pages show it.
const staleAfter = time.Minute

// staleSince returns asOf, to the minute, if pages have to show it, else zero. Unknown is 1970.
func staleSince(asOf time.Time) time.Time {
	if time.Since(asOf) <= staleAfter {
		return time.Time{}
	}
	if asOf.Before(time.Unix(0, 0)) {
		return time.Unix(0, 0).UTC()
	}
	return asOf.UTC().Truncate(time.Minute)
}

// pageTags returns the tags of the page that the site makes of a content.
func (p *Public) pageTags(content string, asOf time.Time) *respond.Tags {
	tag := content + "-" + p.site.Version()
	if !asOf.IsZero() {
		tag += "-" + strconv.FormatInt(asOf.Unix(), 36)
	}
	return new(respond.NewTags(tag))
}

// failsAsPage reports whether people see the failure as a page: on pages, and on unknown paths
// outside /api/. /proofs/{id} is in openapi.yaml, and is no page.
func (p *Public) failsAsPage(path string, status int) bool {
	id, isProofs := strings.CutPrefix(path, "/proofs/")
	isProofs = isProofs && id != "" && !strings.Contains(id, "/")
	if p.site == nil || isProofs || strings.HasPrefix(path, "/api/") {
		return false
	}
	return status == http.StatusNotFound || p.sitePaths[path] || strings.HasPrefix(path, entryPages)
}

// failurePage returns the body of a failure for people. param is the parameter to blame, or "".
func (p *Public) failurePage(c *gin.Context, r reply, param string) []byte {
	body, err := p.site.Append(nil, "error", site.Failure(site.Failed{
		Status: r.status, Text: r.text, Param: param, Path: c.Request.URL.EscapedPath(), Search: cmp.Or(c.Query(cmp.Or(param, "search")), c.Query("id")),
		Query: c.Request.URL.RawQuery, Empty: r.status == http.StatusServiceUnavailable && p.gate.health.IsEmpty(),
	}))
	if err != nil {
		p.logFailure(c.Request.Context(), "error page", err)
		return []byte(r.text)
	}
	return body
}
