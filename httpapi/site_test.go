package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/upstream"
)

// serveSite starts a site whose data is up to date: in an hour it would still be.
func serveSite(t testing.TB, mutate ...func(*Config)) *fixture {
	t.Helper()
	f := serve(t, append([]func(*Config){func(cfg *Config) {
		cfg.Site = &site.Config{AppealsURL: "https://appeals.example.org/"}
	}}, mutate...)...)
	f.set(func(s *Readiness) { s.AsOf = time.Now().Add(time.Hour) })
	return f
}

// somebodysPage is the page of somebody in apitest.People.
const somebodysPage = "/wpis/servers/g1"

func sitePages() []string { return []string{"/", "/scammers", "/servers", "/legit"} }

// isPage wants a page of that status, with what every page has.
func isPage(t testing.TB, what string, a *response, status int) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: status %d, want %d", what, a.status, status)
	}
	for name, want := range map[string]string{
		"Content-Type":               "text/html; charset=utf-8",
		"X-Content-Type-Options":     "nosniff",
		"Referrer-Policy":            "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin",
		"Content-Security-Policy": "default-src 'none'; base-uri 'none'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; " +
			"img-src 'self'; script-src 'self'; style-src 'self'",
	} {
		if got := strings.Join(a.header.Values(name), "|"); got != want {
			t.Errorf("%s: %s: %q, want %q", what, name, got, want)
		}
	}
	if a.header.Get("Set-Cookie") != "" {
		t.Errorf("%s: a cookie", what)
	}
	if status >= 400 && a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: Cache-Control %q", what, a.header.Get("Cache-Control"))
	}
}

// Pages carry the headers of the answers that they show, and nobody's accusation is to be indexed.
func TestSitePageHeaders(t *testing.T) {
	f := serveSite(t)
	for target, index := range map[string]bool{
		"/": true, "/?search=": true, "/?search=adam": false, "/?id=1": false, "/scammers": false, "/servers?sort=az": false, "/legit": false, somebodysPage: false,
	} {
		a := f.fetch(t, http.MethodGet, target)
		isPage(t, target, a, http.StatusOK)
		if got := a.header.Get("X-Robots-Tag"); (got == "") != index || !index && got != "noindex, nofollow" {
			t.Errorf("%s: X-Robots-Tag %q", target, got)
		}
		want := "public, s-maxage=30, stale-while-revalidate=300"
		if strings.HasPrefix(target, "/?") || target == "/" || target == somebodysPage {
			want = "public, s-maxage=10"
		}
		if got := a.header.Get("Cache-Control"); got != want {
			t.Errorf("%s: Cache-Control %q, want %q", target, got, want)
		}
		for _, name := range []string{"Registry-Sequence", "Registry-As-Of", "ETag", "Last-Modified", "Server-Timing"} {
			if len(a.header.Values(name)) != 1 {
				t.Errorf("%s: %s %q", target, name, a.header.Values(name))
			}
		}
	}
}

// A page that the reader holds is not sent again; its tag changes with the content, the banner and nothing else.
func TestPageTags(t *testing.T) {
	f := serveSite(t)
	for _, target := range append(sitePages(), "/?search=adam", "/scammers?sort=popular", somebodysPage) {
		a := f.fetch(t, http.MethodGet, target)
		tag := a.header.Get("ETag")
		if !strings.Contains(tag, f.public.site.Version()) {
			t.Errorf("%s: the tag %s does not change with the site", target, tag)
		}
		for range 3 { // remembered from the second time on
			if b := f.fetch(t, http.MethodGet, target); b.header.Get("ETag") != tag || b.body != a.body {
				t.Errorf("%s: another page or tag", target)
			}
		}
		if b := f.fetch(t, http.MethodGet, target, "If-None-Match", tag, "Accept-Encoding", "identity"); b.status != http.StatusNotModified || b.body != "" {
			t.Errorf("%s: %d for a tag that is held", target, b.status)
		}
		z := f.fetch(t, http.MethodGet, target, "Accept-Encoding", "gzip")
		if z.body != a.body || z.header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: encoded %q", target, z.header.Get("Content-Encoding"))
		}
		f.set(func(s *Readiness) { s.AsOf = time.Now().Add(-time.Hour) })
		if b := f.fetch(t, http.MethodGet, target, "If-None-Match", tag); b.status != http.StatusOK || b.header.Get("ETag") == tag {
			t.Errorf("%s: %d, tag %s although the data is an hour old", target, b.status, b.header.Get("ETag"))
		}
		f.set(func(s *Readiness) { s.AsOf = time.Now().Add(time.Hour) })
	}
	before := f.fetch(t, http.MethodGet, "/servers").header.Get("ETag")
	f.apply(events.Views{Revision: 1, List: events.Servers, EntryID: "g1", Views: 99})
	if f.fetch(t, http.MethodGet, "/servers").header.Get("ETag") != before {
		t.Error("a view total changes the tag of a page that shows none")
	}
	f.apply(events.Delisting{Revision: 1, List: events.Servers, EntryID: "g1"})
	if f.fetch(t, http.MethodGet, "/servers").header.Get("ETag") == before {
		t.Error("a delisted entry leaves the tag as it was")
	}
}

// Data that is older than a minute is said to be.
func TestPageBanner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, withSite)
		for _, target := range append(sitePages(), somebodysPage) {
			for age, hidden := range map[time.Duration]bool{time.Second: true, staleAfter: true, staleAfter + 1: false} {
				asOf := time.Now().Add(-age)
				f.set(func(s *Readiness) { s.AsOf = asOf })
				a := f.fetch(t, http.MethodGet, target)
				if got := strings.Contains(a.body, `role="status" hidden>`); got != hidden {
					t.Errorf("%s, %v old: hidden %v", target, age, got)
				}

				// Reports on the page may have the same time of day, so only the banner's own counts.
				_, rest, _ := strings.Cut(a.body, `id="stan">`)
				stated, _, _ := strings.Cut(rest, "<")
				if said := strings.HasSuffix(stated, asOf.UTC().Format(" 2006, 15:04 UTC")); said == hidden {
					t.Errorf("%s, %v old: the time is there: %v", target, age, said)
				}
			}
		}
		f.set(func(s *Readiness) { s.AsOf = time.Time{} }) // unknown
		require.NotContains(t, f.fetch(t, http.MethodGet, somebodysPage).body, `role="status" hidden>`)
	})
}

// The parameters are the API's, and what the API refuses is refused by a page.
func TestPageParameters(t *testing.T) {
	f := serveSite(t)
	long, longID := strings.Repeat("ż", 101), strings.Repeat("1", 301)
	for query, status := range map[string]int{
		"search=": 200, "search=%20": 200, "unknown=1": 200, "search=<@1>": 200, "search=" + long[:200]: 200, "id=" + longID[:64]: 200,
		"search=%00": 400, "search=%FF": 400, "search=a&search=b": 400, "%zz": 400, "search=a;b": 400,
		"x=" + strings.Repeat("x", 4096): 400,
	} {
		for _, path := range sitePages() {
			isPage(t, path+"?"+query, f.fetch(t, http.MethodGet, path+"?"+query), status)
		}
	}
	isPage(t, "a long text", f.fetch(t, http.MethodGet, "/?search="+strings.Repeat("ż", 600)+"&id="+longID), http.StatusOK)
	for query, status := range map[string]int{
		"search=" + long: 400, "search=" + strings.Repeat("ż", 301): 400, "id=" + longID: 400, "limit=60&skip=20000&sort=za&status=risk&proofs=private": 200, "limit=": 200,
		"limit=0": 400, "limit=61": 400, "skip=20001": 400, "skip=-1": 400, "sort=x": 400, "status=x": 400, "proofs=x": 400,
	} {
		for _, path := range sitePages()[1:] {
			isPage(t, path+"?"+query, f.fetch(t, http.MethodGet, path+"?"+query), status)
		}
	}
	if a := f.fetch(t, http.MethodGet, "/", "Registry-Min-Sequence", "x"); a.status != http.StatusBadRequest {
		t.Errorf("a bad Registry-Min-Sequence: %d", a.status)
	}
}

// What the API understands is understood by the page, and looked up in the same view.
func TestPagesShowWhatTheAPISays(t *testing.T) {
	f := serveSite(t)
	for query, want := range map[string]string{
		"search=zenon+%C5%82otr": "Ostrożnie! Tę nazwę mają i osoby zgłoszone, i zaufane", "search=<@!100000000000000001>": "Uwaga! To konto jest na liście oszustów",
		"search=https://chat.example.org/users/100000000000000002": "Ostrożnie! To konto jest na liście ryzyka",
		"search=ewa+zaufana": "Sprawdź ID: taką nazwę ma osoba zaufana", "search=kowalski": "Tego nie możemy potwierdzić", "search=zen0n+lotr": "Ostrożnie! Ta nazwa przypomina nazwę z listy",
		"id=300000000000000002": "Czy na pewno to ID?", "id=777777770000000002": "Nie ma na żadnej liście", "search=%D1%81elina": "Ostrożnie! Ta nazwa przypomina nazwę z listy",
	} {
		if a := f.fetch(t, http.MethodGet, "/?"+query); !strings.Contains(a.body, want) {
			t.Errorf("%s: %q is not said", query, want)
		}
	}
	if a := f.fetch(t, http.MethodGet, "/scammers?sort=az&limit=2"); !strings.Contains(a.body, "adam") || strings.Index(a.body, "adam") > strings.Index(a.body, "Celina") ||
		strings.Contains(a.body, "Zenon") {
		t.Error("/scammers?sort=az&limit=2 is not what the API says")
	}
}

// Unknown is never clean: while the model is loading, pages say so and ask again, and never "nobody".
func TestPagesWhileLoading(t *testing.T) {
	f := serveSite(t)
	f.set(func(s *Readiness) { s.Ready = false })
	for _, target := range append(sitePages(), "/?search=kowalski", somebodysPage, "/wpis/scammers/nobody") {
		a := f.fetch(t, http.MethodGet, target)
		isPage(t, target, a, http.StatusServiceUnavailable)
		if a.header.Get("Retry-After") != "5" {
			t.Errorf("%s: Retry-After %q", target, a.header.Get("Retry-After"))
		}
		if strings.Contains(a.body, "Nie ma na") || !strings.Contains(a.body, "Trwa wczytywanie danych") {
			t.Errorf("%s: %s", target, a.body)
		}
	}
	for _, a := range f.public.site.Assets() {
		if got := f.fetch(t, http.MethodGet, a.Path); got.status != http.StatusOK {
			t.Errorf("%s: %d", a.Path, got.status)
		}
	}
}

// People get their failures as pages, programs as JSON: below /api/, and on the paths of the API elsewhere.
func TestFailuresOfPages(t *testing.T) {
	f := serveSite(t)
	for _, path := range []string{"/nikt", "/scammers/1/", "/scammers/1", "/assets/", "/assets/site.css", "/API/scammers", "/proofs/", "/index.html", "/wp-login.php", "/%00"} {
		for _, method := range append(otherMethods(), http.MethodGet) {
			isPage(t, method+" "+path, f.fetch(t, method, path), http.StatusNotFound)
		}
	}
	for _, path := range append(sitePages(), somebodysPage, "/wpis/scammers/nobody") {
		for _, method := range otherMethods()[1:] {
			a := f.fetch(t, method, path+"?%zz")
			isPage(t, method+" "+path, a, http.StatusMethodNotAllowed)
			if a.header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: Allow %q", method, path, a.header.Get("Allow"))
			}
		}
	}
}

// The page about the registry shows the operator's text, may be indexed, and needs no read model.
func TestAboutPage(t *testing.T) {
	f := serveSite(t, func(cfg *Config) { cfg.Site.About = "Prowadzi **Fundacja**.\n\n## Kontakt\n" })
	a := f.fetch(t, http.MethodGet, "/o-rejestrze?x=1")
	isPage(t, "/o-rejestrze", a, http.StatusOK)
	if !strings.Contains(a.body, "<strong>Fundacja</strong>") || a.header.Get("X-Robots-Tag") != "" || a.header.Get("Cache-Control") != "public, max-age=300" {
		t.Errorf("%v %s", a.header, a.body)
	}
	f.set(func(s *Readiness) { s.Ready = false })
	a = f.fetch(t, http.MethodGet, "/o-rejestrze")
	isPage(t, "while loading", a, http.StatusOK)
	if !strings.Contains(a.body, "Co zostaje po usunięciu wpisu") {
		t.Errorf("while loading: %s", a.body)
	}
}

// Without the site nothing of it is there.
func TestSiteOff(t *testing.T) {
	f := serve(t)
	for _, path := range append(sitePages(), somebodysPage, site.New(site.Config{}).Assets()[0].Path) {
		f.wantError(t, http.StatusNotFound, "Nie znaleziono.", http.MethodGet, path)
	}
}

// Assets may be kept forever: their names hold a hash of what is in them.
func TestAssets(t *testing.T) {
	f := serveSite(t)
	home := f.fetch(t, http.MethodGet, "/").body + f.fetch(t, http.MethodGet, "/boty").body + f.fetch(t, http.MethodGet, "/status").body
	for _, a := range f.public.site.Assets() {
		got := f.fetch(t, http.MethodGet, a.Path)
		if got.status != http.StatusOK || got.body != string(a.Body) || got.header.Get("Content-Type") != a.Type ||
			got.header.Get("Cache-Control") != "public, max-age=31536000, immutable" || !strings.Contains(home, a.Path) && !strings.HasPrefix(a.Path, "/assets/share-") { // which are for chats
			t.Errorf("%s: %d %v", a.Path, got.status, got.header)
		}
	}
}

// The rate limit counts pages, and not what belongs to one.
func TestPagesAreLimited(t *testing.T) {
	f := serveSite(t, func(cfg *Config) { cfg.RateLimit = 0.001 })
	if a := f.fetch(t, http.MethodGet, "/"); a.status != http.StatusOK {
		t.Fatal(a.status)
	}
	isPage(t, "/scammers", f.fetch(t, http.MethodGet, "/scammers?%zz"), http.StatusTooManyRequests)
	if a := f.fetch(t, http.MethodGet, f.public.site.Assets()[0].Path); a.status != http.StatusOK {
		t.Errorf("an asset: %d", a.status)
	}
}

func BenchmarkPages(b *testing.B) {
	p := busyAPI(b, 30000)
	p.addSite(Config{Site: &site.Config{AppealsURL: "https://appeals.example.org/"}, ProofsURL: "https://proofs.example.org/"})
	b.Run("list", func(b *testing.B) { handle(b, p, "/scammers", http.StatusOK) })
	b.Run("entry", func(b *testing.B) { handle(b, p, "/wpis/scammers/e0000007", http.StatusOK) })
	for name, target := range map[string]string{"entry": "/wpis/scammers/e0000007", "list": "/scammers", "check": "/?id=900000000000000007"} {
		b.Run(name+"/new", func(b *testing.B) {
			for b.Loop() {
				p.bodies.InvalidateAll()
				p.ServeHTTP(&sink{header: http.Header{}}, httptest.NewRequest(http.MethodGet, target, nil))
			}
		})
	}
}

func withSite(c *Config) { c.Site = &site.Config{} }

// The page shows the round that /api/status tells, also while the model is loading.
func TestStatusPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, withSite, func(c *Config) {
			c.Health.Readiness = func() Readiness { return Readiness{} }
			c.Status = upstream.StatusConfig{Database: func(context.Context) error { return nil }, Guard: "http://127.0.0.1:1"}
		})
		api, page := f.get(t, "/api/status"), f.fetch(t, http.MethodGet, "/status")
		_, stamp, _ := strings.Cut(api.body, `"checkedAt":"`)
		stamp, _, _ = strings.Cut(stamp, `"`)
		if page.status != http.StatusOK || !strings.Contains(page.body, `datetime="`+stamp+`"`) || strings.Count(page.body, `<li class="fails">`) != 2 || strings.Count(page.body, `<li class="unchecked">`) != 2 {
			t.Errorf("%s: %d %s", stamp, page.status, page.body)
		}
		if page.header.Get("Cache-Control") != "public, s-maxage=15" || page.header.Get("Content-Security-Policy") == "" {
			t.Errorf("%v", page.header)
		}
		if bad := f.fetch(t, http.MethodGet, "/status?a=%zz"); bad.status != http.StatusBadRequest || !strings.Contains(bad.body, "<!doctype html>") {
			t.Errorf("%d %s", bad.status, bad.body)
		}
	})
}

// The page names the address of the service: the configured one, or that of the request.
func TestAPIPageNamesTheAddress(t *testing.T) {
	t.Parallel()
	bare, based := serve(t, withSite), serve(t, withSite, func(c *Config) { c.BaseURL = "https://rejestr.example" })
	for _, c := range []struct {
		f                 *fixture
		host, proto, want string
	}{
		{bare, "", "", "http://" + bare.addr}, {bare, "rejestr.example:8443", "https", "https://rejestr.example:8443"},
		{bare, "[::1]:8080", "http", "http://[::1]:8080"}, {bare, "REJESTR.example", "ftp", "http://REJESTR.example"},
		{based, "other.example", "http", "https://rejestr.example"},
	} {
		req := httptest.NewRequest(http.MethodGet, "/api", nil)
		if req.Host = c.f.addr; c.host != "" {
			req.Host = c.host
		}
		if c.proto != "" {
			req.Header.Set("X-Forwarded-Proto", c.proto)
		}
		a := httptest.NewRecorder()
		c.f.public.ServeHTTP(a, req)
		if n := strings.Count(a.Body.String(), c.want+"/api/check?id="); n < 4 {
			t.Errorf("%q %q: %d times %s", c.host, c.proto, n, c.want)
		}
		cache := "private, max-age=300"
		if c.f == based {
			cache = "public, max-age=300"
		}
		if got := a.Header().Get("Cache-Control"); got != cache {
			t.Errorf("%q: Cache-Control %q", c.host, got)
		}
	}
}
