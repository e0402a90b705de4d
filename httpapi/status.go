package httpapi

import (
	"context"
	"errors"

	"github.com/gin-gonic/gin"

	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/respond"
	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/upstream"
)

// statusBody is the body of GET /api/status.
type statusBody struct {
	Checks    []statusCheck `json:"checks"`
	CheckedAt string        `json:"checkedAt"`
}

type statusCheck struct {
	ID        string `json:"id"`
	OK        bool   `json:"ok"`
	LatencyMs int64  `json:"latencyMs"`
}

// status serves GET /api/status. It needs no read model.
func (p *Public) status(c *gin.Context) (respond.Response, error) {
	round, err := p.latestRound(c)
	if err != nil {
		return respond.Response{}, err
	}
	body := statusBody{CheckedAt: body.Time(round.CheckedAt)}
	for _, c := range round.Components {
		body.Checks = append(body.Checks, statusCheck{c.ID, c.OK, c.Latency.Milliseconds()})
	}
	a, err := respond.JSON(body)
	a.Cache = respond.Cached(statusCache)
	return a, err
}

// statusCache caches a response as long as a round is cached.
const statusCache = "public, s-maxage=15"

// statusPage serves GET /status with the same round.
func (p *Public) statusPage(c *gin.Context) (respond.Response, error) {
	round, err := p.latestRound(c)
	if err != nil {
		return respond.Response{}, err
	}
	checks := make([]site.Component, len(round.Components))
	for i, c := range round.Components {
		checks[i] = site.Component{ID: c.ID, Checked: c.Configured, OK: c.OK, Latency: c.Latency}
	}
	_, _, notReady := p.gate.health.View()
	page, err := p.site.Append(nil, "status", site.StatusPage(checks, notReady == nil, round.CheckedAt))
	return respond.Response{Page: respond.IndexedPage, Cache: respond.Cached(statusCache), Tags: respond.TagsOf(page), Body: respond.NewBody(page)}, err
}

// latestRound checks the query and returns the round of probes to serve.
func (p *Public) latestRound(c *gin.Context) (*upstream.Status, error) {
	if err := readParams(c.Request.URL.RawQuery).err; err != nil {
		return nil, err
	}
	return p.upstreams.Status(), nil
}

// databaseCheck returns a check that is false whenever responses are old or there are none
// (httpapi/CONTRACT.md#readiness). Otherwise it checks the storage itself.
func databaseCheck(ask func(context.Context) error, health *Health) func(context.Context) error {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context) error {
		_, readiness, err := health.View()
		if err != nil {
			return err
		}
		if readiness.Frozen {
			return errors.New("the stream is not the one the model was made from")
		}
		return ask(ctx)
	}
}
