package httpapi

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/httpapi/site"
)

// Public is the public API. Any goroutine may call ServeHTTP. Its owner calls Close once no request
// is being answered any more.
type Public struct {
	engine     *gin.Engine
	logger     *slog.Logger
	metrics    *metrics
	fixed      fixed
	listCache  policy
	checkCache policy
	admitter   admitter
	searches   *searches
	limit      *rateLimit // nil: none
	compressor *compressor
	bodies     buffers
	pages      *pages
	forms      uint8           // how many there are; fixed after construction
	site       *site.Site      // nil: none
	sitePaths  map[string]bool // of pages; fixed after construction
	outside
}

// NewPublic makes the public API. It fails only for a configuration that cannot be meant.
func NewPublic(cfg Config) (*Public, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	p := &Public{
		logger:     cfg.Logger,
		fixed:      newFixed(),
		listCache:  listPolicy(cfg.Health.MaxStaleness),
		checkCache: policy{cache: []string{"public, s-maxage=10"}},
		admitter:   admitter{health: cfg.Health, wait: maxMinWait},
		searches:   newSearches(cfg.Searches),
		limit:      newRateLimit(cfg.RateLimit, cfg.TrustedProxies),
		sitePaths:  map[string]bool{},
		engine:     newEngine(),
	}
	if p.logger == nil {
		p.logger = slog.New(slog.DiscardHandler)
	}
	if err := p.parts(cfg); err != nil {
		return nil, err
	}
	if err := p.routes(cfg); err != nil {
		return nil, err
	}
	return p, nil
}

// parts makes what the routes need and what a configuration can be wrong for.
func (p *Public) parts(cfg Config) (err error) {
	if p.compressor, err = newCompressor(); err != nil {
		return err
	}
	if p.pages, err = newPages(cfg.PageBytes); err != nil {
		return err
	}
	if p.site, err = newSite(cfg); err != nil {
		return err
	}
	p.metrics = newMetrics(cfg.Metrics, &p.admitter, p.searches, p.pages)
	return p.newOutside(cfg)
}

// ServeHTTP answers one request.
func (p *Public) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.engine.ServeHTTP(w, r) }

// listPolicy is how lists are cached (API contract, lists). A shared cache takes s-maxage for an
// order never to serve stale; CDN-Cache-Control takes that back for those that know it.
func listPolicy(maxStaleness time.Duration) policy {
	staleIfError := 86400
	if maxStaleness > 0 {
		staleIfError = int(maxStaleness / time.Second)
	}
	return policy{
		cache: []string{"public, s-maxage=30, stale-while-revalidate=300"},
		cdn:   []string{"max-age=30, stale-while-revalidate=300, stale-if-error=" + strconv.Itoa(staleIfError)},
	}
}

// newEngine is gin without what the contract has no room for: redirects, and trust in proxies.
func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // a switch of the process: else gin prints every route
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false
	_ = e.SetTrustedProxies(nil) // cannot fail for nil; addresses are found by rateLimit
	return e
}

// routes is the table of what exists. Everything is GET, so gin answers any other method on a
// path of the table through NoMethod, with Allow: GET, and every other path through NoRoute.
func (p *Public) routes(cfg Config) error {
	for _, l := range events.Lists() {
		p.get("/api/"+string(l), p.list(l))
	}
	p.get("/api/check", p.check())
	p.get("/api/donate/status", p.donation)
	p.get("/api/status", p.status)
	p.get(avatarRoute, p.avatar)
	if cfg.ProofsURL != "" {
		p.get("/proofs/:id", p.proofs(strings.TrimSuffix(cfg.ProofsURL, "/")))
	}
	p.engine.NoRoute(p.adapt("none", func(*gin.Context) error { return errNotFound }))
	p.engine.NoMethod(p.adapt("none", p.otherMethod))
	if err := p.siteRoutes(); err != nil {
		return err
	}
	return p.documents(cfg)
}

func (p *Public) documents(cfg Config) error {
	for path, body := range map[string][]byte{"/openapi.yaml": openAPI(cfg.BaseURL), "/asyncapi.yaml": cfg.AsyncAPI} {
		if body == nil {
			continue
		}
		d, err := newDocument(body, p.compressor)
		if err != nil {
			return err
		}
		d.kind = []string{"application/yaml; charset=utf-8"}
		p.get(path, p.document(d))
	}
	if p.site != nil {
		return p.siteDocuments(cfg)
	}
	return nil
}

func (p *Public) get(path string, h handler) { p.engine.GET(path, p.adapt(path, p.limited(h))) }
