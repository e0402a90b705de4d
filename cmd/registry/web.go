package main

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

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
	group.Go(func() error { defer close(leaving); s.leave(ctx); return nil })
	return group.Wait()
}

// leaveWithin is how long readers are told to leave before the listener closes. A connection that is
// closed by surprise may have a request on its way, which would be lost.
const leaveWithin = 300 * time.Millisecond

// leave waits for the end of ctx, and then for readers to leave.
func (s *server) leave(ctx context.Context) {
	<-ctx.Done()
	s.live.stopping.Store(true)
	time.Sleep(leaveWithin) // here, as in serveHTTP, waiting itself is the purpose
}

// farewell tells every reader with its answer, once the process stops, that the connection ends.
func (s *server) farewell(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.live.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
