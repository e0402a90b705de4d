package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/respond"
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
	// MaxFollowers is how many clients may wait for changes at once. No client address, if it is
	// known, gets more than a quarter of that. Zero allows none.
	MaxFollowers int
	// AnswerMemory bounds the bytes of the responses that are being made or sent
	// (httpapi/CONTRACT.md#overload). Zero means respond.DefaultBudget.
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
	engine      *gin.Engine
	logger      *slog.Logger
	metrics     *metrics
	sender      *respond.Sender
	answers     *respond.Budget
	listCache   *respond.Policy
	checkCache  *respond.Policy
	feedCache   *respond.Policy
	gate        gate
	pollers     *pollers
	searches    *searches
	rankedIndex func() RankedIndex // returns nil while there is none
	limit       *rateLimit         // nil for no limit
	pictures    *rateLimit         // of avatars; nil for no limit
	preflight   gin.HandlerFunc
	bodies      *respond.Cache[query]
	routeCount  uint8 // of cacheable routes; fixed after construction
	upstreams   *upstream.Services
	site        *site.Site      // nil: none
	sitePaths   map[string]bool // of pages; fixed after construction
}

// NewPublic returns the public API, or an error for an invalid configuration.
func NewPublic(cfg Config) (*Public, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	logger := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	refused := newRefused()
	waitingPlaces := func(most int, kind string) *places { return newPlaces(most, kind, cfg.TrustedProxies, refused) }
	p := &Public{
		engine:      newEngine(),
		logger:      logger,
		listCache:   listPolicy(cfg.StaleIfError, cfg.Health.MaxStaleness),
		checkCache:  respond.Cached("public, s-maxage=10"),
		feedCache:   respond.Cached("public, s-maxage=5"),
		gate:        gate{health: cfg.Health, wait: maxMinWait, waiting: waitingPlaces(maxWaiting, "sequence")},
		pollers:     newPollers(cfg.Health, waitingPlaces(cfg.MaxFollowers, "changes")),
		searches:    newSearches(),
		answers:     respond.NewBudget(cfg.AnswerMemory),
		limit:       newRateLimit(1, cfg.RateLimit, cfg.TrustedProxies),
		preflight:   respond.NewPreflight(),
		sitePaths:   map[string]bool{},
		rankedIndex: cfg.Ranked,
	}
	if p.rankedIndex == nil {
		p.rankedIndex = func() RankedIndex { return nil }
	}
	var err error
	p.sender = respond.NewSender(p.answers, isAvatar)
	if p.bodies, err = respond.NewCache[query](respond.MaxBodies); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	p.metrics = newMetrics(cfg.Metrics, refused, &p.gate, p.searches, p.bodies, p.pollers, p.answers)
	cfg.Status.Database = databaseCheck(cfg.Status.Database, cfg.Health)
	p.upstreams, err = upstream.New(upstream.Config{Status: cfg.Status, Avatars: cfg.Avatars, UserAgent: cfg.UserAgent, Metrics: cfg.Metrics, Logger: p.logger})
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	if err := p.routes(cfg); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	return p, nil
}

// ServeHTTP serves one request.
func (p *Public) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.engine.ServeHTTP(w, r) }

// EndFollowing responds to all clients that wait for changes; later ones do not wait. Call it before
// shutting down the server, which waits for them.
func (p *Public) EndFollowing() { p.pollers.drain() }

// Close stops the probes, the calls to the platform and the watch for changes, and waits
// for these. The server waits for requests.
func (p *Public) Close() {
	p.pollers.close()
	p.upstreams.Close()
}

// Requests returns how many requests have arrived.
func (p *Public) Requests() uint64 { return p.metrics.begun.Load() }

// ConnectionRefused counts a connection that was closed (wire.Limits.Refused).
func (p *Public) ConnectionRefused(share bool) {
	if share {
		p.metrics.connections[1].Inc()
	} else {
		p.metrics.connections[0].Inc()
	}
}

// routes is the routing table. Everything is GET, and outside /api/ also HEAD: gin passes any other
// method on a path of the table to NoMethod, with Allow, and every other path to NoRoute.
func (p *Public) routes(cfg Config) error {
	for _, l := range events.Lists() {
		p.get("/api/"+string(l), p.list(l))
	}
	p.get("/api/check", p.check())
	p.get("/api/check/batch", p.batch())
	p.get("/api/ranges", p.ranges())
	p.get("/api/ranges/:prefix", p.rangeOf())
	p.get("/api/changes", p.feed)
	p.get("/api/changes/:epoch", p.changes())
	p.get("/api/search", p.ranked)
	p.get("/api/donate/status", p.donation)
	p.get("/api/status", p.status)
	// A page without its pictures looks broken, so they have a limit of their own.
	p.pictures = newRateLimit(bounds.MaxLimit, cfg.RateLimit, cfg.TrustedProxies)
	p.unlimited(avatars+":chatUserId", limitedBy(p.pictures, p.avatar))
	if cfg.ProofsURL != "" {
		p.get("/proofs/:id", proofs(strings.TrimSuffix(cfg.ProofsURL, "/")))
	}
	p.engine.NoRoute(p.adapt("none", func(*gin.Context) (respond.Response, error) { return respond.Response{}, errNotFound }))
	p.engine.NoMethod(p.adapt("none", p.otherMethod))
	p.apiDocuments(cfg)
	if cfg.Site {
		return p.siteRoutes(cfg)
	}
	return nil
}

func (p *Public) get(path string, h handler) { p.unlimited(path, limitedBy(p.limit, h)) }

// unlimited adds a path to the table without the rate limit of the others. Outside /api/ its
// handler also serves HEAD: net/http drops the body.
func (p *Public) unlimited(path string, h handler) {
	answer := p.adapt(path, h)
	p.engine.GET(path, answer)
	if !strings.HasPrefix(path, "/api/") {
		p.engine.HEAD(path, answer)
	}
}

// newEngine returns gin without features that the contract excludes: redirects, and trust in
// proxies.
func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // a switch of the whole process; in debug mode gin prints every route
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false
	_ = e.SetTrustedProxies(nil) // cannot fail for nil; rateLimit finds the client's address
	return e
}

// listPolicy returns how lists are cached (httpapi/CONTRACT.md#lists). To a shared cache s-maxage
// means never to serve stale responses; CDN-Cache-Control lifts that for caches that know it. Such
// a cache asks again after 10 s, since a response costs so little here. While a server responds, it
// shows no entry for longer than 30 s after its delisting.
func listPolicy(staleIfError, maxStaleness time.Duration) *respond.Policy {
	if maxStaleness > 0 {
		staleIfError = min(staleIfError, maxStaleness)
	}
	return &respond.Policy{
		Control: []string{"public, s-maxage=30, stale-while-revalidate=300"},
		CDN:     []string{"max-age=10, stale-while-revalidate=20, stale-if-error=" + strconv.FormatInt(int64(staleIfError/time.Second), 10)},
	}
}
