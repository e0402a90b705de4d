package serve

import (
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

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/demo"
	"example.org/registry/events"
	"example.org/registry/events/pause"
	"example.org/registry/httpapi"
	"example.org/registry/httpapi/admin"
)

const (
	// leaveWithin is how long clients are told to disconnect before the listener closes. A request
	// on its way over a connection that closes unexpectedly would be lost.
	leaveWithin = 300 * time.Millisecond
	// drainWithin bounds the wait for running requests after the first signal.
	drainWithin = 10 * time.Second
	// readWithin and profileWithin bound a request of the operators' listener, and its response. A CPU
	// profile takes half a minute by default.
	readWithin    = 5 * time.Second
	profileWithin = 2 * time.Minute
)

// listeners are bound before anything is opened, so that an address in use is found at once.
type listeners struct{ public, admin net.Listener }

func listen(cfg Config) (l listeners, err error) {
	if l.public, err = bind(cfg.HTTPAddr, "http-addr"); err != nil {
		return l, err
	}
	if l.admin, err = bind(cfg.AdminAddr, "admin-addr"); err != nil {
		l.public.Close()
	}
	return l, err
}

func bind(addr, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w; stop what uses the address or choose another", flag, err)
	}
	return l, nil
}

func (l listeners) close() {
	l.public.Close()
	l.admin.Close()
}

// serveHTTP serves both listeners until ctx ends. The operators' listener ends last, so that
// operators can watch the public one drain.
func (s *server) serveHTTP(ctx context.Context) error {
	cfg := s.publicConfig()
	public, operators, err := s.handlers(cfg)
	if err != nil {
		s.listeners.close()
		return err
	}
	defer public.Close()
	s.log.Info("listening", "http", s.listeners.public.Addr().String(), "admin", s.listeners.admin.Addr().String())
	close(s.listening)

	group, ctx := errgroup.WithContext(ctx)
	leaving, drained := make(chan struct{}), make(chan struct{})
	group.Go(func() error {
		defer close(leaving)
		<-ctx.Done()
		s.live.stopping.Store(true)
		public.EndFollowing()
		time.Sleep(leaveWithin) // the wait itself is the purpose, as in serveUntil
		return nil
	})
	group.Go(func() error {
		defer close(drained)
		l := httpapi.LimitConnections(s.listeners.public, s.cfg.MaxConnections, cfg.TrustedProxies, public.ConnectionRefused)
		return serveUntil(leaving, httpapi.NewServer(s.closing(public), s.cfg.IdleTimeout, s.log), l)
	})
	group.Go(func() error {
		srv := &http.Server{Handler: operators, ReadTimeout: readWithin, WriteTimeout: profileWithin, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
		return serveUntil(drained, srv, netutil.LimitListener(s.listeners.admin, httpapi.Descriptors().Operators))
	})
	return group.Wait()
}

// publicConfig returns the configuration of the public API: the operator's and, in the demonstration,
// texts of its own.
func (s *server) publicConfig() httpapi.Config {
	cfg := s.cfg.Public
	for _, network := range cfg.TrustedProxies {
		if network.Bits() == 0 {
			s.log.Warn("--trusted-proxies: every address is trusted as a proxy, so a client chooses its own address, and no limit holds for one client; "+
				"name the networks of the proxies", "network", network.String())
		}
	}
	if !s.cfg.Demo {
		if cfg.Site && cfg.AppealsURL == "" {
			s.log.Warn("no --appeals-url: the site tells accused persons no address where they can appeal")
		}
		if cfg.Site && cfg.About == "" {
			s.log.Warn("no --about-file: the page /o-rejestrze says that nobody has written who runs this registry and how to reach them")
		}
		return cfg
	}
	if cfg.About == "" {
		cfg.About = demo.About
	}
	cfg.Demo = demo.Questions
	return cfg
}

// handlers makes the handlers of both listeners.
func (s *server) handlers(cfg httpapi.Config) (public *httpapi.Public, operators http.Handler, err error) {
	metrics := prometheus.NewRegistry()
	if err := registerMetrics(metrics, s.live, &s.snapshots.stats, s.cfg.LostLines); err != nil {
		return nil, nil, err
	}
	if cfg.Site {
		if cfg.Build, err = buildID(); err != nil {
			cfg.Build = rand.Text()
			s.log.Warn("cannot read the program's file; clients fetch pages again after this start", "error", err)
		}
	}
	cfg.Health, cfg.Logger, cfg.Metrics, cfg.AsyncAPI = s.health, s.log, metrics, events.AsyncAPI()
	cfg.Status.Database, cfg.Ranked = s.live.database, s.live.rankedIndex
	if cfg.AnswerMemory == 0 {
		cfg.AnswerMemory = answerMemory()
	}
	public, err = httpapi.NewPublic(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("public API: %w", err)
	}
	operators, err = admin.New(admin.Config{
		Health:     s.health,
		Gatherer:   metrics,
		Projection: s.live.projection,
		Rebuild:    s.rebuild,
		Snapshots:  s.snapshots,
		Host:       s.cfg.AdminHost,
		Token:      s.cfg.AdminToken,
		Logger:     s.log,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("operators' listener: %w", err)
	}
	return public, operators, nil
}

// buildID returns the checksum of the program's file.
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

// closing tells clients, with their responses, that the connection ends once the process stops.
func (s *server) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.live.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// serveUntil serves until stop is closed, then accepts no connections and waits for the running
// requests, at most drainWithin; it aborts longer ones. It returns when no goroutine of the server
// is left.
//
// The listener closes a little before Shutdown, because net/http drops what it reads after that: a
// request on a connection that was just accepted would be lost.
func serveUntil(stop <-chan struct{}, srv *http.Server, l net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("listener %s: %w", l.Addr(), err)
	case <-stop:
	}
	_ = l.Close() // Shutdown closes it again, and reports its error
	time.Sleep(leaveWithin / 2)
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	<-failed
	if errors.Is(err, net.ErrClosed) {
		return nil // we closed the listener
	}
	return err
}

// lookEvery is how often the progress is read while catching up: often enough for the ready line to
// come at once.
const lookEvery = 20 * time.Millisecond

// announce shows the progress of the catch-up, and reports "ready" once lists and checks are
// served: in the log or, to a person, in a few lines. It does so after "listening", since scripts
// start other programs by the log, and read the two in this order.
//
// A registry with too few entries is not ready, but it has started: the supervisor is told, and the
// addresses are shown, since the backend needs them to publish the first entry.
func (s *server) announce(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.listening:
	}

	if err := s.catchUp(ctx); err != nil {
		return nil // stopped
	}
	s.notify("READY=1")
	if _, _, err := s.health.View(); err != nil {
		s.log.Warn("caught up with the stream, but lists and checks are answered with 503", append(s.addresses(), "reason", err.Error())...)
		if err := s.showAddresses("empty"); err != nil {
			return err
		}
	}

	for {
		if _, _, err := s.health.View(); err == nil {
			break
		}
		if !pause.For(ctx, lookEvery) {
			return nil
		}
	}
	if s.cfg.Terminal == nil {
		s.log.Info("ready", s.addresses()...)
	}
	return s.showAddresses("ready")
}

// catchUp returns once the model has caught up with the stream, or the error of ctx.
func (s *server) catchUp(ctx context.Context) error {
	progress := &cli.Progress{}
	if s.cfg.Terminal != nil {
		progress = cli.ProgressOn(s.cfg.Terminal, "catching up", "events")
	}
	for !s.live.readiness().Ready {
		if p, _ := s.live.progress(); p.Total > 0 {
			progress.Set(int64(p.Done), int64(p.Total))
		}
		if !pause.For(ctx, lookEvery) {
			return ctx.Err()
		}
	}
	return nil
}

// showAddresses shows a person, if there is one, the state of the registry and all addresses.
func (s *server) showAddresses(state string) error {
	if s.cfg.Terminal == nil {
		return nil
	}
	base := openable(s.listeners.public)
	site, api := "off (--no-site)", base+"/api/check?search="+demo.Search
	if s.cfg.Public.Site {
		site, api = base+"/", base+"/api"
	}
	_, err := fmt.Fprintf(s.cfg.Terminal, "%s  site       %s\n       API        %s\n       operators  %s/projection\n       broker     %s\n",
		state, site, api, openable(s.listeners.admin), s.brokerAddress())
	return err
}

// brokerAddress returns where the moderation backend publishes, without user and password.
func (s *server) brokerAddress() string {
	if !s.cfg.embedded() {
		return s.cfg.Broker.Addresses()
	}
	if url := s.live.brokerURL.Load(); url != nil && *url != "" {
		return *url
	}
	return "embedded, without an address (--embedded-nats-addr=-)"
}

// addresses returns the actual addresses, the counts, and some example addresses for the log.
func (s *server) addresses() []any {
	base := openable(s.listeners.public)
	view := s.live.View()
	attrs := []any{
		"checkpoint", view.Sequence(),
		"http", s.listeners.public.Addr().String(),
		"admin", s.listeners.admin.Addr().String(),
	}
	if url := s.live.brokerURL.Load(); url != nil && *url != "" {
		attrs = append(attrs, "nats", *url)
	}
	for _, list := range events.Lists() {
		attrs = append(attrs, string(list), view.NumEntries(list))
	}
	if s.cfg.Public.Site {
		attrs = append(attrs, "site", base+"/")
	}
	// In the demonstration the search finds entries; elsewhere it is an example.
	return append(attrs, "list", base+"/api/scammers?sort=popular", "check", base+"/api/check?search="+demo.Search)
}

// openable returns the address of a listener for a browser on this machine.
func openable(l net.Listener) string {
	addr, ok := l.Addr().(*net.TCPAddr)
	if ok && addr.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", addr.Port)
	}
	return "http://" + l.Addr().String()
}
