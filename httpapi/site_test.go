package httpapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/site"
)

// serveSite starts a site whose data is up to date.
func serveSite(t testing.TB, mutate ...func(*Config)) *fixture {
	t.Helper()
	f := serve(t, append([]func(*Config){func(cfg *Config) {
		cfg.Site, cfg.AppealsURL = true, "https://appeals.example.org/"
	}}, mutate...)...)
	f.set(func(s *State) { s.AsOf = time.Now() })
	return f
}

// open asks for a page; unlike ask it holds nothing against openapi.yaml, in which no page is.
func (f *fixture) open(t testing.TB, method, target string, headers ...string) *answer {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+f.addr+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := f.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header}
	if a.raw, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	a.body = decoded(t, resp.Header.Get("Content-Encoding"), a.raw)
	return a
}

func sitePages() []string { return []string{"/", "/scammers", "/servers", "/legit"} }

// isPage wants a page of that status, with what every page has.
func isPage(t testing.TB, what string, a *answer, status int) {
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
		"/": true, "/?search=": true, "/?search=adam": false, "/?id=1": false, "/scammers": false, "/servers?sort=az": false, "/legit": false,
	} {
		a := f.open(t, http.MethodGet, target)
		isPage(t, target, a, http.StatusOK)
		if got := a.header.Get("X-Robots-Tag"); (got == "") != index || !index && got != "noindex, nofollow" {
			t.Errorf("%s: X-Robots-Tag %q", target, got)
		}
		want := "public, s-maxage=30, stale-while-revalidate=300"
		if strings.HasPrefix(target, "/?") || target == "/" {
			want = "public, s-maxage=10"
		}
		if got := a.header.Get("Cache-Control"); got != want {
			t.Errorf("%s: Cache-Control %q, want %q", target, got, want)
		}
		for _, name := range []string{"Registry-Sequence", "Registry-As-Of", "ETag", "Last-Modified"} {
			if len(a.header.Values(name)) != 1 {
				t.Errorf("%s: %s %q", target, name, a.header.Values(name))
			}
		}
	}
}

// A page that the reader holds is not sent again; its tag changes with the content, the banner and nothing else.
func TestPageTags(t *testing.T) {
	f := serveSite(t)
	for _, target := range append(sitePages(), "/?search=adam", "/scammers?sort=popular") {
		a := f.open(t, http.MethodGet, target)
		tag := a.header.Get("ETag")
		if !strings.Contains(tag, f.public.site.Version()) {
			t.Errorf("%s: the tag %s does not change with the site", target, tag)
		}
		for range 3 { // remembered from the second time on
			if b := f.open(t, http.MethodGet, target); b.header.Get("ETag") != tag || b.body != a.body {
				t.Errorf("%s: another page or tag", target)
			}
		}
		if b := f.open(t, http.MethodGet, target, "If-None-Match", tag, "Accept-Encoding", "identity"); b.status != http.StatusNotModified || b.body != "" {
			t.Errorf("%s: %d for a tag that is held", target, b.status)
		}
		z := f.open(t, http.MethodGet, target, "Accept-Encoding", "gzip")
		if z.body != a.body || z.header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: encoded %q", target, z.header.Get("Content-Encoding"))
		}
		f.set(func(s *State) { s.AsOf = time.Now().Add(-time.Hour) })
		if b := f.open(t, http.MethodGet, target, "If-None-Match", tag); b.status != http.StatusOK || b.header.Get("ETag") == tag {
			t.Errorf("%s: %d, tag %s although the data is an hour old", target, b.status, b.header.Get("ETag"))
		}
		f.set(func(s *State) { s.AsOf = time.Now() })
	}
	before := f.open(t, http.MethodGet, "/servers").header.Get("ETag")
	f.apply(events.Views{List: events.Servers, EntryID: "g1", Views: 99})
	if f.open(t, http.MethodGet, "/servers").header.Get("ETag") != before {
		t.Error("a view total changes the tag of a page that shows none")
	}
	f.apply(events.Delisting{List: events.Servers, EntryID: "g1"})
	if f.open(t, http.MethodGet, "/servers").header.Get("ETag") == before {
		t.Error("a delisted entry leaves the tag as it was")
	}
}

// Data that is older than a minute is said to be.
func TestPageBanner(t *testing.T) {
	f := serveSite(t)
	for _, target := range sitePages() {
		for age, hidden := range map[time.Duration]bool{time.Second: true, 50 * time.Second: true, 2 * time.Minute: false} {
			asOf := time.Now().Add(-age)
			f.set(func(s *State) { s.AsOf = asOf })
			a := f.open(t, http.MethodGet, target)
			if got := strings.Contains(a.body, `role="status" hidden>`); got != hidden {
				t.Errorf("%s, %v old: hidden %v", target, age, got)
			}
			if said := strings.Contains(a.body, asOf.UTC().Format(" 2006, 15:04 UTC")); said == hidden {
				t.Errorf("%s, %v old: the time is there: %v", target, age, said)
			}
		}
	}
}

// The parameters are the API's, and what the API refuses is refused by a page.
func TestPageParameters(t *testing.T) {
	f := serveSite(t)
	long, longID := strings.Repeat("ż", 101), strings.Repeat("1", 65)
	for query, status := range map[string]int{
		"search=": 200, "search=%20": 200, "unknown=1": 200, "search=<@1>": 200, "search=" + long[:200]: 200, "id=" + longID[:64]: 200,
		"search=" + long: 400, "search=%00": 400, "search=%FF": 400, "search=a&search=b": 400, "%zz": 400, "search=a;b": 400, "id=" + longID: 400,
		"x=" + strings.Repeat("x", 4096): 400,
	} {
		for _, path := range sitePages() {
			isPage(t, path+"?"+query, f.open(t, http.MethodGet, path+"?"+query), status)
		}
	}
	for query, status := range map[string]int{
		"limit=60&skip=20000&sort=za&status=risk&proofs=private": 200, "part=1": 200, "part=20": 200, "limit=": 200,
		"limit=0": 400, "limit=61": 400, "skip=20001": 400, "skip=-1": 400, "sort=x": 400, "status=x": 400, "proofs=x": 400, "part=0": 400, "part=21": 400, "part=x": 400,
	} {
		for _, path := range sitePages()[1:] {
			isPage(t, path+"?"+query, f.open(t, http.MethodGet, path+"?"+query), status)
		}
	}
	if a := f.open(t, http.MethodGet, "/", "Registry-Min-Sequence", "x"); a.status != http.StatusBadRequest {
		t.Errorf("a bad Registry-Min-Sequence: %d", a.status)
	}
}

// What is pasted is understood as the API understands it, and looked up in the same view.
func TestPagesShowWhatTheAPISays(t *testing.T) {
	f := serveSite(t)
	for query, want := range map[string]string{
		"search=zenon+%C5%82otr": "Uwaga: jest na liście oszustów", "search=<@!100000000000000001>": "Uwaga: jest na liście oszustów",
		"search=https://chat.example.org/users/100000000000000002": "Ostrożnie: jest na liście ryzyka",
		"search=ewa+zaufana": "Jest na liście zaufanych", "search=kowalski": "Nikogo nie znaleziono", "search=zen0n+lotr": "Podobna nazwa: to może być inna osoba",
		"id=300000000000000002": "Nikogo nie znaleziono", "search=%D1%81elina": "Podobna nazwa: to może być inna osoba",
	} {
		if a := f.open(t, http.MethodGet, "/?"+query); !strings.Contains(a.body, want) {
			t.Errorf("%s: %q is not said", query, want)
		}
	}
	if a := f.open(t, http.MethodGet, "/scammers?sort=az&limit=2"); !strings.Contains(a.body, "adam") || strings.Index(a.body, "adam") > strings.Index(a.body, "Celina") ||
		strings.Contains(a.body, "Zenon") {
		t.Error("/scammers?sort=az&limit=2 is not what the API says")
	}
}

// Unknown is never clean: while the model is loading, pages say so and ask again, and never "nobody".
func TestPagesWhileLoading(t *testing.T) {
	f := serveSite(t)
	f.set(func(s *State) { s.Ready = false })
	for _, target := range append(sitePages(), "/?search=kowalski") {
		a := f.open(t, http.MethodGet, target)
		isPage(t, target, a, http.StatusServiceUnavailable)
		if a.header.Get("Retry-After") != "5" || a.header.Get("Refresh") != "5" {
			t.Errorf("%s: Retry-After %q, Refresh %q", target, a.header.Get("Retry-After"), a.header.Get("Refresh"))
		}
		if strings.Contains(a.body, "Nikogo") || !strings.Contains(a.body, "Trwa wczytywanie danych") {
			t.Errorf("%s: %s", target, a.body)
		}
	}
	for _, a := range f.public.site.Assets() {
		if got := f.open(t, http.MethodGet, a.Path); got.status != http.StatusOK {
			t.Errorf("%s: %d", a.Path, got.status)
		}
	}
}

// People get their failures as pages, programs as JSON: below /api/, and on the paths of the API elsewhere.
func TestFailuresOfPages(t *testing.T) {
	f := serveSite(t)
	for _, path := range []string{"/nikt", "/scammers/", "/scammers/1", "/assets/", "/assets/site.css", "/API/scammers", "/proofs/", "/index.html", "/wp-login.php", "/%00"} {
		for _, method := range append(otherMethods(), http.MethodGet) {
			isPage(t, method+" "+path, f.open(t, method, path), http.StatusNotFound)
		}
	}
	for _, path := range sitePages() {
		for _, method := range otherMethods() {
			a := f.open(t, method, path+"?%zz")
			isPage(t, method+" "+path, a, http.StatusMethodNotAllowed)
			if a.header.Get("Allow") != "GET" {
				t.Errorf("%s %s: Allow %q", method, path, a.header.Get("Allow"))
			}
		}
	}
	for _, target := range []string{"/api/", "/api/nikt", "/api/scammers/"} {
		f.wantError(t, http.StatusNotFound, "Nie znaleziono.", http.MethodGet, target)
	}
	for _, target := range documented() {
		f.wantError(t, http.StatusMethodNotAllowed, "Metoda niedozwolona", http.MethodPost, target)
	}
}

// Without the site nothing of it is there.
func TestSiteOff(t *testing.T) {
	f := serve(t)
	s, err := site.New(site.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(sitePages(), s.Assets()[0].Path) {
		f.wantError(t, http.StatusNotFound, "Nie znaleziono.", http.MethodGet, path)
	}
}

// Assets may be kept for ever: their names hold a hash of what is in them.
func TestAssets(t *testing.T) {
	f := serveSite(t)
	home := f.open(t, http.MethodGet, "/").body + f.open(t, http.MethodGet, "/api").body
	for _, a := range f.public.site.Assets() {
		got := f.open(t, http.MethodGet, a.Path)
		if got.status != http.StatusOK || got.body != string(a.Body) || got.header.Get("Content-Type") != a.Type ||
			got.header.Get("Cache-Control") != "public, max-age=31536000, immutable" || !strings.Contains(home, a.Path) {
			t.Errorf("%s: %d %v", a.Path, got.status, got.header)
		}
	}
}

// The rate limit counts pages, and not what belongs to one.
func TestPagesAreLimited(t *testing.T) {
	f := serveSite(t, func(cfg *Config) { cfg.RateLimit = 0.001 })
	if a := f.open(t, http.MethodGet, "/"); a.status != http.StatusOK {
		t.Fatal(a.status)
	}
	isPage(t, "/scammers", f.open(t, http.MethodGet, "/scammers?%zz"), http.StatusTooManyRequests)
	if a := f.open(t, http.MethodGet, f.public.site.Assets()[0].Path); a.status != http.StatusOK {
		t.Errorf("an asset: %d", a.status)
	}
}

func BenchmarkPages(b *testing.B) {
	p := busyAPI(b, 30000)
	var err error
	if p.site, err = site.New(site.Config{AppealsURL: "https://appeals.example.org/", Proofs: true}); err != nil {
		b.Fatal(err)
	}
	if err := p.siteRoutes(); err != nil {
		b.Fatal(err)
	}
	b.Run("list", func(b *testing.B) { handle(b, p, "/scammers", http.StatusOK) })
	b.Run("list/new", func(b *testing.B) {
		for b.Loop() {
			p.pages.cache.InvalidateAll()
			p.ServeHTTP(&sink{header: http.Header{}}, mustRequest("/scammers"))
		}
	})
	b.Run("check/new", func(b *testing.B) {
		for b.Loop() {
			p.pages.cache.InvalidateAll()
			p.ServeHTTP(&sink{header: http.Header{}}, mustRequest("/?id=900000000000000007"))
		}
	})
}

func mustRequest(target string) *http.Request {
	r, _ := http.NewRequest(http.MethodGet, target, nil) // constant targets
	return r
}

// The parts of a long reason are different pages, remembered or not.
func TestPartsAreRemembered(t *testing.T) {
	f := serveSite(t)
	f.apply(events.Entry{List: events.Scammers, EntryID: "long", ChatID: "77", Name: "Długi", Reason: strings.Repeat("&", 20000),
		Verified: true, ReportID: "R-long", ReportedAt: asOf()})
	for range 3 {
		for part, want := range map[string]string{"1": "Część 1 z 3", "2": "Część 2 z 3", "3": "Część 3 z 3", "20": "Część 3 z 3"} {
			if a := f.open(t, http.MethodGet, "/scammers?id=77&part="+part); !strings.Contains(a.body, want) || len(a.body) > site.MaxPage {
				t.Errorf("part %s: %q is not said, %d bytes", part, want, len(a.body))
			}
		}
	}
}
