package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

// This file has the site, pages for people (httpapi/CONTRACT.md#site). Its handlers take the same steps as the API's.
// Pages have another media type and a few other headers, and their failures are pages, too.

const (
	// entryPages is followed by the list and the id of an entry.
	entryPages = "/wpis/"

	// robots hides nothing. Pages about persons have X-Robots-Tag: noindex, which crawlers only see if they may fetch the
	// pages.
	robots = "User-agent: *\nDisallow:\n"

	// staleAfter is the age from which data is old, and pages show the time of their data.
	staleAfter = time.Minute
)

// addSite adds the site to the routing table.
func (p *Public) addSite(cfg Config) {
	pages := *cfg.Site
	pages.BaseURL = cfg.BaseURL
	pages.Proofs = cfg.ProofsURL != ""
	p.site = site.New(pages)

	// A page needs its style, so the assets have no rate limit.
	for _, a := range p.site.Assets() {
		p.add(a.Path, nil, serveDocument(a.Type, "public, max-age=31536000, immutable", a.Body))
	}

	p.add("/", p.limit, serveCheckPage)
	for _, l := range events.Lists() {
		p.add("/"+string(l), p.limit, serveListPage(l))
		p.add(entryPages+string(l)+"/:id", p.limit, serveEntryPage(l))
	}
	p.add("/szukaj", p.limit, serveSearchPage)
	p.add("/status", p.limit, serveStatusPage)
	p.add("/api", p.limit, serveAPIPage(cfg.BaseURL))

	p.addFixedPage(site.AboutPath, site.AboutPage{})
	p.addFixedPage(site.BotsPath, site.BotsPage{})
	for name, text := range site.BotFiles() {
		p.add(site.BotsPath+"/"+name, p.limit, serveBotFile(name, string(text), cfg.BaseURL))
	}

	const day = "public, max-age=86400"
	p.add("/.well-known/security.txt", p.limit, serveSecurityText(cfg.BaseURL))
	p.add("/robots.txt", p.limit, serveDocument(plainText, day, []byte(robots)))
	p.add("/favicon.ico", p.limit, serveDocument("image/vnd.microsoft.icon", day, site.Favicon()))
}

// addFixedPage adds a page that never changes. It panics if the build is broken.
func (p *Public) addFixedPage(path string, content site.Content) {
	body, err := p.site.Append(nil, content)
	if err != nil {
		panic(err)
	}

	document := serveDocument("", "public, max-age=300", body) // a page without a media type is HTML
	p.add(path, p.limit, func(x *exchange) error {
		x.page = indexedPage
		return document(x)
	})
}

// serveListPage serves GET /scammers, /servers and /legit.
func serveListPage(l events.List) handler {
	return func(x *exchange) error {
		q, err := parseList(l, x.query())
		if err != nil {
			return err
		}

		view, err := x.loadView()
		if err != nil {
			return err
		}

		x.page = unindexedPage
		return x.sendKept(x.api.listCache, x.pageTag(view.ListTag(&q)), func() ([]byte, error) {
			found, err := search(x, searchesTexts(&q), func(ctx context.Context) (readmodel.Page, error) { return view.List(ctx, q) })
			if err != nil {
				return nil, err
			}
			return x.makePage(sizeOf(found.Rows), site.ListPage{Query: q, Found: found, AsOf: staleSince(x.asOf)})
		})
	}
}

// serveEntryPage serves GET /wpis/{list}/{entryId}. Other entries change neither the page nor its tag. Caches keep the page no
// longer than a check, so that a delisted entry soon disappears.
func serveEntryPage(l events.List) handler {
	return func(x *exchange) error {
		id := x.c.Param("id")
		if !events.IsID(id) {
			return errNotFound
		}
		if err := checkSyntax(x.query()); err != nil {
			return err
		}

		view, err := x.loadView()
		if err != nil {
			return err
		}

		row := view.Entry(l, id)
		if row == nil {
			return errNotFound
		}

		x.page = unindexedPage
		return x.sendKept(checkCache, x.pageTag(row.EntryTag()), func() ([]byte, error) {
			return x.makePage(len(row.JSON()), site.EntryPage{Row: row, AsOf: staleSince(x.asOf)})
		})
	}
}

// serveCheckPage serves GET /, the person check. Search engines may only show it without a query.
func serveCheckPage(x *exchange) error {
	asked, err := parsePerson(x.query())
	if err != nil {
		return err
	}

	view, err := x.loadView()
	if err != nil {
		return err
	}

	x.page = indexedPage
	tag := view.CheckTag()
	asOfMinute := x.asOf.UTC().Truncate(time.Minute)
	if !asked.isEmpty() {
		// The page shows asOfMinute as the time of its data, so the tag depends on it.
		x.page = unindexedPage
		tag += "-" + strconv.FormatInt(asOfMinute.Unix(), 36)
	}

	return x.sendKept(checkCache, x.pageTag(tag), func() ([]byte, error) {
		var page site.CheckPage
		if !asked.isEmpty() {
			page, err = checkPerson(x, asked)
			if err != nil {
				return nil, err
			}
		}

		page.Looked = asOfMinute
		page.AsOf = staleSince(x.asOf) // zero unless the data is old
		for i, l := range events.Lists() {
			page.Entries[i] = view.NumEntries(l)
		}
		return x.makePage(sizeOfCheck(page.Found), page)
	})
}

// makePage is makeBody for a page.
func (x *exchange) makePage(size int, page site.Content) ([]byte, error) {
	body, err := x.newBody(size)
	if err != nil {
		return nil, err
	}
	return x.api.site.Append(body, page)
}

// checkPerson returns a page with the verdict on a person, and with the result of the API's check of the same person.
func checkPerson(x *exchange, asked person) (site.CheckPage, error) {
	query := asked.checkQuery()
	apiAccepts := query != (readmodel.CheckQuery{})
	hasOneField := asked.text == "" || asked.id == ""
	isSingleID := hasOneField && query.ID != ""

	page, err := search(x, !isSingleID, func(ctx context.Context) (page site.CheckPage, err error) {
		page = site.CheckPage{Asked: cmp.Or(asked.text, asked.id), API: query}
		page.Verdict, err = verdict.Check(ctx, x.view, asked.text, asked.id)
		if err == nil && apiAccepts {
			page.Found, err = x.view.Check(ctx, query)
		}
		return page, err
	})
	if err != nil {
		return page, err
	}

	x.api.metrics.verdicts.WithLabelValues(string(page.Verdict.Value)).Inc()
	return page, nil
}

// staleSince returns the time of old data, to the minute, or the zero time if the data is not old (staleAfter). An unknown time
// becomes the start of 1970, which pages show.
func staleSince(asOf time.Time) time.Time {
	if time.Since(asOf) <= staleAfter {
		return time.Time{}
	}
	if unknown := time.Unix(0, 0).UTC(); asOf.Before(unknown) {
		return unknown
	}
	return asOf.UTC().Truncate(time.Minute)
}

// pageTag makes the tag of a page from the tag of its content. The page also depends on the version of the site and, if its data is
// old, on the time that it shows.
func (x *exchange) pageTag(contentTag string) string {
	tag := contentTag + "-" + x.api.site.Version()
	if stale := staleSince(x.asOf); !stale.IsZero() {
		tag += "-" + strconv.FormatInt(stale.Unix(), 36)
	}
	return tag
}

// failsAsPage reports whether a failure is shown as a page. Below /api/ it never is.
func (p *Public) failsAsPage(path string, status int) bool {
	if p.site == nil || strings.HasPrefix(path, "/api/") {
		return false
	}

	// Programs request these paths, but their 404 is a page, as for any unknown path.
	isForPrograms := path == "/openapi.yaml" || path == "/asyncapi.yaml" || strings.HasPrefix(path, "/proofs/")
	return !isForPrograms || status == http.StatusNotFound
}

// failurePage returns the body of a failure as a page of the site.
func failurePage(x *exchange, f *failure) []byte {
	// The form shows again what the visitor has typed: the refused parameter, else the text, else the id.
	param := cmp.Or(f.param, "search")
	asked := cmp.Or(x.c.Query(param), x.c.Query("id"))

	body, err := x.api.site.Append(nil, site.Failed{
		Status: f.status,
		Text:   f.text,
		Param:  f.param,
		Path:   x.c.Request.URL.EscapedPath(),
		Search: asked,
		Query:  x.query(),
		Empty:  f == errEmpty,
	})
	if err != nil {
		x.logFailure(err.Error())
		return []byte(f.text)
	}
	return body
}

// serveAPIPage serves GET /api, whose examples name the address of this service.
func serveAPIPage(baseURL string) handler {
	return func(x *exchange) error {
		x.page = indexedPage
		body, err := x.api.site.Append(nil, site.APIPage{Address: addressOf(x.c.Request, baseURL)})
		if err != nil {
			return err
		}
		return x.sendHashed(addressedCache(baseURL), body)
	}
}

// serveBotFile serves a file for bots, with the address of this service in it.
func serveBotFile(name, text, baseURL string) handler {
	return func(x *exchange) error {
		if !strings.HasSuffix(name, ".json") { // the media type of answers is JSON, unless a handler sets another
			x.media = plainText
		}
		addressed := strings.ReplaceAll(text, site.Address, addressOf(x.c.Request, baseURL))
		return x.sendHashed(addressedCache(baseURL), []byte(addressed))
	}
}

// addressedCache returns the cache policy of a document with the address of this service (addressOf). Without baseURL, each client
// may get another address, so no shared cache may store the document.
func addressedCache(baseURL string) policy {
	if baseURL == "" {
		return policy{control: "private, max-age=300"}
	}
	return policy{control: "public, max-age=300"}
}

// addressOf returns baseURL or, if that is empty, the scheme and host that r names. A client that forges them misleads only
// itself. A proxy that speaks TLS to clients sends X-Forwarded-Proto.
func addressOf(r *http.Request, baseURL string) string {
	if baseURL != "" {
		return baseURL
	}
	if r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
