package httpapi

import (
	"cmp"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

// The site: pages for people (httpapi/CONTRACT.md#site). They go the way of the API's answers, and differ in their media
// type, in a few headers, and in that their failures are pages, too.

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
		p.add(a.Path, nil, document(a.Type, "public, max-age=31536000, immutable", a.Body))
	}

	p.addPage("/", p.checkPage)
	for _, l := range events.Lists() {
		p.addPage("/"+string(l), p.listPage(l))
		p.add(entryPages+string(l)+"/:id", p.limit, p.entryPage(l))
	}
	p.addPage("/szukaj", p.searchPage)
	p.addPage("/status", p.statusPage)
	about, err := p.site.About(nil)
	if err != nil {
		return err
	}
	p.addPage(site.AboutPath, pageDocument("public, max-age=300", about))
	if err := p.developerPages(strings.TrimSuffix(cfg.BaseURL, "/")); err != nil {
		return err
	}

	const day = "public, max-age=86400"
	p.add("/.well-known/security.txt", p.limit, securityTxt(cfg.Contact, cfg.BaseURL))
	p.add("/robots.txt", p.limit, document(plainText, day, []byte(robots)))
	p.add("/favicon.ico", p.limit, document("image/vnd.microsoft.icon", day, site.Favicon()))
	return nil
}

// addPage adds a page: a path whose failures are pages as well.
func (p *Public) addPage(path string, h handler) {
	p.sitePaths[path] = true
	p.add(path, p.limit, h)
}

// listPage serves GET /scammers, /servers and /legit.
func (p *Public) listPage(l events.List) handler {
	return func(x *exchange) error {
		q, err := parseList(l, x.query())
		if err != nil {
			return err
		}
		if err := x.loadView(); err != nil {
			return err
		}
		x.page = hiddenPage
		if sent, err := x.sendKnown(p.listCache, x.pageTag(x.view.ListTag(&q))); sent || err != nil {
			return err
		}

		found, totals, err := x.findList(q)
		if err != nil {
			return err
		}

		if err := x.takeMemory(sizeOf(found.Rows)); err != nil {
			return err
		}
		body, err := p.site.List(nil, site.ListPage{Query: q, Found: found, Totals: totals, AsOf: x.staleSince()})
		if err != nil {
			return err
		}
		return x.send(body)
	}
}

// entryPages is the path of the pages of entries. Their failures are pages as well.
const entryPages = "/wpis/"

// entryPage serves GET /wpis/{list}/{entryId}. Its tag depends only on the entry. Caches keep it no longer than a check, so
// that a delisted entry soon disappears.
func (p *Public) entryPage(l events.List) handler {
	return func(x *exchange) error {
		id := x.c.Param("id")
		if !events.IsID(id) {
			return errNotFound
		}
		if err := readParams(x.query()).err; err != nil {
			return err
		}
		if err := x.loadView(); err != nil {
			return err
		}
		row := x.view.Entry(l, id)
		if row == nil {
			return errNotFound
		}
		x.page = hiddenPage
		if sent, err := x.sendKnown(checkCache, x.pageTag(row.EntryTag())); sent || err != nil {
			return err
		}

		if err := x.takeMemory(sizeOf([]*readmodel.Row{row})); err != nil {
			return err
		}
		body, err := p.site.Entry(nil, site.EntryPage{Row: row, AsOf: x.staleSince()})
		if err != nil {
			return err
		}
		return x.send(body)
	}
}

// checkPage serves GET /, the person check. Search engines may only show it without a query.
func (p *Public) checkPage(x *exchange) error {
	asked, err := parsePerson(x.query())
	if err != nil {
		return err
	}
	if err := x.loadView(); err != nil {
		return err
	}

	// The answer says when it looked, to the minute.
	looked, tag := x.asOf.UTC().Truncate(time.Minute), x.view.CheckTag()
	x.page = indexedPage
	if !asked.empty() {
		x.page = hiddenPage
		tag += "-" + strconv.FormatInt(looked.Unix(), 36)
	}
	if sent, err := x.sendKnown(checkCache, x.pageTag(tag)); sent || err != nil {
		return err
	}

	page := site.CheckPage{Asked: cmp.Or(asked.text, asked.id), Looked: looked, AsOf: x.staleSince()}
	for i, l := range events.Lists() {
		page.Entries[i] = x.view.NumEntries(l)
	}
	if page.Asked != "" {
		if err := x.decide(asked, &page); err != nil {
			return err
		}
	}
	if err := x.takeMemory(sizeOfCheck(page.Found)); err != nil {
		return err
	}
	body, err := p.site.Check(nil, page)
	if err != nil {
		return err
	}
	return x.send(body)
}

// decide makes the verdict, and asks the API's check of the same text. Anything but an id takes milliseconds, so it waits for
// its turn; so does an id that many entries share.
func (x *exchange) decide(asked person, page *site.CheckPage) (err error) {
	page.API = asked.check()
	leave, err := x.takeTurn(page.API.ID == "" || asked.text != "" && asked.id != "" || x.view.ManyWithID(page.API.ID))
	if err != nil {
		return err
	}
	defer leave()

	if page.Verdict, err = verdict.Check(x.ctx(), x.view, asked.text, asked.id); err != nil {
		return err
	}
	if page.API != (readmodel.CheckQuery{}) {
		if page.Found, err = x.view.Check(x.ctx(), page.API); err != nil {
			return err
		}
	}
	x.metrics.verdicts.WithLabelValues(string(page.Verdict.Value)).Inc()
	return nil
}

// staleAfter is the age of the data from which pages show it.
const staleAfter = time.Minute

// staleSince returns the time of the view, to the minute, if a page has to show it, else zero. Unknown is 1970.
func (x *exchange) staleSince() time.Time {
	switch {
	case time.Since(x.asOf) <= staleAfter:
		return time.Time{}
	case x.asOf.Before(time.Unix(0, 0)):
		return time.Unix(0, 0).UTC()
	}
	return x.asOf.UTC().Truncate(time.Minute)
}

// pageTag returns the tag of the page that the site makes of a content.
func (x *exchange) pageTag(content string) string {
	tag := content + "-" + x.site.Version()
	if stale := x.staleSince(); !stale.IsZero() {
		tag += "-" + strconv.FormatInt(stale.Unix(), 36)
	}
	return tag
}

// failsAsPage reports whether people see a failure as a page: on pages, and on unknown paths outside /api/. /proofs/{id} is in
// openapi.yaml, and is no page.
func (x *exchange) failsAsPage(status int) bool {
	path := x.c.Request.URL.Path
	id, isProofs := strings.CutPrefix(path, "/proofs/")
	isProofs = isProofs && id != "" && !strings.Contains(id, "/")
	if x.site == nil || isProofs || strings.HasPrefix(path, "/api/") {
		return false
	}
	return status == http.StatusNotFound || x.sitePaths[path] || strings.HasPrefix(path, entryPages)
}

// failurePage returns the body of a failure for people.
func (x *exchange) failurePage(f *failure) []byte {
	body, err := x.site.Append(nil, "error", site.Failure(site.Failed{
		Status: f.status, Text: f.text, Param: f.param, Path: x.c.Request.URL.EscapedPath(), Search: cmp.Or(x.c.Query(cmp.Or(f.param, "search")), x.c.Query("id")),
		Query: x.query(), Empty: f.status == http.StatusServiceUnavailable && x.health.IsEmpty(),
	}))
	if err != nil {
		x.logFailure(err.Error())
		return []byte(f.text)
	}
	return body
}

// developerPages adds the pages for developers, and the files of the bots. All of them name the address of this service.
func (p *Public) developerPages(baseURL string) error {
	p.addPage("/api", func(x *exchange) error {
		body, err := p.site.API(nil, addressOf(x.c.Request, baseURL))
		if err != nil {
			return err
		}
		x.page = indexedPage
		return x.sendHashed(cacheAddressed(baseURL), body)
	})
	body, err := p.site.BotsPage(nil)
	if err != nil {
		return err
	}
	p.addPage(site.BotsPath, pageDocument("public, max-age=300", body))

	files, err := site.Bots()
	if err != nil {
		return err
	}
	for name, text := range files {
		media := plainText
		if strings.HasSuffix(name, ".json") {
			media = "application/json; charset=utf-8"
		}
		p.add(site.BotsPath+"/"+name, p.limit, func(x *exchange) error {
			x.media = media
			return x.sendHashed(cacheAddressed(baseURL), []byte(strings.ReplaceAll(text, site.Address, addressOf(x.c.Request, baseURL))))
		})
	}
	return nil
}

// cacheAddressed returns how a document with this service's address is cached. No shared cache may store one with the
// address of the request.
func cacheAddressed(baseURL string) policy {
	if baseURL == "" {
		return policy{control: "private, max-age=300"}
	}
	return policy{control: "public, max-age=300"}
}

// hostPattern matches the Host header of a request for a page.
var hostPattern = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// addressOf returns baseURL or, if that is empty, the scheme and host that r was sent to, as r
// states them. A proxy that speaks TLS to clients sends X-Forwarded-Proto; a client that forges it
// misleads only itself.
func addressOf(r *http.Request, baseURL string) string {
	switch {
	case baseURL != "":
		return baseURL
	case len(r.Host) > 255 || !hostPattern.MatchString(r.Host):
		return site.Address
	case r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https":
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
