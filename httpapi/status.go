package httpapi

import (
	"context"
	"errors"

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

// statusCache lasts as long as a round of probes is shared.
var statusCache = policy{control: "public, s-maxage=15"}

// status serves GET /api/status. It needs no read model.
func (p *Public) status(x *exchange) error {
	round, err := x.latestRound()
	if err != nil {
		return err
	}
	body := statusBody{CheckedAt: FormatTime(round.CheckedAt)}
	for _, c := range round.Components {
		body.Checks = append(body.Checks, statusCheck{c.ID, c.OK, c.Latency.Milliseconds()})
	}
	return x.sendJSON(statusCache, "", body)
}

// statusPage serves GET /status with the same round.
func (p *Public) statusPage(x *exchange) error {
	round, err := x.latestRound()
	if err != nil {
		return err
	}
	checks := make([]site.Component, len(round.Components))
	for i, c := range round.Components {
		checks[i] = site.Component{ID: c.ID, Checked: c.Configured, OK: c.OK, Latency: c.Latency}
	}

	_, _, notReady := p.health.View()
	body, err := p.site.Append(nil, "status", site.StatusPage(checks, notReady == nil, round.CheckedAt))
	if err != nil {
		return err
	}
	x.page = indexedPage
	return x.sendHashed(statusCache, body)
}

// latestRound checks the query and returns the round of probes to show.
func (x *exchange) latestRound() (*upstream.Status, error) {
	if err := readParams(x.query()).err; err != nil {
		return nil, err
	}
	return x.upstreams.Status(), nil
}

// databaseCheck returns a check that fails whenever answers are old or there are none (httpapi/CONTRACT.md#readiness), and
// else checks the storage itself.
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
