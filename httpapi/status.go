package httpapi

import (
	"context"
	"errors"

	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/upstream"
)

// statusBody is the body of GET /api/status.
type statusBody struct {
	Checks    []upstream.Component `json:"checks"`
	CheckedAt string               `json:"checkedAt"`
}

// statusCache is for 15 s, as long as upstream serves one round of probes.
var statusCache = policy{control: "public, s-maxage=15"}

// serveStatus serves GET /api/status. It needs no read model.
func serveStatus(x *exchange) error {
	if err := checkSyntax(x.query()); err != nil {
		return err
	}

	round := x.api.upstreams.Status()
	return x.sendJSON(statusCache, "", statusBody{Checks: round.Components, CheckedAt: formatTime(round.CheckedAt)})
}

// serveStatusPage serves GET /status, a page with the same round of probes as GET /api/status.
func serveStatusPage(x *exchange) error {
	if err := checkSyntax(x.query()); err != nil {
		return err
	}

	x.page = indexedPage
	round := x.api.upstreams.Status()
	_, _, notReady := x.api.health.View()
	body, err := x.api.site.Append(nil, site.StatusPage{Components: round.Components, Answers: notReady == nil, CheckedAt: round.CheckedAt})
	if err != nil {
		return err
	}
	return x.sendHashed(statusCache, body)
}

// databaseCheck returns a check of the model and then of the storage, which ask checks. The model must have caught up, and
// must not be frozen (httpapi/CONTRACT.md#readiness). If ask is nil, so is the result.
func databaseCheck(ask func(context.Context) error, health *Health) func(context.Context) error {
	if ask == nil {
		return nil
	}

	return func(ctx context.Context) error {
		readiness := health.Readiness()
		if !readiness.Ready {
			return loading(readiness.Reason)
		}
		if readiness.Frozen {
			return errors.New("the stream is not the one the model was made from")
		}
		return ask(ctx)
	}
}
