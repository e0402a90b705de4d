package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/httpapi/site"
)

// The site: pages for people beside the API (API contract, documents and the site). They go the API's
// way, adapt, answers and send, and differ in their media type, a few headers, and in that their failures are pages, too.

// newSite is nil where the site is off.
func newSite(cfg Config) (*site.Site, error) {
	if !cfg.Site {
		return nil, nil
	}
	s, err := site.New(site.Config{AppealsURL: cfg.AppealsURL, Proofs: cfg.ProofsURL != ""})
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	return s, nil
}

// siteRoutes adds the pages to the table of what exists.
func (p *Public) siteRoutes() error {
	if p.site == nil {
		return nil
	}
	for _, a := range p.site.Assets() {
		if err := p.asset(a); err != nil {
			return err
		}
	}
	p.sitePage("/", p.checkPage())
	for _, l := range events.Lists() {
		p.sitePage("/"+string(l), p.listPage(l))
	}
	return nil
}

// sitePage adds a page: a path whose failures are pages as well.
func (p *Public) sitePage(path string, h handler) {
	p.sitePaths[path] = true
	p.get(path, h)
}

// fixedPage adds a page that never changes, from the site's template of that name. Search engines may show it.
func (p *Public) fixedPage(path, name string, page site.Page) error {
	body, err := p.site.Append(nil, name, page)
	if err != nil {
		return err
	}
	d, err := newDocument(body, p.compressor)
	if err != nil {
		return err
	}
	d.kind, d.page = p.fixed.html, true
	p.sitePage(path, p.document(d))
	return nil
}

// asset adds a file of the site. There is no rate limit on these: a page without its style is no page.
func (p *Public) asset(a site.Asset) error {
	d, err := newDocument(a.Body, p.compressor)
	if err != nil {
		return err
	}
	d.kind, d.cache = []string{a.Type}, []string{"public, max-age=31536000, immutable"}
	p.engine.GET(a.Path, p.adapt(a.Path, p.document(d)))
	return nil
}

// siteFixed are the header values of pages.
type siteFixed struct{ html, policy, referrer, opener []string }

func newSiteFixed() siteFixed {
	return siteFixed{
		html: []string{"text/html; charset=utf-8"},
		policy: []string{"default-src 'none'; base-uri 'none'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; " +
			"img-src 'self'; script-src 'self'; style-src 'self'"},
		referrer: []string{"no-referrer"}, // addresses of pages name persons
		opener:   []string{"same-origin"},
	}
}

// pageHeaders are what a page has beyond the headers of every answer. Indexed: search engines may show it,
// which nobody's accusation is to be.
func (f *fixed) pageHeaders(h http.Header, indexed bool) {
	h["Content-Security-Policy"] = f.policy
	h["Referrer-Policy"] = f.referrer
	h["Cross-Origin-Opener-Policy"] = f.opener
	if indexed {
		delete(h, "X-Robots-Tag")
	}
}

// failsAsPage says whether people get to see the failure as a page: those of pages, and of paths that
// are nobody's outside /api/.
func (p *Public) failsAsPage(path string, status int) bool {
	if p.site == nil || strings.HasPrefix(path, "/api/") {
		return false
	}
	return status == http.StatusNotFound || p.sitePaths[path]
}

// failurePage is the body of a failure for people; nil when even that fails.
func (p *Public) failurePage(c *gin.Context, r reply, param string) []byte {
	h := c.Writer.Header()
	p.fixed.pageHeaders(h, false)
	h["Content-Type"] = p.fixed.html
	again := r.status == http.StatusServiceUnavailable && r.retryAfter != ""
	if again {
		h["Refresh"] = []string{r.retryAfter}
	}
	body, err := p.site.Append(nil, "error", site.FailureOf(r.status, r.text, param, again))
	if err != nil {
		p.logFailure(c.Request.Context(), "error page", err)
		return []byte(r.text)
	}
	return body
}
