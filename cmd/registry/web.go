package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/httpapi"
)

// profileWithin is how long an answer of the operators' listener may take: a processor
// profile runs for half a minute by default.
const profileWithin = 2 * time.Minute

// web serves both listeners until ctx ends. The operators' one goes last, so that the draining of
// the public one can be watched.
func (s *server) web(ctx context.Context) error {
	stopOutside, err := s.outside()
	if err != nil {
		s.ports.close()
		return err
	}
	defer stopOutside()
	public, admin, err := s.handlers()
	if err != nil {
		s.ports.close()
		return err
	}
	defer public.Close()
	s.log.Info("listening", "http", s.ports.public.Addr().String(), "admin", s.ports.admin.Addr().String())
	group, ctx := errgroup.WithContext(ctx)
	drained := make(chan struct{})
	group.Go(func() error {
		defer close(drained)
		listener := httpapi.LimitConnections(s.ports.public, s.flags.MaxConnections)
		return serveHTTP(ctx.Done(), httpapi.NewServer(public, s.log), listener)
	})
	group.Go(func() error {
		srv := httpapi.NewServer(admin, s.log)
		srv.WriteTimeout = profileWithin
		return serveHTTP(drained, srv, s.ports.admin)
	})
	context.AfterFunc(ctx, func() { s.live.stopping.Store(true) })
	return group.Wait()
}

// handlers makes what the listeners answer with.
func (s *server) handlers() (public *httpapi.Public, admin http.Handler, err error) {
	f := s.flags
	metrics := prometheus.NewRegistry()
	if err := registerMetrics(metrics, s.live); err != nil {
		return nil, nil, err
	}
	health := &httpapi.Health{
		Reader:       s.live,
		State:        s.live.state,
		MaxStaleness: f.MaxStaleness,
		MinEntries:   f.MinEntries,
	}
	public, err = httpapi.NewPublic(httpapi.Config{
		Health:         health,
		Logger:         s.log,
		Metrics:        metrics,
		BaseURL:        string(f.BaseURL),
		ProofsURL:      string(f.ProofsURL),
		AsyncAPI:       events.AsyncAPI(),
		RateLimit:      f.RateLimit,
		TrustedProxies: prefixes(f.TrustedProxies),
		Status: httpapi.StatusConfig{
			Database: s.live.database,
			Guard:    string(f.GuardURL),
			Chat:     string(f.ChatURL),
			Coin:     string(f.CoinURL),
		},
		Avatars: f.avatars(s.chatToken),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("public API: %w", err)
	}
	admin, err = httpapi.NewAdmin(httpapi.AdminConfig{
		Health:     health,
		Gatherer:   metrics,
		Projection: s.live.projection,
		Host:       f.AdminHost,
		Token:      s.token,
		Logger:     s.log,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("operators' listener: %w", err)
	}
	return public, admin, nil
}
