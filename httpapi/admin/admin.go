// Package admin is the operators' listener: liveness and readiness, metrics, profiles, the state of the projection, and the
// commands of cmd/registry for a running server. It speaks plain text, JSON and English.
//
// No web page in an operator's browser can reach this listener: guard checks every request, GET included. /readyz and /projection
// agree with the public API, because they use the same [httpapi.Health].
//
// Start with routes in admin.go. The rules are in httpapi/CONTRACT.md#admin and httpapi/CONTRACT.md#readiness.
//
//	admin.go       configuration, routes, readiness
//	projection.go  the document of /projection
//	commands.go    rebuilds, snapshots, exports
//	guard.go       which requests are allowed
package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.org/registry/httpapi"
)

// Config configures the listener. Health, Gatherer and Projection are required. Its functions may be called by several goroutines
// at once.
type Config struct {
	Health     *httpapi.Health     // the public API's
	Gatherer   prometheus.Gatherer // of the metrics
	Projection func() Projection

	// Rebuild builds a fresh read model from the stream and returns once it has replaced the old one. If ctx ends first, the
	// old one stays. A [Refused] is answered with 409, an [Unavailable] with 503, any other error with 500. If Rebuild is nil,
	// there is no /rebuild.
	Rebuild func(ctx context.Context) (Rebuilt, error)

	// Snapshots makes the answers of POST /snapshots and GET /export. If it is nil, these paths do not exist.
	Snapshots Snapshots

	// Host is a name, without a port, by which the listener may be addressed besides IP addresses and localhost. It may be empty.
	Host string

	// Token is the bearer token that every path but /livez and /readyz requires. If empty, no path requires one.
	Token string

	// Logger gets the server's own failures. If nil, they are dropped.
	Logger *slog.Logger
}

// New returns the listener's handler. Any goroutine may call it.
func New(cfg Config) http.Handler {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	l := &listener{cfg}
	return guard(cfg.Host, requireToken(cfg.Token, l.routes()))
}

// listener holds the handlers. It does not change after New.
type listener struct{ Config }

// routes returns the routing table. A route with side effects is a POST wrapped in command.
func (l *listener) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+livePath, func(w http.ResponseWriter, _ *http.Request) { sendLine(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET "+readyPath, l.sendReadiness)
	mux.HandleFunc("GET /projection", l.sendProjection)
	mux.Handle("GET /metrics", promhttp.HandlerFor(l.Gatherer, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(l.Logger.Handler(), slog.LevelError),
	}))

	// net/http/pprof registers these handlers only with the default mux.
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
		mux.HandleFunc("GET /export", l.sendExport)
	}
	return mux
}

// sendReadiness sends 200 while lists and checks are served, else 503 with the reason. A stopping process also sends 503, so that
// it gets no new clients.
func (l *listener) sendReadiness(w http.ResponseWriter, _ *http.Request) {
	_, state, err := l.Health.View()
	if err != nil {
		sendLine(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	if state.Stopping {
		sendLine(w, http.StatusServiceUnavailable, "stopping")
		return
	}
	sendLine(w, http.StatusOK, "ok"+l.Projection().caution())
}

// sendLine sends one line of text.
func sendLine(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, line) // fails only if the client has disconnected
}

// sendJSON sends v as one line of JSON.
func sendJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // fails only if the client has disconnected
}
