package httpapi

import (
	"cmp"
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

// Config configures the public API. Health is required, with its Reader and Readiness. Addresses have no trailing slash.
type Config struct {
	Health  *Health
	Logger  *slog.Logger          // of the server's own failures; nil drops them
	Metrics prometheus.Registerer // where NewPublic registers the metrics; nil for nowhere

	BaseURL   string // the service's public address, which /openapi.yaml names as its server; "" for "/"
	ProofsURL string // where /proofs/{id} redirects to; "" for no such path
	AsyncAPI  []byte // the content of /asyncapi.yaml; nil for no such path

	// Site configures the pages for people; nil for no pages. NewPublic sets its BaseURL and Proofs.
	Site *site.Config

	// RateLimit is how many requests a second each client address may make; as many may come in one burst. Zero means no limit.
	RateLimit float64

	// TrustedProxies are the proxies whose X-Forwarded-For names the client.
	TrustedProxies []netip.Prefix

	// StaleIfError is how long shared caches may serve an old list while no origin responds, in whole seconds. Health's
	// MaxStaleness bounds it. Zero means not at all.
	StaleIfError time.Duration

	MaxFollowers int   // clients that may wait for changes at once
	AnswerMemory int64 // bytes of the answers that are being made or sent (httpapi/CONTRACT.md#overload); 0 for 256 MiB

	Status    upstream.StatusConfig // the probes of /api/status
	Avatars   upstream.AvatarConfig // where pictures of users come from; the zero value generates all
	UserAgent string                // names this service to the chat platform

	// Ranked returns the index of ranked search, or nil while there is none. If Ranked is nil, there never is one.
	Ranked func() RankedIndex
}

// Public is the public API. Any goroutine may call ServeHTTP. Its owner calls Close after the last request has been served.
type Public struct {
	engine  *gin.Engine
	logger  *slog.Logger
	metrics *metrics
	health  *Health

	// How answers are cached and sent.
	listCache policy
	bodies    *otter.Cache[bodyKey, encodedBody]
	gzips     gzips
	preflight gin.HandlerFunc

	// The bounds.
	memory          *memory
	searches        *turns
	sequenceWaiting places
	polls           *polls
	limit           *rateLimit // nil for no limit

	// Where answers come from besides the read model.
	rankedIndex func() RankedIndex // returns nil while there is none
	upstreams   *upstream.Services
	site        *site.Site // nil: none
}

// NewPublic returns the public API. It fails if gin refuses a network of TrustedProxies.
func NewPublic(cfg Config) (*Public, error) {
	p := &Public{
		logger:    cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		metrics:   newMetrics(),
		health:    cfg.Health,
		listCache: listPolicy(cfg.StaleIfError, cfg.Health.MaxStaleness),
		bodies:    newKeptBodies(),
		preflight: cors.New(cors.Config{AllowAllOrigins: true, AllowMethods: []string{http.MethodGet}, AllowHeaders: []string{"*"},
			MaxAge: 24 * time.Hour}),
		memory:          newMemory(cfg.AnswerMemory),
		searches:        newTurns(),
		sequenceWaiting: newPlaces(maxSequenceWaiting),
		limit:           newRateLimit(1, cfg.RateLimit),
		rankedIndex:     cfg.Ranked,
	}

	if p.rankedIndex == nil {
		p.rankedIndex = func() RankedIndex { return nil }
	}

	cfg.Status.Database = databaseCheck(cfg.Status.Database, cfg.Health)
	p.upstreams = upstream.New(upstream.Config{Status: cfg.Status, Avatars: cfg.Avatars, UserAgent: cfg.UserAgent, Metrics: cfg.Metrics, Logger: p.logger})
	if err := p.addRoutes(cfg); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}

	// From here on the feed is watched, until Close.
	p.polls = newPolls(cfg.Health.Reader, cfg.MaxFollowers)
	if cfg.Metrics != nil {
		p.metrics.register(cfg.Metrics, p)
	}
	return p, nil
}

// ServeHTTP serves one request.
func (p *Public) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.engine.ServeHTTP(w, r) }

// EndFollowing ends all waits for changes, so that these requests are answered. Later requests do not wait. Call it before
// shutting down the server, since the shutdown waits for all answers.
func (p *Public) EndFollowing() { p.polls.end() }

// Close stops the probes, the calls to the platform and the watch for changes, and returns when all have ended. Close does not
// wait for requests: the shutdown of the server has done so.
func (p *Public) Close() {
	p.polls.close()
	p.upstreams.Close()
}

// ConnectionRefused counts a connection that LimitConnections has refused.
func (p *Public) ConnectionRefused() { p.metrics.refused.Inc() }

// addRoutes makes the routing table. If a path does not have the method of a request, gin sets Allow and calls the handler of
// NoMethod. If the table lacks the path, gin calls the handler of NoRoute.
func (p *Public) addRoutes(cfg Config) error {
	gin.SetMode(gin.ReleaseMode) // for the whole process: in debug mode gin prints every route
	p.engine = gin.New()
	p.engine.HandleMethodNotAllowed = true
	p.engine.RedirectTrailingSlash = false
	p.engine.RemoteIPHeaders = []string{"X-Forwarded-For"}
	if err := p.engine.SetTrustedProxies(namesOf(cfg.TrustedProxies)); err != nil {
		return err
	}

	p.engine.Use(p.metrics.count, gin.CustomRecoveryWithWriter(nil, p.recoverPanic))
	p.engine.NoRoute(p.serve(noRoute, nil, func(*exchange) error { return errNotFound }))
	p.engine.NoMethod(p.serve(noRoute, nil, serveOtherMethod))

	for _, l := range events.Lists() {
		p.add("/api/"+string(l), p.limit, serveList(l))
	}
	p.add("/api/check", p.limit, serveCheck)
	p.add("/api/check/batch", p.limit, serveBatch)
	p.add("/api/ranges", p.limit, serveRanges)
	p.add("/api/ranges/:prefix", p.limit, serveRange)
	p.add("/api/changes", p.limit, serveFeed)
	p.add("/api/changes/:epoch", p.limit, serveChanges)
	p.add("/api/search", p.limit, serveRanked)
	p.add("/api/donate/status", p.limit, serveDonation)
	p.add("/api/status", p.limit, serveStatus)

	// A page shows up to MaxLimit pictures and looks broken without them, so their limit is MaxLimit times as high.
	p.add(avatarPath+":chatUserId", newRateLimit(bounds.MaxLimit, cfg.RateLimit), serveAvatar)

	if cfg.ProofsURL != "" {
		p.add("/proofs/:id", p.limit, serveProofs(cfg.ProofsURL))
	}

	const (
		media        = "application/yaml; charset=utf-8"
		cacheControl = "public, max-age=300"
	)
	p.add("/openapi.yaml", p.limit, serveDocument(media, cacheControl, openAPI(cfg.BaseURL)))
	if cfg.AsyncAPI != nil {
		p.add("/asyncapi.yaml", p.limit, serveDocument(media, cacheControl, cfg.AsyncAPI))
	}

	if cfg.Site != nil {
		p.addSite(cfg)
	}
	return nil
}

// add adds a path to the table. Outside /api/ the handler also serves HEAD; net/http drops the body.
func (p *Public) add(path string, limit *rateLimit, h handler) {
	serve := p.serve(path, limit, h)
	p.engine.GET(path, serve)
	if !strings.HasPrefix(path, "/api/") {
		p.engine.HEAD(path, serve)
	}
}

func namesOf(networks []netip.Prefix) (names []string) {
	for _, n := range networks {
		names = append(names, n.String())
	}
	return names
}

// serveOtherMethod answers a method that the path does not have: 204 to a preflight, 405 to the rest (httpapi/CONTRACT.md#cors).
//
// gin-contrib/cors serves only preflights. In other answers, it would set Access-Control-Allow-Origin only if the Origin is
// foreign. A shared cache could then send an answer without that header to everybody.
func serveOtherMethod(x *exchange) error {
	isPreflight := x.c.Request.Method == http.MethodOptions && x.c.GetHeader("Origin") != ""
	if !isPreflight {
		return errMethod
	}

	h := x.c.Writer.Header()
	h.Del("Allow") // gin has set it
	setCommonHeaders(h, x.c.Request.URL.Path)
	x.c.Status(http.StatusNoContent)
	x.api.preflight(x.c)
	x.c.Writer.WriteHeaderNow()
	return nil
}

// recoverPanic answers a request whose handler has panicked.
func (p *Public) recoverPanic(c *gin.Context, value any) {
	x := &exchange{api: p, c: c, began: time.Now(), took: p.metrics.seconds.WithLabelValues(routeOf(c))}
	x.fail(fmt.Errorf("panic: %v\n%s", value, debug.Stack()))
}

var checkCache = policy{control: "public, s-maxage=10"}

// listPolicy returns the cache policy of lists (httpapi/CONTRACT.md#lists): no shared cache shows an entry longer than 30 s after
// its delisting, while a server responds. A cache that knows CDN-Cache-Control asks again after 10 s, and may serve the old answer
// for another 20 s, or for staleIfError while no server responds. Other caches ask again after 30 s.
func listPolicy(staleIfError, maxStaleness time.Duration) policy {
	if maxStaleness > 0 {
		staleIfError = min(staleIfError, maxStaleness)
	}
	return policy{
		control: "public, s-maxage=30, stale-while-revalidate=300",
		cdn:     "max-age=10, stale-while-revalidate=20, stale-if-error=" + strconv.FormatInt(int64(staleIfError/time.Second), 10),
	}
}
