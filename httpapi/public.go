package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gin-contrib/cors"
	"github.com/gin-gonic/gin"
	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/upstream"
)

// Config configures the public API. Health is required, with its Reader and Readiness.
type Config struct {
	Health *Health
	// Logger gets the server's own failures. If nil, they are dropped.
	Logger *slog.Logger
	// Metrics is where the metrics are registered, once. If nil, they are not.
	Metrics prometheus.Registerer
	// BaseURL is the service's public address, which /openapi.yaml names as its server. If empty,
	// that is "/".
	BaseURL string
	// Build identifies the program (site.Config.Build).
	Build string
	// AppealsURL is where accused persons appeal; the site shows it. It may have a query, and
	// {reportId} in it is replaced by the number of the report (site.ParseAppeals). If empty, the
	// site shows none.
	AppealsURL string
	// ReportURL is where people report a fraud (site.CheckReports); the site shows it. If empty, it
	// shows none.
	ReportURL string
	// Demo makes the site say that the registry is a demonstration (site.Config.Demo). If nil, it is
	// none.
	Demo []site.Question
	// Advice is the site's advice on what to do, in Markdown (httpapi/CONTRACT.md#texts). If
	// empty, it is the site's own.
	Advice string
	// About says who runs the registry, for /o-rejestrze, in Markdown (httpapi/CONTRACT.md#texts).
	// If empty, it is the site's neutral text.
	About string
	// Contact is where to report vulnerabilities, a mailto:, https: or tel: address for
	// security.txt. If empty, it is the mailbox security@ of the BaseURL's host.
	Contact string
	// Site adds the pages for people.
	Site bool
	// ProofsURL is where /proofs/{id} redirects to. If empty, there is no such path.
	ProofsURL string
	// AsyncAPI is the content of /asyncapi.yaml. If nil, there is no such path.
	AsyncAPI []byte
	// RateLimit is how many requests a second each client address may make; bursts of one second's
	// worth pass. Zero means no limit.
	RateLimit float64
	// TrustedProxies may name the client in X-Forwarded-For. If nil, no proxy may.
	TrustedProxies []netip.Prefix
	// StaleIfError is how long shared caches may serve an old list while no origin responds, in
	// whole seconds. Health's MaxStaleness bounds it. Zero means not at all.
	StaleIfError time.Duration
	// MaxFollowers is how many clients may wait for changes at once. Zero allows none.
	MaxFollowers int
	// AnswerMemory bounds the bytes of the responses that are being made or sent
	// (httpapi/CONTRACT.md#overload). Zero means 256 MiB.
	AnswerMemory int64
	// Status configures the probes of /api/status. Zero probes nothing, and no component is ok.
	Status upstream.StatusConfig
	// Ranked returns the index of ranked search, or nil while there is none. If Ranked is nil,
	// there never is one.
	Ranked func() RankedIndex
	// UserAgent names this service to the chat platform.
	UserAgent string
	// Avatars configures where pictures of users come from. Zero generates all.
	Avatars upstream.AvatarConfig
}

// check checks what neither the site nor the upstreams check.
func (cfg *Config) check() error {
	if cfg.Health == nil || cfg.Health.Reader == nil || cfg.Health.Readiness == nil {
		return errors.New("httpapi: Config.Health with Reader and Readiness is required")
	}
	for name, address := range map[string]string{"BaseURL": cfg.BaseURL, "ProofsURL": cfg.ProofsURL} {
		if address == "" {
			continue
		}
		if _, err := upstream.ParseURL(address); err != nil {
			return fmt.Errorf("httpapi: Config.%s: %w", name, err)
		}
	}
	if err := CheckContact(cfg.Contact); err != nil {
		return fmt.Errorf("httpapi: Config.Contact: %w", err)
	}
	if cfg.RateLimit < 0 {
		return fmt.Errorf("httpapi: Config.RateLimit: %v is negative", cfg.RateLimit)
	}
	if cfg.MaxFollowers < 0 {
		return fmt.Errorf("httpapi: Config.MaxFollowers: %v is negative", cfg.MaxFollowers)
	}
	if cfg.StaleIfError < 0 {
		return fmt.Errorf("httpapi: Config.StaleIfError: %v is negative", cfg.StaleIfError)
	}
	return nil
}

// Public is the public API. Any goroutine may call ServeHTTP. Its owner calls Close after the last
// request has been served.
type Public struct {
	engine  *gin.Engine
	logger  *slog.Logger
	metrics *metrics
	health  *Health

	listCache       policy
	bodies          *otter.Cache[bodyKey, keptBody]
	gzips           gzips
	answers         *memory
	searches        *turns
	sequenceWaiting places
	polls           *polls
	limit           *rateLimit // nil for no limit
	preflight       gin.HandlerFunc

	rankedIndex func() RankedIndex // returns nil while there is none
	upstreams   *upstream.Services
	site        *site.Site      // nil: none
	sitePaths   map[string]bool // of pages; fixed after construction
}

// NewPublic returns the public API, or an error for an invalid configuration.
func NewPublic(cfg Config) (*Public, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	p := &Public{
		logger:          cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		metrics:         newMetrics(),
		health:          cfg.Health,
		listCache:       listPolicy(cfg.StaleIfError, cfg.Health.MaxStaleness),
		bodies:          newKeptBodies(),
		answers:         newMemory(cfg.AnswerMemory),
		searches:        newTurns(),
		sequenceWaiting: newPlaces(maxSequenceWaiting),
		limit:           newRateLimit(1, cfg.RateLimit),
		preflight: cors.New(cors.Config{AllowAllOrigins: true, AllowMethods: []string{http.MethodGet}, AllowHeaders: []string{"*"},
			MaxAge: 24 * time.Hour}),
		rankedIndex: cfg.Ranked,
		sitePaths:   map[string]bool{},
	}
	if p.rankedIndex == nil {
		p.rankedIndex = func() RankedIndex { return nil }
	}
	var err error
	cfg.Status.Database = databaseCheck(cfg.Status.Database, cfg.Health)
	p.upstreams, err = upstream.New(upstream.Config{Status: cfg.Status, Avatars: cfg.Avatars, UserAgent: cfg.UserAgent, Metrics: cfg.Metrics, Logger: p.logger})
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	if err := p.routes(cfg); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}

	p.polls = newPolls(cfg.Health.Reader, cfg.MaxFollowers) // it runs until Close
	if cfg.Metrics != nil {
		p.metrics.register(cfg.Metrics, p)
	}
	return p, nil
}

// ServeHTTP serves one request.
func (p *Public) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.engine.ServeHTTP(w, r) }

// EndFollowing responds to all clients that wait for changes; later ones do not wait. Call it before shutting down the
// server, which waits for them.
func (p *Public) EndFollowing() { p.polls.drain() }

// Close stops the probes, the calls to the platform and the watch for changes, and waits for these. The server waits for
// requests.
func (p *Public) Close() {
	p.polls.close()
	p.upstreams.Close()
}

// ConnectionRefused counts a connection that was closed (LimitConnections).
func (p *Public) ConnectionRefused() { p.metrics.refused.Inc() }

// routes is the routing table. Everything is GET, and outside /api/ also HEAD: gin passes any other
// method on a path of the table to NoMethod, with Allow, and every other path to NoRoute.
func (p *Public) routes(cfg Config) error {
	gin.SetMode(gin.ReleaseMode) // a switch of the whole process; in debug mode gin prints every route
	p.engine = gin.New()
	p.engine.HandleMethodNotAllowed, p.engine.RedirectTrailingSlash = true, false
	p.engine.RemoteIPHeaders = []string{"X-Forwarded-For"}
	if err := p.engine.SetTrustedProxies(texts(cfg.TrustedProxies)); err != nil {
		return err
	}
	p.engine.Use(p.metrics.count, gin.CustomRecoveryWithWriter(nil, p.recovered))
	p.engine.NoRoute(p.serve(nil, func(*exchange) error { return errNotFound }))
	p.engine.NoMethod(p.serve(nil, p.otherMethod))

	for _, l := range events.Lists() {
		p.add("/api/"+string(l), p.limit, p.list(l))
	}
	p.add("/api/check", p.limit, p.check)
	p.add("/api/check/batch", p.limit, p.batch)
	p.add("/api/ranges", p.limit, p.ranges)
	p.add("/api/ranges/:prefix", p.limit, p.rangeOf)
	p.add("/api/changes", p.limit, p.feed)
	p.add("/api/changes/:epoch", p.limit, p.changes)
	p.add("/api/search", p.limit, p.ranked)
	p.add("/api/donate/status", p.limit, p.donation)
	p.add("/api/status", p.limit, p.status)
	// A page without its pictures looks broken, so they have a limit of their own.
	p.add(avatars+":chatUserId", newRateLimit(bounds.MaxLimit, cfg.RateLimit), p.avatar)
	if cfg.ProofsURL != "" {
		p.add("/proofs/:id", p.limit, proofs(strings.TrimSuffix(cfg.ProofsURL, "/")))
	}
	const media, keep = "application/yaml; charset=utf-8", "public, max-age=300"
	p.add("/openapi.yaml", p.limit, document(media, keep, openAPI(cfg.BaseURL)))
	if cfg.AsyncAPI != nil {
		p.add("/asyncapi.yaml", p.limit, document(media, keep, cfg.AsyncAPI))
	}
	if cfg.Site {
		return p.siteRoutes(cfg)
	}
	return nil
}

// add adds a path to the table. Outside /api/ its handler also serves HEAD: net/http drops the body.
func (p *Public) add(path string, limit *rateLimit, h handler) {
	serve := p.serve(limit, h)
	p.engine.GET(path, serve)
	if !strings.HasPrefix(path, "/api/") {
		p.engine.HEAD(path, serve)
	}
}

func texts(networks []netip.Prefix) (all []string) {
	for _, n := range networks {
		all = append(all, n.String())
	}
	return all
}

// otherMethod answers any method but GET on a documented path: 204 to a preflight, 405 to the rest
// (httpapi/CONTRACT.md#cors). gin has set Allow. Every answer has Access-Control-Allow-Origin, so gin-contrib/cors is for
// preflights alone: it sends that header only to a foreign Origin, and a shared cache would keep an answer without it.
func (p *Public) otherMethod(x *exchange) error {
	if x.c.Request.Method != http.MethodOptions || x.c.GetHeader("Origin") == "" {
		return errMethod
	}
	h := x.c.Writer.Header()
	h.Del("Allow")
	setCommonHeaders(h, x.c.Request.URL.Path)
	x.c.Status(http.StatusNoContent)
	p.preflight(x.c)
	x.c.Writer.WriteHeaderNow()
	return nil
}

// recovered answers a request whose handler has panicked.
func (p *Public) recovered(c *gin.Context, value any) {
	x := &exchange{Public: p, c: c, began: time.Now()}
	x.fail(fmt.Errorf("panic: %v\n%s", value, debug.Stack()))
}

var checkCache = policy{control: "public, s-maxage=10"}

// listPolicy returns how lists are cached (httpapi/CONTRACT.md#lists). To a shared cache s-maxage
// means never to serve stale responses; CDN-Cache-Control lifts that for caches that know it. Such
// a cache asks again after 10 s, since a response costs so little here. While a server responds, it
// shows no entry for longer than 30 s after its delisting.
func listPolicy(staleIfError, maxStaleness time.Duration) policy {
	if maxStaleness > 0 {
		staleIfError = min(staleIfError, maxStaleness)
	}
	return policy{
		control: "public, s-maxage=30, stale-while-revalidate=300",
		cdn:     "max-age=10, stale-while-revalidate=20, stale-if-error=" + strconv.FormatInt(int64(staleIfError/time.Second), 10),
	}
}
