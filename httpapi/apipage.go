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

// addressed is a document that contains this service's address. Any goroutine may use it.
type addressed struct {
	body     []byte // with apidoc.Address as the address
	plain    bool   // neither HTML nor XML
	response func(cacheControl string, body []byte) respond.Response
	last     atomic.Pointer[addressedAt]
}

// addressedAt is the response with an address.
type addressedAt struct {
	address  string
	response respond.Response
}

// apiPages adds the pages for developers: openapi.yaml as a page, the pages and files of the bots,
// and the description for search fields of browsers.
func (p *Public) apiPages(baseURL string) error {
	doc, err := apidoc.Read(openAPI(baseURL))
	if err != nil {
		return err
	}
	for _, page := range []struct{ template, title, path, about string }{
		{"api", "API dla programistów", "/api", doc.Summary},
		{"bots", "Bot na Discorda", site.BotsPath, "Gotowy bot, który mówi moderatorom, kto z serwera jest na liście oszustów."},
		{"ranges", "Bot, który nie mówi, o kogo pyta", site.RangesPath, "Jak sprawdzać każdego, kto wchodzi na serwer, i nikomu nie mówić, kto wszedł."},
	} {
		body, err := p.site.Append(nil, page.template, site.Page{Title: page.title, Path: page.path, About: page.about, Data: doc})
		if err != nil {
			return err
		}
		p.sitePage(page.path, (&addressed{body: body, response: pageDocument}).handler(baseURL))
	}
	for _, bot := range doc.DiscordBots.Programs {
		file := &addressed{body: []byte(bot.Code), plain: true, response: documentOf(plainText)}
		p.get(site.BotsPath+"/discordbot."+bot.ID, file.handler(baseURL))
	}
	search := &addressed{body: site.OpenSearch(), response: documentOf("application/opensearchdescription+xml")}
	p.get(site.OpenSearchPath, search.handler(baseURL))
	return nil
}

func documentOf(media string) func(cacheControl string, body []byte) respond.Response {
	return func(cacheControl string, body []byte) respond.Response { return document(media, cacheControl, body) }
}

// handler responds with the document. It contains baseURL or, if that is empty, the address of the
// request. Shared caches may not store a response with the address of the request; handler caches
// the last one.
func (a *addressed) handler(baseURL string) handler {
	if baseURL != "" {
		return always(a.at(baseURL, "public, max-age=300"))
	}
	return func(c *gin.Context) (respond.Response, error) {
		address := requestAddress(c.Request)
		last := a.last.Load()
		if last == nil || last.address != address {
			last = &addressedAt{address, a.at(address, "private, max-age=300")}
			a.last.Store(last)
		}
		return last.response, nil
	}
}

// at returns the document with address in it.
func (a *addressed) at(address, cacheControl string) respond.Response {
	if !a.plain {
		address = html.EscapeString(address)
	}
	return a.response(cacheControl, bytes.ReplaceAll(a.body, []byte(apidoc.Address), []byte(address)))
}

// hostPattern matches the Host header of a request for a page.
var hostPattern = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// requestAddress returns the scheme and host that r was sent to, as r states them. A proxy that
// speaks TLS to clients sends X-Forwarded-Proto; a client that forges it misleads only itself.
func requestAddress(r *http.Request) string {
	if len(r.Host) > 255 || !hostPattern.MatchString(r.Host) {
		return apidoc.Address
	}
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
