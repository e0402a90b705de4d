package httpapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/httpapi/internal/bounds"
)

// Lists and look-ups by id do not wait for searches. One search runs for each CPU but one; so
// many wait, and the others are refused at once.
func TestSearchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, withSite)
		busy := newTurns()
		for range max(runtime.GOMAXPROCS(0)-1, 1) {
			require.NoError(t, busy.take(t.Context()))
		}
		require.False(t, busy.free.TryAcquire(1), "a CPU is left for everything else")
		began := time.Now()
		require.Equal(t, errBusy, busy.take(t.Context()))
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, 64, cap(busy.waiting))

		f.boundSearches(2)
		require.NoError(t, f.public.searches.take(t.Context()))
		got := make(chan *response)
		for _, target := range []string{"/api/scammers?search=adam", "/api/check?search=adam"} {
			go func() { got <- f.get(t, target) }()
		}
		synctest.Wait()
		require.Len(t, f.public.searches.waiting, 2)
		a := f.wantError(t, http.StatusServiceUnavailable, "Serwer jest przeciążony.", http.MethodGet, "/api/legit?search=adam")
		require.Equal(t, "1", a.header.Get("Retry-After"))
		for _, target := range []string{"/?search=adam", "/?search=111111111111111111,222222222222222222", "/?search=111111111111111111&id=222222222222222222"} {
			require.Equal(t, http.StatusServiceUnavailable, f.fetch(t, http.MethodGet, target).status, target)
		}
		for _, target := range []string{"/api/scammers", "/api/scammers?id=1&search=adam", "/api/check?id=1", "/api/check?search=<@1>",
			"/", "/?id=111111111111111111", "/?search=<@111111111111111111>"} {
			require.Equal(t, http.StatusOK, f.fetch(t, http.MethodGet, target).status, "%s waited for a search", target)
		}
		f.public.searches.leave()
		for range 2 {
			require.Equal(t, http.StatusOK, (<-got).status)
		}
	})
}

// long adds entries whose reasons are as long as an event allows.
func long(f *fixture, n int) (ids []string) {
	var data []events.Data
	for i := range n {
		id := fmt.Sprint(880000000000000000 + i)
		ids = append(ids, id)
		data = append(data, events.Entry{Revision: 1, List: events.Scammers, EntryID: fmt.Sprint("long", i), ChatID: id, Name: fmt.Sprint("Long ", i),
			Reason: strings.Repeat("<b> & ", 3300), ReportID: "r", ReportedAt: apitest.AsOf()})
	}
	f.apply(data...)
	return ids
}

// Clients that ask for the largest answers and take nothing hold no more memory than there is for answers, and what does not
// fit is 503 at once. Every byte is given back.
func TestSilentReadersHoldABudget(t *testing.T) {
	const budget = 32 << 20
	f := serve(t, func(c *Config) { c.AnswerMemory = budget }, withSite)
	ids := long(f, 100)
	targets := []string{
		"/api/scammers?limit=60", "/api/check/batch?ids=" + strings.Join(ids, ","), "/scammers?limit=60", "/api/check?search=Long",
		"/api/search?limit=60&q=Long", "/szukaj?limit=60&q=Long", changesOf + "?limit=1000&since=0", "/api/scammers?limit=60&sort=oldest",
	}
	var silent []net.Conn
	a := &response{status: http.StatusOK}
	for a.status == http.StatusOK {
		for range 8 {
			c := f.dial(t)
			silent = append(silent, c)
			_ = c.SetReadBuffer(4 << 10)
			n := len(silent)
			_, err := fmt.Fprintf(c, "GET %s&x=%d HTTP/1.1\r\nHost: x\r\nAccept-Encoding: %s\r\n\r\n", targets[n%len(targets)], n, []string{"identity", "gzip"}[n/8%2])
			require.NoError(t, err)
		}
		require.LessOrEqual(t, f.public.memory.used.Load(), int64(budget))
		require.Less(t, len(silent), 2000, "nothing is refused")
		a = f.fetch(t, http.MethodGet, fmt.Sprint(targets[1], "&x=another", len(silent)))
	}
	require.Equal(t, "503 overloaded 1", fmt.Sprint(a.status, " ", a.header.Get(errorHeader), " ", a.header.Get("Retry-After")))
	require.Greater(t, f.public.memory.used.Load(), int64(budget/2))

	for _, c := range silent {
		_ = c.Close()
	}
	eventstest.Until(t, func() bool { return f.public.memory.used.Load() == 0 })
	for _, target := range append(targets, "/szukaj", "/api/check?id=1", "/api/nothing", "/openapi.yaml", "/", "/api/chat/avatar/1") {
		for _, encoding := range []string{"identity", "gzip"} {
			a := f.fetch(t, http.MethodGet, target, "Accept-Encoding", encoding)
			f.fetch(t, http.MethodGet, target, "Accept-Encoding", encoding, "If-None-Match", a.header.Get("Etag"))
		}
	}
	for range 20 { // clients that leave in the middle
		c := f.dial(t)
		_, err := io.WriteString(c, "GET /api/scammers?limit=60 HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		_, _ = c.Read(make([]byte, 100))
		_ = c.Close()
	}
	eventstest.Until(t, func() bool { return f.public.memory.used.Load() == 0 })
}

func prefixes(t testing.TB, texts ...string) (out []netip.Prefix) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		require.NoError(t, err)
		out = append(out, p)
	}
	return out
}

// Each client has an allowance of its own, one second's worth at once. A client is what a trusted proxy names, whatever the
// client itself writes to the left of it; a /64 is one client, and the memory of clients is bounded.
func TestRateLimit(t *testing.T) {
	f := serve(t, func(c *Config) { c.RateLimit, c.TrustedProxies = 0.001, prefixes(t, "192.0.2.0/24", "2001:db8:1::/48") })
	ask := func(peer string, forwarded ...string) int {
		r := httptest.NewRequest(http.MethodGet, "/api/scammers", nil)
		r.RemoteAddr = peer
		r.Header["X-Forwarded-For"] = forwarded
		w := httptest.NewRecorder()
		f.public.ServeHTTP(w, r)
		return w.Code
	}
	const proxy = "192.0.2.1:1"
	for _, c := range []struct {
		peer      string
		forwarded []string
		want      int
	}{
		{"203.0.113.7:1", nil, 200}, {"203.0.113.7:2", nil, 429}, {"203.0.113.7:1", []string{"198.51.100.99"}, 429}, // not a proxy of ours: it may claim anything
		{proxy, []string{"198.51.100.1"}, 200}, {proxy, []string{"198.51.100.1"}, 429}, {proxy, []string{"10.0.0.1, 198.51.100.1"}, 429},
		{proxy, []string{"203.0.113.200", "198.51.100.1,192.0.2.7", " 192.0.2.9 "}, 429}, {"[2001:db8:1::5]:1", []string{"198.51.100.1"}, 429},
		{proxy, []string{"198.51.100.2"}, 200}, {proxy, []string{"2001:db8:2::1"}, 200}, {proxy, []string{"2001:db8:2::2"}, 429}, {proxy, []string{"2001:db8:2:1::2"}, 200},
	} {
		require.Equal(t, c.want, ask(c.peer, c.forwarded...), "%+v", c)
	}

	l := newRateLimit(1, 1)
	for i := range maxClients + 10 {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)
		c := gin.CreateTestContextOnly(httptest.NewRecorder(), f.public.engine)
		c.Request = r
		require.NoError(t, l.allow(c))
	}
	l.clients.CleanUp()
	require.LessOrEqual(t, l.clients.EstimatedSize(), maxClients)
	require.Nil(t, newRateLimit(1, 0))
}

// Over HTTP: documented paths count, pictures by themselves, unknown ones do not.
func TestRateLimitOverHTTP(t *testing.T) {
	f := serve(t, func(c *Config) {
		c.RateLimit, c.TrustedProxies = 1e-6, prefixes(t, "127.0.0.0/8") // nobody is allowed a second request while the test runs
	})
	for i, target := range documented() {
		client := []string{"X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i)}
		f.get(t, "/nope", client...)
		require.NotEqual(t, http.StatusTooManyRequests, f.get(t, target+"?id=1", client...).status, target)
		wait := "1000000"
		if strings.HasPrefix(target, avatarPath) { // a page has many
			wait = "16667"
			for range bounds.MaxLimit - 1 {
				if a := f.get(t, target+"?id=1", client...); a.status != http.StatusOK {
					require.Equal(t, http.StatusTooManyRequests, a.status)
					break
				}
			}
		}
		a := f.wantError(t, http.StatusTooManyRequests, "Zbyt wiele zapytań.", http.MethodGet, target+"?id=1", client...)
		require.Equal(t, wait, a.header.Get("Retry-After"), target)
	}
}
