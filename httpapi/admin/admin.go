package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.org/registry/httpapi"
	"example.org/registry/httpapi/site"
)

// Config configures the listener. Health, Gatherer and Projection are required. Its functions may
// be called by any goroutine, several times at once.
type Config struct {
	// Health is the one that the public API has.
	Health *httpapi.Health
	// Gatherer is what /metrics shows.
	Gatherer prometheus.Gatherer
	// Projection returns the document of /projection.
	Projection func() Projection
	// History is what the page's charts show. Nil: no charts.
	History *History
	// Site is the address of the public site, to which the page links. Empty: it does not.
	Site string
	// Rejected returns the newest rejected events, at most limit, newest first; Snapshots those in
	// the object store, newest first. The page calls both each time it is shown; they return by the
	// time ctx ends. Nil: the page leaves that section out.
	Rejected  func(ctx context.Context, limit int) ([]RejectedEvent, error)
	Snapshots func(ctx context.Context) ([]SnapshotInfo, error)
	// Rebuild builds a fresh read model from the stream and returns once it has replaced the old
	// one. When ctx ends first, the old one stays. A [Refused] is answered with 409, an
	// [Unavailable] with 503, any other error with 500. Nil: there is no /rebuild.
	Rebuild func(ctx context.Context, o RebuildOptions) (Rebuilt, error)
	// Records lists what the server holds at sequence atLeast or later, for which it waits a
	// little. Errors are answered like those of Rebuild. Nil: there is no /records.
	Records func(ctx context.Context, atLeast uint64) (Records, error)
	// Tombstones returns what no list may show, in the order of list and entry id. Errors
	// are answered like those of Rebuild. Nil: there is no /tombstones.
	Tombstones func() (Tombstones, error)
	// Archives serves POST /snapshots and GET /export. Nil: there are none.
	Archives Archives
	// Host is a name, without a port, by which the listener may be addressed besides IP addresses
	// and localhost. Empty: none.
	Host string
	// Token is required as a bearer token on everything but /livez and /readyz; for the page, a
	// browser may send it as the password of any user. Empty: no token.
	Token string
	// Logger gets the server's own failures. Nil: they are dropped.
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
	l := &listener{cfg, newPageTemplate()}
	return guard(cfg.Host, requireToken(cfg.Token, l.routes())), nil
}

// listener holds the handlers. It does not change after New.
type listener struct {
	Config
	template *template.Template // of the page
}

// routes is the table of what exists. What changes something is a POST wrapped in [command].
func (l *listener) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+livePath, func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET "+readyPath, l.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(l.Gatherer, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(l.Logger.Handler(), slog.LevelError),
	}))
	mux.HandleFunc("GET /projection", l.projection)
	if l.Rebuild != nil {
		mux.HandleFunc("POST /rebuild", command(l.rebuild))
	}
	if l.Records != nil {
		mux.HandleFunc("GET /records", l.records)
	}
	if l.Tombstones != nil {
		mux.HandleFunc("GET /tombstones", l.tombstones)
	}
	if l.Archives != nil {
		mux.HandleFunc("POST /snapshots", command(l.createSnapshot))
		mux.HandleFunc("GET /export", l.export)
	}
	mux.HandleFunc("GET "+pagePath+"{$}", l.page)
	mux.HandleFunc("GET "+sitePath, asset(site.StyleSheet(), "text/css; charset=utf-8"))
	mux.HandleFunc("GET "+stylePath, asset(pageStyle, "text/css; charset=utf-8"))
	mux.HandleFunc("GET "+scriptPath, asset(pageScript, "text/javascript; charset=utf-8"))
	// net/http/pprof registers these with the default mux only.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// ready answers 200 while lists and checks are answered, else 503 with the reason. A stopping
// process answers 503 too, so that no new clients are sent here; those that are here still get
// answers.
func (l *listener) ready(w http.ResponseWriter, _ *http.Request) {
	_, state, err := l.Health.View()
	switch {
	case err != nil:
		plain(w, http.StatusServiceUnavailable, err.Error())
	case state.Stopping:
		plain(w, http.StatusServiceUnavailable, "stopping")
	default:
		plain(w, http.StatusOK, "ok")
	}
}

// plain answers with one line of text.
func plain(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, line) // fails only if the client has gone
}

// sendJSON answers with v as one line of JSON. v must be of a type that can be marshaled.
func (l *listener) sendJSON(w http.ResponseWriter, r *http.Request, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		l.internalError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // fails only if the client has gone
}

// internalError answers 500; what went wrong goes to the log.
func (l *listener) internalError(w http.ResponseWriter, r *http.Request, err error) {
	l.Logger.ErrorContext(r.Context(), "admin request failed", "path", r.URL.Path, "error", err)
	plain(w, http.StatusInternalServerError, "internal error")
}
