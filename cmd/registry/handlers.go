package main

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/registry/events"
	"example.org/registry/httpapi"
)

// handlers makes what the listeners answer with.
func (s *server) handlers() (public *httpapi.Public, admin http.Handler, err error) {
	metrics := prometheus.NewRegistry()
	if err := registerMetrics(metrics, s.live); err != nil {
		return nil, nil, err
	}
	if err := metrics.Register(newSnapshotCollector(&s.snapshots.stats)); err != nil {
		return nil, nil, fmt.Errorf("metrics: %w", err)
	}
	health := &httpapi.Health{
		Reader:       s.live,
		State:        s.live.state,
		MaxStaleness: s.flags.MaxStaleness,
		MinEntries:   s.flags.MinEntries,
	}
	public, err = httpapi.NewPublic(s.publicConfig(health, metrics))
	if err != nil {
		return nil, nil, fmt.Errorf("public API: %w", err)
	}
	admin, err = httpapi.NewAdmin(s.adminConfig(health, metrics))
	if err != nil {
		return nil, nil, fmt.Errorf("operators' listener: %w", err)
	}
	return public, admin, nil
}

func (s *server) publicConfig(health *httpapi.Health, metrics prometheus.Registerer) httpapi.Config {
	f := s.flags
	return httpapi.Config{
		Health:         health,
		Logger:         s.log,
		Metrics:        metrics,
		BaseURL:        string(f.BaseURL),
		ProofsURL:      string(f.ProofsURL),
		AppealsURL:     string(f.AppealsURL),
		Site:           f.Site,
		Contact:        string(f.Contact),
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
	}
}

func (s *server) adminConfig(health *httpapi.Health, metrics prometheus.Gatherer) httpapi.AdminConfig {
	return httpapi.AdminConfig{
		Health:     health,
		Gatherer:   metrics,
		Projection: s.live.projection,
		History:    &s.live.history,
		Rejected:   s.live.lastRejected,
		Rebuild:    s.rebuild,
		Records:    s.live.records,
		Archives:   s.snapshots,
		Snapshots:  s.snapshots.shown,
		Host:       s.flags.AdminHost,
		Token:      s.token,
		Logger:     s.log,
	}
}
