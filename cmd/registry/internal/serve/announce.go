package serve

import (
	"context"
	"fmt"
	"net"
	"time"

	"example.org/registry/cmd/registry/internal/demo"
	"example.org/registry/events"
	"example.org/registry/events/pause"
)

// catchUpEvery is the time between two looks at the progress while the model catches up.
const catchUpEvery = 20 * time.Millisecond

// announceReady tells the supervisor that the model has caught up, and logs "ready" once lists and checks are
// served. Scripts wait for this line before they start other programs.
func (s *server) announceReady(ctx context.Context) {
	isCaughtUp := func() bool { return s.live.readiness().Ready }
	if !pause.Until(ctx, catchUpEvery, isCaughtUp) {
		return
	}
	notifyReady(s.cfg.NotifySocket, s.log)

	// With too few entries, a registry that has caught up serves nothing yet. The backend needs the addresses to publish more.
	if _, _, err := s.health.View(); err != nil {
		s.log.Warn("caught up with the stream, but lists and checks are answered with 503", append(s.describeAddresses(), "reason", err.Error())...)
	}
	isServed := func() bool {
		_, _, err := s.health.View()
		return err == nil
	}
	if pause.Until(ctx, catchUpEvery, isServed) {
		s.log.Info("ready", s.describeAddresses()...)
	}
}

// describeAddresses returns the addresses, the counts and two sample requests, for the log.
func (s *server) describeAddresses() []any {
	view := s.live.View()
	attrs := []any{
		"checkpoint", view.Sequence(),
		"http", s.publicListener.Addr().String(),
		"admin", s.adminListener.Addr().String(),
	}
	if url := s.live.brokerURL.Load(); url != nil && *url != "" {
		attrs = append(attrs, "nats", *url)
	}

	for _, list := range events.Lists() {
		attrs = append(attrs, string(list), view.NumEntries(list))
	}
	base := browsableURL(s.publicListener)
	if s.cfg.Public.Site != nil {
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
