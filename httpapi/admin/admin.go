package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.org/registry/httpapi"
	"example.org/registry/httpapi/site"
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
	// History holds the data of the page's charts. If nil, there are no charts.
	History *History
	// Site is the address of the public site, to which the page links. If empty, there is no link.
	Site string
	// Rejected returns the newest rejected events, at most limit, newest first; Snapshots those in
	// the object store, newest first. The page calls both each time it is shown; they return by the
	// time ctx ends. If one is nil, the page omits its section.
	Rejected  func(ctx context.Context, limit int) ([]RejectedEvent, error)
	Snapshots func(ctx context.Context) ([]SnapshotInfo, error)
	// Rebuild builds a fresh read model from the stream and returns once it has replaced the old
	// one. If ctx ends first, the old one stays. A [Refused] gives 409, an [Unavailable] 503, any
	// other error 500. If nil, there is no /rebuild.
	Rebuild func(ctx context.Context, o RebuildOptions) (Rebuilt, error)
	// Records lists the server's records at sequence atLeast or later, for which it waits a little.
	// Errors are reported like those of Rebuild. If nil, there is no /records.
	Records func(ctx context.Context, atLeast uint64) (Records, error)
	// Tombstones returns a function that writes every known removal (cmd/registry/CONTRACT.md#coming-back).
	// Errors are reported like those of Rebuild. If nil, there is no /tombstones.
	Tombstones func() (write func(io.Writer) error, err error)
	// Archives serves POST /snapshots and GET /export. If nil, there are neither.
	Archives Archives
	// Host is a name, without a port, by which the listener may be addressed besides IP addresses
	// and localhost. If empty, there is none.
	Host string
	// Token is required as a bearer token for everything except /livez and /readyz; for the page, a
	// browser may send it as the password of any user. If empty, no token is required.
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
	l := &listener{cfg, newPageTemplate()}
	return guard(cfg.Host, requireToken(cfg.Token, l.routes())), nil
}

// listener holds the handlers. It does not change after New.
type listener struct {
	Config
	template *template.Template // of the page
}

// routes returns the routing table. A route with side effects is a POST wrapped in [command].
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
	// net/http/pprof only registers these with the default mux.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// ready sends 200 while lists and checks are served, else 503 with the reason. A stopping process
// also sends 503, so that it gets no new clients; it still serves the current ones.
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
		l.internalError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // fails only if the client has disconnected
}

// internalError sends 500 and logs the error.
func (l *listener) internalError(w http.ResponseWriter, r *http.Request, err error) {
	l.Logger.ErrorContext(r.Context(), "admin request failed", "path", r.URL.Path, "error", err)
	plain(w, http.StatusInternalServerError, "internal error")
}
