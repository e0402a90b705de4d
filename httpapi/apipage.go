package httpapi

import (
	"bytes"
	"html"
	"net/http"
	"regexp"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"example.org/registry/httpapi/apidoc"
	"example.org/registry/httpapi/respond"
	"example.org/registry/httpapi/site"
)

// apiPage is the documentation of the API: openapi.yaml as a page, with examples that name this
// service's address. Any goroutine may use it.
type apiPage struct {
	body []byte // with apidoc.Address as the address
	last atomic.Pointer[addressedPage]
}

// addressedPage is the page with an address.
type addressedPage struct {
	address  string
	response respond.Response
}

// apiPage adds the page. Its address is baseURL or, without one, the one that the request used.
func (p *Public) apiPage(baseURL string) error {
	doc, err := apidoc.Read(openAPI(baseURL))
	if err != nil {
		return err
	}
	page := &apiPage{}
	page.body, err = p.site.Append(nil, "api", site.Page{Title: "API dla programistów", Path: "/api", About: doc.Summary, Data: doc})
	if err != nil {
		return err
	}
	if baseURL == "" {
		p.sitePage("/api", page.answer)
		return nil
	}
	p.sitePage("/api", always(page.at(baseURL, "public, max-age=300")))
	return nil
}

// answer answers with the address of the request. No shared cache may keep it, and the last one is
// remembered.
func (a *apiPage) answer(c *gin.Context) (respond.Response, error) {
	address := requestAddress(c.Request)
	last := a.last.Load()
	if last == nil || last.address != address {
		last = &addressedPage{address, a.at(address, "private, max-age=300")}
		a.last.Store(last)
	}
	return last.response, nil
}

// at returns the page with an address in it.
func (a *apiPage) at(address, cacheControl string) respond.Response {
	return pageDocument(cacheControl, bytes.ReplaceAll(a.body, []byte(apidoc.Address), []byte(html.EscapeString(address))))
}

// hostPattern is what the Host header of a request for a page looks like.
var hostPattern = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// requestAddress returns the scheme and host that r was sent to, as far as it says. A proxy that
// speaks TLS to clients says so in X-Forwarded-Proto; whoever lies in it misleads only themselves.
func requestAddress(r *http.Request) string {
	if len(r.Host) > 255 || !hostPattern.MatchString(r.Host) {
		return apidoc.Address
	}
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
