package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// AdminConfig is what the admin listener is made of. Health, Gatherer and Projection are required.
type AdminConfig struct {
	Health *Health
	// Gatherer is what /metrics shows.
	Gatherer prometheus.Gatherer
	// Projection makes the document of /projection. Any goroutine may call it.
	Projection func() Projection
	// History is the lag that the page's chart shows. Nil: no chart.
	History *History
	// Rejected is at most so many of the last rejected events, newest first, and Snapshots those in
	// the object store, newest first. They are asked whenever the page is, by any goroutine, and
	// return when ctx ends at the latest. Nil: the page does not show them.
	Rejected  func(ctx context.Context, most int) ([]RejectedEvent, error)
	Snapshots func(ctx context.Context) ([]SnapshotInfo, error)
	// Rebuild makes the read model anew and returns when it is shown; when ctx ends there is none. Errors
	// that are Refused or Unavailable are told as such. Nil: there is no /rebuild. Any goroutine may call it.
	Rebuild func(ctx context.Context, o RebuildOptions) (Rebuilt, error)
	// Records lists what the server holds at a sequence of at least atLeast, for which it waits a little.
	// Errors are told as those of Rebuild. Nil: there is no /records. Any goroutine may call it.
	Records func(ctx context.Context, atLeast uint64) (Records, error)
	// Archives is behind POST /snapshots and GET /export. Nil: there are none.
	Archives Archives
	// Host is a name, without port, under which the listener may be addressed, beside IP
	// addresses and localhost. Empty: none.
	Host string
	// Token is what everything but /livez and /readyz requires as a bearer token, and the page in a
	// browser as the password of any user. Empty: nothing.
	Token string
	// Logger gets failures of the server's own. Nil: they are dropped.
	Logger *slog.Logger
}

// NewAdmin is the admin listener's handler (API contract, operators). It is made for operators and
// machines: plain text in English. Any goroutine may call it.
func NewAdmin(cfg AdminConfig) (http.Handler, error) {
	if cfg.Health == nil || cfg.Gatherer == nil || cfg.Projection == nil {
		return nil, fmt.Errorf("httpapi: AdminConfig needs Health, Gatherer and Projection")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	mux := http.NewServeMux()
	cfg.routes(mux)
	return guard(cfg.Host, cfg.withToken(mux)), nil
}

// routes is the table of what exists. What changes something is a POST behind [command].
func (cfg *AdminConfig) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+livePath, func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET "+readyPath, cfg.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Gatherer, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelError),
	}))
	mux.HandleFunc("GET /projection", cfg.projection)
	if cfg.Rebuild != nil {
		mux.HandleFunc("POST /rebuild", command(cfg.rebuild))
	}
	if cfg.Records != nil {
		mux.HandleFunc("GET /records", cfg.records)
	}
	if cfg.Archives != nil {
		mux.HandleFunc("POST /snapshots", command(cfg.createSnapshot))
		mux.HandleFunc("GET /export", cfg.export)
	}
	cfg.pageRoutes(mux)
	addProfiles(mux)
}

// addProfiles routes net/http/pprof, which by itself would only be on the default mux.
func addProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}

// ready is 200 exactly when lists and checks are answered, else 503 with the reason by name; and
// 503 while the process stops, though those who are here are answered.
func (cfg *AdminConfig) ready(w http.ResponseWriter, _ *http.Request) {
	_, state, err := cfg.Health.look()
	switch {
	case err != nil:
		plain(w, http.StatusServiceUnavailable, err.Error())
	case state.Stopping:
		plain(w, http.StatusServiceUnavailable, "stopping")
	default:
		plain(w, http.StatusOK, "ok")
	}
}

// because is why nothing is answered, and what is behind it where that is known.
func because(reason string, cause *string) *string {
	if cause != nil && *cause != "" && *cause != reason {
		reason += ": " + *cause
	}
	return &reason
}

// document is what /projection and the page show.
func (cfg *AdminConfig) document() Projection {
	p := cfg.Projection()
	if _, _, err := cfg.Health.look(); err != nil {
		p.LastError = because(err.Error(), p.LastError)
	}
	if p.SubjectsWithoutValidEvent == nil {
		p.SubjectsWithoutValidEvent = []string{} // never null
	}
	return p
}

func (cfg *AdminConfig) projection(w http.ResponseWriter, r *http.Request) {
	body, err := json.Marshal(cfg.document())
	if err != nil {
		cfg.Logger.ErrorContext(r.Context(), "cannot show the projection", "error", err)
		plain(w, http.StatusInternalServerError, "internal error")
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(append(body, '\n')) // fails only when the reader has gone
}

// plain answers with one line.
func plain(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, line) // fails only when the reader has gone
}
