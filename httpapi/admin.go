package httpapi

import (
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
	// Host is a name, without port, under which the listener may be addressed, beside IP
	// addresses and localhost. Empty: none.
	Host string
	// Token is what everything but /livez and /readyz requires as a bearer token. Empty: nothing.
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
	probes, rest := http.NewServeMux(), http.NewServeMux()
	probes.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	probes.HandleFunc("GET /readyz", cfg.ready)
	probes.Handle("/", cfg.withToken(rest))
	rest.Handle("GET /metrics", promhttp.HandlerFor(cfg.Gatherer, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelError),
	}))
	rest.HandleFunc("GET /projection", cfg.projection)
	addProfiles(rest)
	return guard(cfg.Host, probes), nil
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

func (cfg *AdminConfig) projection(w http.ResponseWriter, r *http.Request) {
	p := cfg.Projection()
	if _, _, err := cfg.Health.look(); err != nil {
		p.LastError = because(err.Error(), p.LastError)
	}
	if p.SubjectsWithoutValidEvent == nil {
		p.SubjectsWithoutValidEvent = []string{} // never null
	}
	body, err := json.Marshal(p)
	if err != nil {
		cfg.Logger.ErrorContext(r.Context(), "cannot show the projection", "error", err)
		plain(w, http.StatusInternalServerError, "internal error")
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
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
