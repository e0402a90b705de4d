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
	close(s.listening)
	group, ctx := errgroup.WithContext(ctx)
	drained, leaving := make(chan struct{}), make(chan struct{})
	group.Go(func() error {
		defer close(drained)
		listener := httpapi.LimitConnections(s.ports.public, s.flags.MaxConnections)
		return serveHTTP(leaving, httpapi.NewServer(s.farewell(public), s.log), listener)
	})
	group.Go(func() error {
		srv := httpapi.NewServer(admin, s.log)
		srv.WriteTimeout = profileWithin
		return serveHTTP(drained, srv, s.ports.admin)
	})
	group.Go(func() error { s.live.history.Run(ctx, s.live.lag); return nil })
	group.Go(func() error {
		defer close(leaving)
		<-ctx.Done()
		s.live.stopping.Store(true)
		time.Sleep(leaveWithin) // here, as in serveHTTP, waiting itself is the purpose
		return nil
	})
	return group.Wait()
}

// leaveWithin is how long readers are told to leave before the listener closes. A connection that is
// closed by surprise may have a request on its way, which would be lost.
const leaveWithin = 300 * time.Millisecond

// farewell tells every reader with its answer, once the process stops, that the connection ends.
func (s *server) farewell(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.live.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// handlers makes what the listeners answer with.
func (s *server) handlers() (public *httpapi.Public, admin http.Handler, err error) {
	f := s.flags
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
		MaxStaleness: f.MaxStaleness,
		MinEntries:   f.MinEntries,
	}
	public, err = httpapi.NewPublic(httpapi.Config{
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
	})
	if err != nil {
		return nil, nil, fmt.Errorf("public API: %w", err)
	}
	admin, err = httpapi.NewAdmin(httpapi.AdminConfig{
		Health:     health,
		Gatherer:   metrics,
		Projection: s.live.projection,
		History:    &s.live.history,
		Rejected:   s.live.lastRejected,
		Rebuild:    s.rebuild,
		Records:    s.live.records,
		Archives:   s.snapshots,
		Snapshots:  s.snapshots.shown,
		Host:       f.AdminHost,
		Token:      s.token,
		Logger:     s.log,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("operators' listener: %w", err)
	}
	return public, admin, nil
}
