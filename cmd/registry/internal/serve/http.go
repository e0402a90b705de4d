package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/demo"
	"example.org/registry/events"
	"example.org/registry/httpapi"
	"example.org/registry/httpapi/admin"
)

const (
	// leaveWithin is how long responses tell clients to disconnect before the listener closes: a request
	// that arrives while its connection closes would be lost.
	leaveWithin = 300 * time.Millisecond
	// drainWithin bounds the wait for running requests after the first signal.
	drainWithin = 10 * time.Second
	// readWithin bounds a request of the operators' listener. profileWithin bounds its response: a CPU
	// profile takes half a minute by default.
	readWithin    = 5 * time.Second
	profileWithin = 2 * time.Minute
)

func bindAddress(addr cli.Address, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", string(addr))
	if err != nil {
		return nil, fmt.Errorf("--%s: %w; stop what uses the address or choose another", flag, err)
	}
	return l, nil
}

// serveHTTP serves both listeners until ctx ends. The operators' listener ends last, so that
// operators can watch the public one drain.
func (s *server) serveHTTP(ctx context.Context) error {
	cfg := s.publicConfig()
	public, operators, err := s.newHandlers(cfg)
	if err != nil {
		return err
	}
	defer public.Close()
	s.log.Info("listening", "http", s.publicListener.Addr().String(), "admin", s.adminListener.Addr().String())

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		s.announceReady(ctx)
		return nil
	})

	// Once ctx ends, every response tells its client to leave. After leaveWithin, told is closed.
	told := make(chan struct{})
	group.Go(func() error {
		defer close(told)
		<-ctx.Done()
		s.live.stopping.Store(true)
		public.EndFollowing()
		time.Sleep(leaveWithin)
		return nil
	})

	// The public listener serves until its clients have been told, and the operators' listener until the public one has
	// ended.
	publicEnded := make(chan struct{})
	group.Go(func() error {
		defer close(publicEnded)
		l := httpapi.LimitConnections(s.publicListener, s.cfg.MaxConnections, cfg.TrustedProxies, public.ConnectionRefused)
		return serveUntil(told, httpapi.NewServer(s.closeConnections(public), s.cfg.IdleTimeout, s.log), l)
	})
	group.Go(func() error {
		srv := &http.Server{Handler: operators, ReadTimeout: readWithin, WriteTimeout: profileWithin, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
		return serveUntil(publicEnded, srv, netutil.LimitListener(s.adminListener, httpapi.Descriptors().Operators))
	})
	return group.Wait()
}

// publicConfig returns the operator's configuration of the public API; in a demonstration, it adds the
// demonstration's texts. It logs a warning for each flag that leaves people without protection or advice.
func (s *server) publicConfig() httpapi.Config {
	cfg := s.cfg.Public
	for _, network := range cfg.TrustedProxies {
		if network.Bits() == 0 {
			s.log.Warn("--trusted-proxies: every address is trusted as a proxy, so a client chooses its own address, and no limit holds for one client; "+
				"name the networks of the proxies", "network", network.String())
		}
	}

	if cfg.Site == nil {
		return cfg
	}
	if s.cfg.Demo {
		cfg.Site.About = cmp.Or(cfg.Site.About, demo.About)
		cfg.Site.Demo = demo.Questions
		return cfg
	}

	if cfg.Site.AppealsURL == "" {
		s.log.Warn("no --appeals-url: the site tells accused persons no address where they can appeal")
	}
	if cfg.Site.About == "" {
		s.log.Warn("no --about-file: the page /o-rejestrze says that nobody has written who runs this registry and how to reach them")
	}
	return cfg
}

// newHandlers makes the handlers of both listeners.
func (s *server) newHandlers(cfg httpapi.Config) (public *httpapi.Public, operators http.Handler, err error) {
	metrics := newMetrics(collector{live: s.live, snapshots: s.snapshots, lostLines: s.cfg.LostLines})
	cfg.Health = s.health
	cfg.Logger = s.log
	cfg.Metrics = metrics
	cfg.AsyncAPI = events.AsyncAPI()
	cfg.Status.Database = s.live.checkDatabase
	cfg.Ranked = s.live.rankedIndex
	cfg.AnswerMemory = cmp.Or(cfg.AnswerMemory, answerMemory())
	if cfg.Site != nil {
		if cfg.Site.Build, err = buildID(); err != nil {
			cfg.Site.Build = rand.Text()
			s.log.Warn("cannot read the program's file; clients fetch pages again after this start", "error", err)
		}
	}

	public, err = httpapi.NewPublic(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("public API: %w", err)
	}

	operators = admin.New(admin.Config{
		Health:     s.health,
		Gatherer:   metrics,
		Projection: s.live.projection,
		Rebuild:    s.rebuild,
		Snapshots:  s.snapshots,
		Host:       s.cfg.AdminHost,
		Token:      s.cfg.AdminToken,
		Logger:     s.log,
	})
	return public, operators, nil
}

// buildID returns the checksum of the program's file. Clients fetch pages again when it changes.
func buildID() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()

	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// closeConnections adds to each response, once the process stops, the header that ends its connection.
func (s *server) closeConnections(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.live.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// serveUntil serves until stop is closed. Then it accepts no more connections, waits at most drainWithin for
// the running requests, and aborts the rest.
func serveUntil(stop <-chan struct{}, srv *http.Server, l net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("listener %s: %w", l.Addr(), err)
	case <-stop:
	}

	// Close the listener a little before Shutdown. From Shutdown on, net/http drops each request that it reads, even the
	// first one on a connection that it has just accepted.
	_ = l.Close() // Shutdown closes the listener again, and reports the error
	time.Sleep(leaveWithin / 2)

	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}

	<-ended
	if errors.Is(err, net.ErrClosed) {
		return nil // we closed the listener
	}
	return err
}
