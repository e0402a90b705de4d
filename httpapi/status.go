package httpapi

import (
	"context"
	"errors"

	"example.org/registry/httpapi/site"
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

// statusCache lasts as long as a round of probes is shared.
var statusCache = policy{control: "public, s-maxage=15"}

// serveStatus serves GET /api/status. It needs no read model.
func serveStatus(x *exchange) error {
	if err := readParams(x.query()).err; err != nil {
		return err
	}

	round := x.api.upstreams.Status()
	body := statusBody{CheckedAt: formatTime(round.CheckedAt)}
	for _, c := range round.Components {
		body.Checks = append(body.Checks, statusCheck{ID: c.ID, OK: c.OK, LatencyMs: c.Latency.Milliseconds()})
	}
	return x.sendJSON(statusCache, "", body)
}

// serveStatusPage serves GET /status with the round of probes that serveStatus sends.
func serveStatusPage(x *exchange) error {
	if err := readParams(x.query()).err; err != nil {
		return err
	}

	round := x.api.upstreams.Status()
	checks := make([]site.Component, len(round.Components))
	for i, c := range round.Components {
		checks[i] = site.Component{ID: c.ID, Checked: c.Configured, OK: c.OK, Latency: c.Latency}
	}

	x.page = indexedPage
	_, _, notReady := x.api.health.View()
	body, err := x.api.site.Append(nil, site.StatusPage{Components: checks, Answers: notReady == nil, CheckedAt: round.CheckedAt})
	if err != nil {
		return err
	}
	return x.sendHashed(statusCache, body)
}

// databaseCheck returns a check of the storage by ask. The check also fails until the model has caught up, and while it is frozen
// (httpapi/CONTRACT.md#readiness).
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
