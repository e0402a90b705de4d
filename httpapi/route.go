package httpapi

import (
	"context"

	"github.com/gin-gonic/gin"

	"example.org/registry/httpapi/respond"
	"example.org/registry/readmodel"
)

// route has the shared parts of the cacheable responses of one path: lists and checks, as JSON and
// as pages of the site. It does not change once it is passed to [Public.cacheable].
type route struct {
	number uint8 // distinguishes the query strings of routes
	policy *respond.Policy
	html   bool     // a page of the site
	media  []string // if nil, JSON or, for a page, HTML
	// name checks and returns the part of the path that belongs to the query, which then is
	// "<name>?<query string>". If nil, there is no such part.
	name func(c *gin.Context) (string, error)
	// parse reads a query string. It is a pure function, and its only error is a paramError.
	parse func(raw string) (query, error)
	// admit returns the state to serve from. If nil, gate.admit does.
	admit func(c *gin.Context, q *query) (state, error)
	// tag returns the tags of the content of a response, or nil if there is none, which gives 404.
	tag func(at state, q *query) *respond.Tags
	// build appends the body, and takes room for entries before it appends them. Its only errors are
	// errBusy, respond.ErrFull and that of ctx.
	build func(ctx context.Context, at state, q *query, dst []byte) ([]byte, error)
}

// query is a parsed query string of a route.
type query struct {
	list    readmodel.ListQuery
	check   readmodel.CheckQuery
	batch   []batchID
	bucket  int       // of chat ids, from 0
	feed    feedQuery // of changes
	entry   string    // the entry id that the path names
	person  person    // of the person check
	indexed bool      // search engines may show the page
}

// page returns the kind of page of the response to q.
func (r *route) page(q *query) respond.Page {
	switch {
	case !r.html:
		return respond.NoPage
	case q.indexed:
		return respond.IndexedPage
	}
	return respond.HiddenPage
}

// cacheable returns the handler of a route. It does not parse a repeated query string again. It
// refuses a bad one even while nothing can be served.
func (p *Public) cacheable(r *route) handler {
	p.routeCount++
	r.number = p.routeCount
	return func(c *gin.Context) (respond.Response, error) {
		key := respond.Key{Route: r.number, Raw: c.Request.URL.RawQuery}
		if r.name != nil {
			name, err := r.name(c)
			if err != nil {
				return respond.Response{}, err
			}
			key.Raw = name + "?" + key.Raw
		}
		saved, err := p.bodies.Find(key, r.parse)
		if err != nil {
			return respond.Response{}, err
		}
		at, err := p.admit(c, r, saved.Query)
		if err != nil {
			return respond.Response{}, err
		}
		if r.admit != nil { // while it waited, another request may have saved the body
			if saved, err = p.bodies.Find(key, r.parse); err != nil {
				return respond.Response{}, err
			}
		}
		if r.html {
			at.staleSince = staleSince(at.headers.Time)
		}
		tags := r.tag(at, saved.Query)
		if tags == nil {
			return respond.Response{}, errNotFound
		}
		a := at.withHeaders(respond.Response{Page: r.page(saved.Query), Media: r.media, Cache: r.policy, Tags: tags})
		if a.Body = saved.For(tags); a.Body == nil {
			at.room = p.answers.Room()
			a.Room = at.room
			a.Build = p.builder(c.Request.Context(), r, at, tags, saved)
		}
		return a, nil
	}
}

func (p *Public) admit(c *gin.Context, r *route, q *query) (state, error) {
	if r.admit != nil {
		return r.admit(c, q)
	}
	return p.gate.admit(c.Request)
}

// builder returns a function that makes the body of a response and caches it.
func (p *Public) builder(ctx context.Context, r *route, at state, tags *respond.Tags, saved *respond.Saved[query]) func([]byte) ([]byte, error) {
	return func(dst []byte) ([]byte, error) {
		body, err := r.build(ctx, at, saved.Query, dst)
		if err == nil {
			p.bodies.Save(saved, tags, body)
		}
		return body, err
	}
}
