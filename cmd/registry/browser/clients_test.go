//go:build unix && !race

package browser

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
)

// front is the API as a page of another origin meets it.
type front struct {
	*httptest.Server

	mu      sync.Mutex
	asked   map[string]int // by method and path
	resumed string         // the last Last-Event-ID
	since   string         // the last parameter of that name
	broken  bool           // everything is 503
	held    chan struct{}  // nil, or closed to let responses go
}

func newFront(t *testing.T) *front {
	target, err := url.Parse(shared.site.HTTP)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of connections that the test cuts
	f := &front{asked: map[string]int{}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked[r.Method+" "+r.URL.Path]++
		if strings.HasSuffix(r.URL.Path, "/events") {
			f.resumed, f.since = r.Header.Get("Last-Event-ID"), r.FormValue("since")
		}
		broken, held := f.broken, f.held
		f.mu.Unlock()
		if held != nil {
			<-held
		}
		if broken { // as a server that is being started answers
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("Access-Control-Expose-Headers", "Registry-Error")
			w.Header().Set("Registry-Error", "not-ready")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func (f *front) set(broken bool, held chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken, f.held = broken, held
}

func (f *front) count(request string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[request]
}

func (f *front) followed() (resumed, since string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resumed, f.since
}

// elsewhere opens a page of another origin, whose scripts may ask f.
func elsewhere(t *testing.T, f *front) *tab {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><title>Elsewhere</title><link rel="icon" href="data:image/svg+xml;"><p>Elsewhere`)
	}))
	t.Cleanup(server.Close)
	tb := open(t, &registrytest.Server{HTTP: server.URL}, desk(false))
	tb.expect(f.URL)
	tb.get("/")
	return tb
}

// TestFollowerOfTheAPIPage: the page's program copies all lists, goes on where a connection was
// cut, and comes back after a 503, at which an EventSource ends.
func TestFollowerOfTheAPIPage(t *testing.T) {
	t.Parallel()
	page := open(t, shared.site, desk(false))
	page.get("/api")
	code := eval[string](page, `document.querySelector("[data-example=follow-js]").textContent`)
	f := newFront(t)
	ready := strings.NewReplacer(shared.site.HTTP, f.URL, "AGAIN = 5", "AGAIN = 0.05", "console.error(", "reasons.push(").Replace(code)
	tb := elsewhere(t, f)
	eval[any](tb, "const reasons = []; "+ready+"; 0")
	const isWhole = `fetch(API).then(a => a.json()).then(({entries: n}) => asOf > 0 && copy.size === n.scammers + n.servers + n.legit)`
	tb.until("asOf > 0")
	if !evalAsync[bool](tb, isWhole) {
		t.Errorf("the copy has %d entries", eval[int](tb, "copy.size"))
	}

	f.CloseClientConnections()
	for resumed := ""; resumed == ""; resumed, _ = f.followed() {
		tb.until("true")
	}
	if n := f.count("GET /api/changes"); n != 2 {
		t.Errorf("%d requests for the position, want the program's first one and the test's", n)
	}

	f.set(true, nil)
	f.CloseClientConnections()
	tb.until(`reasons.some(r => r.endsWith("/api/changes: 503 not-ready"))`)
	f.set(false, nil)
	eval[any](tb, "asOf = 0; copy.delete(copy.keys().next().value); 0") // what it does not get again
	tb.until("asOf > 0")
	if _, since := f.followed(); since == "0" || evalAsync[bool](tb, isWhole) {
		t.Errorf("since=%s: everything was fetched again", since)
	}
}

// TestBrowsersDoAsTheContractSays holds the contract's sentences about caching and CORS to a
// browser.
func TestBrowsersDoAsTheContractSays(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	tb := elsewhere(t, f)
	ask := func(path, options string) string {
		t.Helper()
		return evalAsync[string](tb, fmt.Sprintf(`fetch(%q, %s).then(a => a.text().then(() => a.status + (a.headers.get("Registry-Sequence") ? "" : " ?")), e => e.name)`, f.URL+path, options))
	}
	for _, c := range []struct {
		path, options, want string
		gets, preflights    int // of this path, from the beginning on
	}{
		{"/api/check?id=1", `{}`, "200", 1, 0},
		{"/api/check?id=1", `{}`, "200", 2, 0}, // revalidated by a 304, which the script does not see
		{"/api/check?id=1", `{headers: {"If-None-Match": "*"}}`, "304", 3, 1},
		{"/api/check?id=1", `{headers: {"If-None-Match": "*"}}`, "304", 4, 2},
		{"/api/check?id=1", `{credentials: "include"}`, "TypeError", 5, 2},
		{"/api/ranges/abc", `{}`, "200", 1, 0},
		{"/api/ranges/abc", `{}`, "200", 2, 0},
		{"/api/check/batch?ids=1,2", `{}`, "200", 1, 0},
		{"/api/check/batch?ids=1,2", `{}`, "200", 1, 0},
		{"/api/legit", `{headers: {"Registry-Min-Sequence": "1"}}`, "200", 1, 1},
		{"/api/legit", `{headers: {"Registry-Min-Sequence": "2"}}`, "200", 2, 1},
		{"/api/scammers", `{}`, "200", 1, 0},
		{"/api/scammers", `{cache: "no-cache"}`, "200", 2, 0},
	} {
		path, _, _ := strings.Cut(c.path, "?")
		got := ask(c.path, c.options)
		if gets, preflights := f.count("GET "+path), f.count("OPTIONS "+path); got != c.want || gets != c.gets || preflights != c.preflights {
			t.Errorf("%s %s: %s after %d requests and %d preflights, want %+v", c.path, c.options, got, gets, preflights, c)
		}
	}
	held := make(chan struct{}) // a list comes from the browser's own memory
	f.set(false, held)
	if got := ask("/api/scammers", `{}`); got != "200" {
		t.Error("a list that the browser has shown before:", got)
	}
	close(held)
}
