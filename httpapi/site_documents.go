package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/httpapi/apidoc"
	"example.org/registry/httpapi/site"
)

// robots hides nothing. Pages about persons carry X-Robots-Tag: noindex, which only those crawlers see that may fetch them.
const robots = "User-agent: *\nDisallow:\n"

// siteDocuments adds what the site has beside the lists and the check.
func (p *Public) siteDocuments(cfg Config) error {
	doc, err := apidoc.Read(openAPI(cfg.BaseURL))
	if err != nil {
		return fmt.Errorf("httpapi: %w", err)
	}
	page := site.Page{Title: "API dla programistów", Path: "/api", About: doc.Summary, Data: doc}
	if err := p.fixedPage("/api", "api", page); err != nil {
		return err
	}
	p.sitePage("/status", p.statusPage)
	p.get("/.well-known/security.txt", p.securityTxt(cfg))
	if err := p.file("/robots.txt", "text/plain; charset=utf-8", []byte(robots)); err != nil {
		return err
	}
	return p.file("/favicon.ico", "image/vnd.microsoft.icon", site.Favicon())
}

// file adds a document that is no page.
func (p *Public) file(path, kind string, body []byte) error {
	d, err := newDocument(body, p.compressor)
	if err != nil {
		return err
	}
	d.kind, d.cache = []string{kind}, []string{"public, max-age=86400"}
	p.get(path, p.document(d))
	return nil
}

// statusPage answers GET /status with the round that /api/status tells. It needs no read model.
func (p *Public) statusPage(c *gin.Context) error {
	body, err := p.latestRound(c)
	if err != nil {
		return err
	}
	page, err := p.rounds.page(body)
	if err != nil {
		return err
	}
	out, err := p.site.Append(nil, "status", page)
	if err != nil {
		return err
	}
	h := c.Writer.Header()
	p.fixed.common(h)
	p.fixed.pageHeaders(h, true)
	h["Cache-Control"] = p.statusCache
	c.Data(http.StatusOK, p.fixed.html[0], out)
	return nil
}

// page is the page of an answer of /api/status.
func (s *statusRounds) page(body []byte) (site.Page, error) {
	var in statusBody
	if err := json.Unmarshal(body, &in); err != nil {
		return site.Page{}, fmt.Errorf("status: %w", err)
	}
	at, err := time.Parse(time.RFC3339, in.CheckedAt)
	if err != nil {
		return site.Page{}, fmt.Errorf("status: %w", err)
	}
	checks := make([]site.Component, len(in.Checks))
	for i, c := range in.Checks {
		checks[i] = site.Component{ID: c.ID, Checked: s.components[i].ask != nil, OK: c.OK, Latency: time.Duration(c.LatencyMs) * time.Millisecond}
	}
	return site.StatusPage(checks, at), nil
}
