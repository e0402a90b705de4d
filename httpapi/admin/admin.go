// Package admin is the operators' listener: liveness and readiness, metrics, profiles, the state of the
// projection, and what the commands of cmd/registry ask a running server for. It speaks plain text,
// JSON and English.
//
//   - A web page in an operator's browser reaches nothing here, whatever name it gives this address:
//     every request is checked for its Host, Origin and Sec-Fetch-Site, GET included.
//   - A request with side effects needs a header that no form and no link can send, and, where there is
//     a token, the token.
//   - A partial response never looks complete: an export that fails midway closes the connection.
//   - /readyz and /projection agree with the public API, because they use the same [httpapi.Health].
//
// admin.go has the configuration, the routes and the probes; projection.go the document of
// /projection; commands.go what the commands call; guard.go decides which requests are allowed. The
// rules are in httpapi/CONTRACT.md#admin and httpapi/CONTRACT.md#readiness.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.org/registry/httpapi"
)

// Config configures the listener. Health, Gatherer and Projection are required. Any goroutine may
// call its functions, several at once.
type Config struct {
	// Health is that of the public API.
	Health *httpapi.Health
	// Gatherer provides the metrics of /metrics.
	Gatherer prometheus.Gatherer
	// Projection returns the document of /projection.
	Projection func() Projection
	// Rebuild builds a fresh read model from the stream and returns once it has replaced the old
	// one. If ctx ends first, the old one stays. A [Refused] gives 409, an [Unavailable] 503, any
	// other error 500. If nil, there is no /rebuild.
	Rebuild func(ctx context.Context) (Rebuilt, error)
	// Snapshots serves POST /snapshots and GET /export. If nil, there are neither.
	Snapshots Snapshots
	// Host is a name, without a port, by which the listener may be addressed besides IP addresses
	// and localhost. If empty, there is none.
	Host string
	// Token is the bearer token that everything but /livez and /readyz requires. If empty, none does.
	Token string
	// Logger gets the server's own failures. If nil, they are dropped.
	Logger *slog.Logger
}

// New returns the listener's handler. Any goroutine may call it.
func New(cfg Config) (http.Handler, error) {
	if cfg.Health == nil || cfg.Gatherer == nil || cfg.Projection == nil {
		return nil, errors.New("admin: Config needs Health, Gatherer and Projection")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}

	l := &listener{cfg}
	return guard(cfg.Host, requireToken(cfg.Token, l.routes())), nil
}

// listener holds the handlers. It does not change after New.
type listener struct{ Config }

// routes returns the routing table. A route with side effects is a POST wrapped in [command].
func (l *listener) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+livePath, func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET "+readyPath, l.ready)
	mux.HandleFunc("GET /projection", l.projection)
	mux.Handle("GET /metrics", promhttp.HandlerFor(l.Gatherer, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(l.Logger.Handler(), slog.LevelError),
	}))

	// net/http/pprof only registers these with the default mux.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)

	if l.Rebuild != nil {
		mux.HandleFunc("POST /rebuild", command(l.rebuild))
	}
	if l.Snapshots != nil {
		mux.HandleFunc("POST /snapshots", command(l.createSnapshot))
		mux.HandleFunc("GET /export", l.export)
	}
	return mux
}

// ready sends 200 while lists and checks are served, else 503 with the reason. A stopping process
// also sends 503, so that it gets no new clients; it still serves the current ones.
func (l *listener) ready(w http.ResponseWriter, _ *http.Request) {
	_, state, err := l.Health.View()
	if err != nil {
		plain(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	if state.Stopping {
		plain(w, http.StatusServiceUnavailable, "stopping")
		return
	}

	plain(w, http.StatusOK, "ok"+l.Projection().caution())
}

// plain sends one line of text.
func plain(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, line) // fails only if the client has disconnected
}

// sendJSON sends v as one line of JSON. v must have a type that can be marshaled.
func (l *listener) sendJSON(w http.ResponseWriter, r *http.Request, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		l.Logger.ErrorContext(r.Context(), "admin request failed", "path", r.URL.Path, "error", err)
		plain(w, http.StatusInternalServerError, "internal error")
		return
	}

	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // fails only if the client has disconnected
}
