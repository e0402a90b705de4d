package main

import (
	"context"
	"time"

	"example.org/registry/events"
)

// lookEvery is how often the progress is looked at while catching up: often enough for a
// progress bar, and for the ready line to come at once.
const lookEvery = 20 * time.Millisecond

// announce shows how far the server is while it catches up, and says so when it is ready.
func (s *server) announce(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var shown *bar
	for !s.live.state().Ready {
		if p, running := s.live.progress(); running && p.Total > 0 {
			if shown == nil {
				shown = newBar(s.terminal, "catching up", int64(p.Total), false)
			}
			shown.set(int64(p.Done), int64(p.Total))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	if shown != nil {
		shown.finish()
	}
	select {
	case <-ctx.Done():
	case <-s.listening: // who starts others by the log reads the two in this order
		s.sayReady()
	}
	return nil
}

// sayReady logs the line that names the real addresses and two of them worth opening.
func (s *server) sayReady() {
	base := openable(s.ports.public)
	view := s.live.View()
	attrs := []any{
		"checkpoint", view.Sequence(),
		"http", s.ports.public.Addr().String(),
		"admin", s.ports.admin.Addr().String(),
	}
	if url := s.live.brokerURL.Load(); url != nil && *url != "" {
		attrs = append(attrs, "nats", *url)
	}
	for _, list := range events.Lists() {
		attrs = append(attrs, string(list), view.Entries(list))
	}
	if s.flags.Site {
		attrs = append(attrs, "site", base+"/")
	}
	// The search finds somebody in the demonstration; elsewhere it is an example.
	attrs = append(attrs, "list", base+"/api/scammers?sort=popular", "check", base+"/api/check?search="+demoSearch)
	s.log.Info("ready", attrs...)
}
