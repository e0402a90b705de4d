package serve

import (
	"context"
	"fmt"
	"net"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/demo"
	"example.org/registry/events"
	"example.org/registry/events/pause"
	"example.org/registry/httpapi"
)

// announcer tells the log, or a person at a terminal, and the supervisor how far the start is.
type announcer struct {
	cfg       Config
	live      *live
	health    *httpapi.Health
	listeners listeners
}

// announceEvery is how often the progress is read while catching up: often enough for the ready line
// to come at once.
const announceEvery = 20 * time.Millisecond

// run shows the progress of the catch-up, and reports "ready" once lists and checks are served. Scripts
// start other programs by that line of the log.
func (a *announcer) run(ctx context.Context) error {
	progress := &cli.Progress{}
	if a.cfg.Terminal != nil {
		progress = cli.ProgressOn(a.cfg.Terminal, "catching up", "events")
	}

	for !a.live.readiness().Ready {
		if p, _ := a.live.progress(); p.Total > 0 {
			progress.Set(int64(p.Done), int64(p.Total))
		}
		if !pause.For(ctx, announceEvery) {
			return nil
		}
	}
	notifySupervisor(a.cfg.NotifySocket, "READY=1", a.cfg.Logger)

	// A registry with too few entries has started: the backend needs the addresses to publish the
	// first entry.
	if _, _, err := a.health.View(); err != nil {
		a.cfg.Logger.Warn("caught up with the stream, but lists and checks are answered with 503", append(a.describeAddresses(), "reason", err.Error())...)
		a.showAddresses("empty")
	}

	for {
		if _, _, err := a.health.View(); err == nil {
			break
		}
		if !pause.For(ctx, announceEvery) {
			return nil
		}
	}

	if a.cfg.Terminal == nil {
		a.cfg.Logger.Info("ready", a.describeAddresses()...)
	}

	a.showAddresses("ready")
	return nil
}

// showAddresses shows a person, if there is one, the state of the registry and its addresses.
func (a *announcer) showAddresses(state string) {
	if a.cfg.Terminal == nil {
		return
	}

	base := browsableURL(a.listeners.public)
	site, api := "off (--no-site)", base+"/api/check?search="+demo.Search
	if a.cfg.Public.Site {
		site, api = base+"/", base+"/api"
	}

	broker := "embedded, without an address (--embedded-nats-addr=-)"
	if url := a.live.brokerURL.Load(); url != nil && *url != "" {
		broker = *url
	} else if !a.cfg.IsEmbedded() {
		broker = a.cfg.Broker().Addresses()
	}
	// A terminal that fails does not stop the server.
	_, _ = fmt.Fprintf(a.cfg.Terminal, "%s  site       %s\n       API        %s\n       operators  %s/projection\n       broker     %s\n",
		state, site, api, browsableURL(a.listeners.admin), broker)
}

// describeAddresses returns the addresses, the counts and two sample requests, for the log.
func (a *announcer) describeAddresses() []any {
	base := browsableURL(a.listeners.public)
	view := a.live.View()
	attrs := []any{
		"checkpoint", view.Sequence(),
		"http", a.listeners.public.Addr().String(),
		"admin", a.listeners.admin.Addr().String(),
	}
	if url := a.live.brokerURL.Load(); url != nil && *url != "" {
		attrs = append(attrs, "nats", *url)
	}

	for _, list := range events.Lists() {
		attrs = append(attrs, string(list), view.NumEntries(list))
	}
	if a.cfg.Public.Site {
		attrs = append(attrs, "site", base+"/")
	}

	// In the demonstration the search finds entries; elsewhere it is an example.
	return append(attrs, "list", base+"/api/scammers?sort=popular", "check", base+"/api/check?search="+demo.Search)
}

// browsableURL returns the address of a listener for a browser on this machine.
func browsableURL(l net.Listener) string {
	addr, ok := l.Addr().(*net.TCPAddr)
	if ok && addr.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", addr.Port)
	}
	return "http://" + l.Addr().String()
}

// sayGoodbye reports that everything is saved.
func sayGoodbye(cfg Config) {
	if cfg.Terminal == nil {
		cfg.Logger.Info("stopped; everything is saved")
		return
	}
	_, _ = fmt.Fprintln(cfg.Terminal, "\nsaved, bye") // below ^C
}
