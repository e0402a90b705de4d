package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/respond"
	"example.org/registry/readmodel"
)

// feedQuery asks for the changes after a sequence.
type feedQuery struct {
	epoch string
	since uint64
	limit int
	wait  time.Duration // zero does not wait for a change
}

// feedBody is the body of GET /api/changes.
type feedBody struct {
	Epoch      string      `json:"epoch"`
	Sequence   uint64      `json:"sequence"`
	LastChange uint64      `json:"lastChange"`
	AsOf       string      `json:"asOf"`
	Entries    body.Counts `json:"entries"`
	Digest     string      `json:"digest"`
}

// feed serves GET /api/changes: the position of the feed (httpapi/CONTRACT.md#changes). It has no
// tag, since it contains the time.
func (p *Public) feed(c *gin.Context) (respond.Response, error) {
	if err := readParams(c.Request.URL.RawQuery).err; err != nil {
		return respond.Response{}, err
	}
	at, err := p.gate.admit(c.Request)
	if err != nil {
		return respond.Response{}, err
	}
	if at.view.Epoch() == "" {
		return respond.Response{}, errNotReached
	}
	sequence, _ := at.view.FeedSequence()
	a, err := respond.JSON(feedBody{
		Epoch: at.view.Epoch(), Sequence: sequence, LastChange: at.view.LastChange(), AsOf: at.headers.AsOf[0],
		Entries: body.CountsOf(at.view), Digest: at.view.FeedDigest().String(),
	})
	a.Cache = p.feedCache
	return at.withHeaders(a), err
}

// changes serves GET /api/changes/{epoch} with a page of the feed.
func (p *Public) changes() handler {
	return p.cacheable(&route{
		policy: p.feedCache,
		name:   func(c *gin.Context) (string, error) { return url.PathEscape(c.Param("epoch")), nil },
		parse: func(raw string) (q query, err error) {
			q.feed, err = parseChanges(raw)
			return q, err
		},
		admit: func(c *gin.Context, q *query) (state, error) { return p.awaitChange(c, &q.feed) },
		tag:   func(at state, _ *query) *respond.Tags { return &at.headers.tags.feed },
		build: func(_ context.Context, at state, q *query, dst []byte) ([]byte, error) {
			page := at.view.Feed(q.feed.since, q.feed.limit, readmodel.MaxFeedPage)
			if err := at.room.Take(body.FeedSize(page)); err != nil {
				return nil, err
			}
			p.pollers.pages.Inc()
			return body.AppendFeed(dst, page), nil
		},
	})
}

// answerWithin is how long a client may take to receive a response that it has waited for.
const answerWithin = 15 * time.Second

// awaitChange is reachFeed. If the query has a wait and nothing has changed after since, it then
// waits for a change. Errors: those of reachFeed, and errBusy.
func (p *Public) awaitChange(c *gin.Context, q *feedQuery) (state, error) {
	at, err := p.reachFeed(c, q)
	if err != nil || q.wait == 0 {
		return at, err
	}
	if at.view.LastChange() <= q.since {
		if err := p.pollers.await(c.Request, q); err != nil {
			return state{}, err
		}
		_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(answerWithin)) // the server's deadline may have passed
		at, err = p.reachFeed(c, q)
	}
	at.noStore = true
	return at, err
}

// reachFeed returns a state of the requested epoch at or after the requested sequence. Errors:
// those of gate.admit, errNotReached and errGone.
func (p *Public) reachFeed(c *gin.Context, q *feedQuery) (state, error) {
	at, err := p.gate.admit(c.Request)
	if err != nil {
		return state{}, err
	}
	if err := ofFeed(at.view, q.epoch); err != nil {
		return state{}, err
	}
	sequence, base := at.view.FeedSequence()
	if sequence >= q.since {
		return at, nil
	}
	later, err := p.gate.reach(c.Request, q.since-base)
	if err != nil {
		return state{}, err
	}
	if err := ofFeed(later.view, q.epoch); err != nil { // another stream has replaced it
		return state{}, err
	}
	later.noStore = at.noStore
	return later, nil
}

// ofFeed returns why a view has no feed of this name: it has another one, or none while the stream is
// read again.
func ofFeed(v *readmodel.View, epoch string) error {
	switch v.Epoch() {
	case epoch:
		return nil
	case "":
		return errNotReached
	}
	return errGone
}

// parseChanges reads "<epoch, escaped>?<query string>". It is a pure function.
func parseChanges(raw string) (feedQuery, error) {
	escaped, raw, _ := strings.Cut(raw, "?")
	p := readParams(raw)
	var q feedQuery
	q.epoch, _ = url.PathUnescape(escaped) // PathEscape made it
	since, given := p.sequence("since")
	q.since = since
	q.limit = p.number("limit", 1, bounds.MaxChanges, bounds.DefaultChanges)
	q.wait = time.Duration(p.number("wait", 0, bounds.MaxWait, 0)) * time.Second
	if p.err == nil && !given {
		return q, missing("since")
	}
	return q, p.err
}
