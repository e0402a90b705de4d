package httpapi

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"

	"example.org/registry/httpapi/respond"
	"example.org/registry/httpapi/site"
)

// developerPages adds the pages for developers, and the files of the bots. All of them name the
// address of this service.
func (p *Public) developerPages(baseURL string) error {
	p.sitePage("/api", func(c *gin.Context) (respond.Response, error) {
		page, err := p.site.API(nil, addressOf(c.Request, baseURL))
		return pageDocument(cacheAddressed(baseURL), page), err
	})
	page, err := p.site.BotsPage(nil)
	if err != nil {
		return err
	}
	p.sitePage(site.BotsPath, always(pageDocument("public, max-age=300", page)))

	files, err := site.Bots()
	if err != nil {
		return err
	}
	for name, text := range files {
		media := plainText
		if strings.HasSuffix(name, ".json") {
			media = "application/json; charset=utf-8"
		}
		p.get(site.BotsPath+"/"+name, func(c *gin.Context) (respond.Response, error) {
			text := strings.ReplaceAll(text, site.Address, addressOf(c.Request, baseURL))
			return document(media, cacheAddressed(baseURL), []byte(text)), nil
		})
	}
	return nil
}

// cacheAddressed returns how a document with this service's address is cached. No shared cache may
// store one with the address of the request.
func cacheAddressed(baseURL string) string {
	if baseURL == "" {
		return "private, max-age=300"
	}
	return "public, max-age=300"
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
