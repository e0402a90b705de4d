package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/httpapi/internal/bounds"
)

func positioned() []string {
	return []string{"/api/scammers", "/api/servers", "/api/legit", "/api/check?id=1", "/api/donate/status?id=d-1"}
}

// Promise 7 (readmodel/doc.go): before the model has caught up nobody is told that a list is empty.
func TestNotReady(t *testing.T) {
	f := serve(t)
	f.set(func(s *Readiness) { s.Ready = false })
	for _, target := range positioned() {
		a := f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, target, "If-None-Match", "*")
		if a.header.Get("Retry-After") != "5" || a.header.Get("Registry-Sequence") != "" {
			t.Errorf("%s: %v", target, a.header)
		}
	}
	f.set(func(s *Readiness) { s.Ready = true })
	if a := f.get(t, "/api/scammers"); a.status != http.StatusOK {
		t.Errorf("ready: %d", a.status)
	}
}

func TestMaxStaleness(t *testing.T) {
	f := serve(t, func(c *Config) { c.Health.MaxStaleness = time.Hour })
	for _, c := range []struct {
		asOf   time.Time
		status int
	}{
		{time.Now().Add(-2 * time.Hour), http.StatusServiceUnavailable},
		{time.Time{}, http.StatusServiceUnavailable},
		{time.Now().Add(-30 * time.Minute), http.StatusOK},
		{time.Now().Add(time.Hour), http.StatusOK},
	} {
		f.set(func(s *Readiness) { s.AsOf = c.asOf })
		for _, target := range positioned() {
			if a := f.get(t, target); a.status != c.status {
				t.Errorf("as of %v: %s: %d, want %d", c.asOf, target, a.status, c.status)
			}
		}
	}
}

// What all lists of the fixture show together is enough, and one more is not.
func TestMinEntries(t *testing.T) {
	for least, status := range map[int]int{apitest.Shown(): http.StatusOK, apitest.Shown() + 1: http.StatusServiceUnavailable} {
		f := serve(t, func(c *Config) { c.Health.MinEntries = least })
		for _, target := range positioned() {
			if a := f.get(t, target); a.status != status {
				t.Errorf("at least %d: %s: %d, want %d", least, target, a.status, status)
			}
		}
	}
}

func TestMinSequenceValues(t *testing.T) {
	f := serve(t)
	for _, target := range positioned() {
		for _, bad := range []string{"x", "-1", "+1", "1.0", "1e1", "0x1", "1 2", "18446744073709551616", "٣", "1,2", `"1"`} {
			f.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: Registry-Min-Sequence.", http.MethodGet, target, minSeqHeader, bad)
		}
		f.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: Registry-Min-Sequence.", http.MethodGet, target,
			minSeqHeader, "1", minSeqHeader, "1")
		for _, reached := range []string{"0", apitest.Sequence(0), strings.Repeat("0", 23) + apitest.Sequence(0)} {
			a := f.get(t, target, minSeqHeader, reached)
			if a.status != http.StatusOK || a.header.Get("Cache-Control") != "no-store" || a.header.Get("CDN-Cache-Control") != "" {
				t.Errorf("%s at least %s: %d %v", target, reached, a.status, a.header)
			}
		}
		if a := f.get(t, target, minSeqHeader, " "); a.status != http.StatusOK {
			t.Errorf("%s: an empty header: %d", target, a.status)
		}
	}
	a := f.get(t, "/api/scammers", minSeqHeader, apitest.Sequence(0), "If-None-Match", "*")
	if a.status != http.StatusNotModified || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("conditional: %d %v", a.status, a.header)
	}
}

// An answer at a sequence waits for it and is never older.
func TestMinSequenceWaits(t *testing.T) {
	f := serve(t)
	got := make(chan *response)
	go func() { got <- f.get(t, "/api/donate/status?id=d-1", minSeqHeader, apitest.Sequence(1)) }()
	eventstest.Until(t, func() bool { return f.public.gate.waiting.count() == 1 })
	f.apply(apitest.People()[0])
	if a := <-got; a.status != http.StatusOK || a.header.Get("Registry-Sequence") != apitest.Sequence(1) {
		t.Errorf("%d %v", a.status, a.header)
	}
	if n := f.public.gate.waiting.count(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

func TestMinSequenceTimesOut(t *testing.T) {
	f := serve(t)
	if f.public.gate.wait != 2*time.Second {
		t.Errorf("waits up to %v", f.public.gate.wait)
	}
	f.public.gate.wait = time.Millisecond
	for _, target := range positioned() {
		a := f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, target, minSeqHeader, "18446744073709551615")
		if got := a.header.Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After %q", got)
		}
	}
}

// Frozen, waiting is useless: the answer is immediate. A long wait would exceed the test's time.
func TestMinSequenceFrozen(t *testing.T) {
	f := serve(t)
	f.public.gate.wait = time.Hour
	f.set(func(s *Readiness) { s.Frozen = true })
	f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, "/api/scammers", minSeqHeader, apitest.Sequence(1))
	if a := f.get(t, "/api/scammers", minSeqHeader, apitest.Sequence(0)); a.status != http.StatusOK {
		t.Errorf("a sequence already reached: %d", a.status)
	}
	if a := f.get(t, "/api/scammers"); a.status != http.StatusOK {
		t.Errorf("frozen: %d", a.status)
	}
}

// At most 256 wait; who has reached his sequence does not.
func TestMinSequenceCrowd(t *testing.T) {
	f := serve(t)
	p := f.public.gate.waiting
	p.most = 0
	a := f.wantError(t, http.StatusServiceUnavailable, "Serwer jest przeciążony.", http.MethodGet, "/api/scammers", minSeqHeader, apitest.Sequence(1))
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("%v", a.header)
	}
	if a := f.get(t, "/api/scammers", minSeqHeader, apitest.Sequence(0)); a.status != http.StatusOK {
		t.Errorf("reached: %d", a.status)
	}
	p.most = 1
	got := make(chan *response)
	go func() { got <- f.get(t, "/api/scammers", minSeqHeader, apitest.Sequence(1)) }()
	eventstest.Until(t, func() bool { return p.count() == 1 })
	f.apply(apitest.People()[0])
	if a := <-got; a.status != http.StatusOK {
		t.Errorf("the 256th: %d", a.status)
	}
	if maxWaiting != 256 {
		t.Errorf("%d may wait", maxWaiting)
	}
}

// A reader that is gone stops waiting, for a sequence and for a search.
func TestReaderGoesAway(t *testing.T) {
	f := serve(t)
	f.boundSearches(64, time.Hour)
	f.public.gate.wait = time.Hour
	leave, err := f.public.searches.enter(t.Context(), true)
	require.NoError(t, err)
	defer leave()
	for request, waiting := range map[string]func() int{
		"/api/scammers HTTP/1.1\r\n" + minSeqHeader + ": 99\r\n": f.public.gate.waiting.count,
		"/api/scammers?search=adamek HTTP/1.1\r\n":               f.public.searches.count,
	} {
		conn := f.dial(t)
		_, err := io.WriteString(conn, "GET "+request+"Host: x\r\n\r\n")
		require.NoError(t, err)
		eventstest.Until(t, func() bool { return waiting() == 1 })
		_ = conn.SetLinger(0) // Close resets
		_ = conn.Close()
		eventstest.Until(t, func() bool { return waiting() == 0 })
	}
}

// Promise 5 (readmodel/doc.go): lists and look-ups by id do not wait for searches.
func TestSearchesAreBounded(t *testing.T) {
	f := serve(t)
	f.boundSearches(2, time.Hour)
	leave, err := f.public.searches.enter(t.Context(), true)
	require.NoError(t, err)
	got := make(chan *response)
	for _, target := range []string{"/api/scammers?search=adam", "/api/check?search=adam"} {
		go func() { got <- f.get(t, target) }()
	}
	eventstest.Until(t, func() bool { return f.public.searches.count() == 2 })
	a := f.wantError(t, http.StatusServiceUnavailable, "Serwer jest przeciążony.", http.MethodGet, "/api/legit?search=adam")
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("%v", a.header)
	}
	for _, target := range []string{"/api/scammers", "/api/scammers?id=1&search=adam", "/api/check?id=1", "/api/check?search=<@1>"} {
		if a := f.get(t, target); a.status != http.StatusOK {
			t.Errorf("%s waited for a search: %d", target, a.status)
		}
	}
	leave()
	for range 2 {
		if a := <-got; a.status != http.StatusOK {
			t.Errorf("a search that waited: %d", a.status)
		}
	}
}

// A person check takes its turn as a search does, unless the API looks up an id for it.
func TestPersonChecksAreBounded(t *testing.T) {
	f := serveSite(t)
	f.boundSearches(0, 0)
	leave, err := f.public.searches.enter(t.Context(), true)
	require.NoError(t, err)
	for query, want := range map[string]int{
		"search=111111111111111111":    http.StatusServiceUnavailable,
		"id=111111111111111111":        http.StatusOK,
		"search=<@111111111111111111>": http.StatusOK,
		"":                             http.StatusOK,
		"search=adam":                  http.StatusServiceUnavailable,
		"search=111111111111111111,222222222222222222": http.StatusServiceUnavailable,
		"id=adam": http.StatusOK,
		"search=111111111111111111&id=222222222222222222": http.StatusServiceUnavailable,
	} {
		a := f.fetch(t, http.MethodGet, "/?"+query)
		if a.status != want || want != http.StatusOK && a.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d %v, want %d", query, a.status, a.header, want)
		}
	}
	leave()
	if a := f.fetch(t, http.MethodGet, "/?search=adam"); a.status != http.StatusOK {
		t.Errorf("after the turn: %d", a.status)
	}
}

func TestSearchWaitIsBounded(t *testing.T) {
	s := newSearches()
	s.most, s.wait = 1, time.Nanosecond
	leave, err := s.enter(t.Context(), true)
	require.NoError(t, err)
	if _, err := s.enter(t.Context(), true); err != errBusy {
		t.Errorf("got %v", err)
	}
	leave()
	if leave, err = s.enter(t.Context(), true); err != nil {
		t.Errorf("after the first left: %v", err)
	}
	leave()
}

// More searches than may wait are overload: those that have waited for long are refused, too, and
// then as many run as leave a CPU free, and as many wait, until nothing had to be refused for
// a while.
func TestSearchOverload(t *testing.T) {
	s := &searches{most: 2, limit: 3, wait: time.Hour}
	results := make(chan error)
	var leaves []func()
	enter := func() {
		leave, err := s.enter(t.Context(), true)
		if err == nil {
			s.mu.Lock()
			leaves = append(leaves, leave)
			s.mu.Unlock()
		}
		results <- err
	}
	expect := func(what string, want error, n int) {
		t.Helper()
		for range n {
			if err := <-results; err != want {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
	}
	count := func(running, waiting int) {
		t.Helper()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running != running || len(s.queue) != waiting || s.waiting.Load() != int64(waiting) {
			t.Errorf("%d run and %d wait (%d), want %d and %d", s.running, len(s.queue), s.waiting.Load(), running, waiting)
		}
	}
	for range 2 {
		go enter()
	}
	expect("free", nil, 2)
	for range 3 {
		go enter()
	}
	eventstest.Until(t, func() bool { return s.waiting.Load() == 3 })
	go enter()
	expect("one too many", errBusy, 1)
	count(2, 3)
	s.mu.Lock()
	for _, w := range s.queue[:2] {
		w.since = w.since.Add(-s.wait / 5)
	}
	s.mu.Unlock()
	leaves[0]() // one CPU is left free
	count(1, 3)
	leaves[1]()
	refused := 0
	for range 3 { // in any order
		if err := <-results; err == errBusy {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("%d of 3 were refused, want the 2 that have waited for long", refused)
	}
	count(1, 0)
	go enter() // waits
	eventstest.Until(t, func() bool { return s.waiting.Load() == 1 })
	go enter()
	expect("a second one who waits in overload", errBusy, 1)
	leaves[2]()
	expect("its turn", nil, 1)
	s.mu.Lock()
	s.overload = time.Now() // is over
	s.mu.Unlock()
	go enter()
	expect("as before", nil, 1)
	count(2, 0)
	leaves[3]()
	leaves[4]()
	count(0, 0)
}

// Whatever the order in which searches enter, leave or are refused: as many run as may, none is
// forgotten, and the counts end at zero.
func TestSearchesCount(t *testing.T) {
	s := &searches{most: 3, limit: 4, wait: 2 * time.Millisecond}
	var running, answered atomic.Int64
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			for n := range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration((i+n)%5)*time.Millisecond)
				leave, err := s.enter(ctx, true)
				if err == nil {
					if now := running.Add(1); now > 3 {
						t.Errorf("%d run", now)
					}
					answered.Add(1)
					runtime.Gosched()
					running.Add(-1)
					leave()
				}
				cancel()
			}
		})
	}
	group.Wait()
	if s.running != 0 || len(s.queue) != 0 || s.waiting.Load() != 0 || answered.Load() == 0 {
		t.Errorf("%d run, %d wait (%d), %d were answered", s.running, len(s.queue), s.waiting.Load(), answered.Load())
	}
}

func prefixes(t rapid.TB, texts ...string) (out trustedProxies) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		require.NoError(t, err)
		out = append(out, p)
	}
	return out
}

func TestClientAddress(t *testing.T) {
	trusted := prefixes(t, "10.0.0.0/8", "2001:db8:1::/48")
	for _, c := range []struct {
		peer string
		xff  []string
		want string
	}{
		{"203.0.113.7:1234", nil, "203.0.113.7"},
		{"203.0.113.7:1234", []string{"198.51.100.1"}, "203.0.113.7"}, // not a proxy of ours: it may claim anything
		{"10.0.0.1:1", nil, "10.0.0.1"},
		{"10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"192.0.2.9, 198.51.100.1"}, "198.51.100.1"}, // what stands left is the reader's own claim
		{"10.0.0.1:1", []string{"198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"192.0.2.9", "198.51.100.1,10.0.0.2", " 10.0.0.3 "}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"10.0.0.1:1", []string{"198.51.100.1, nonsense"}, "10.0.0.1"},
		{"10.0.0.1:1", []string{"198.51.100.1, nonsense, 10.0.0.2"}, "10.0.0.2"},
		{"10.0.0.1:1", []string{""}, "10.0.0.1"},
		{"10.0.0.1:1", []string{","}, "10.0.0.1"},
		{"10.0.0.1:1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"[2001:db8:2::1]:4711"}, "2001:db8:2::1"},
		{"10.0.0.1:1", []string{"[2001:db8:2::1]"}, "2001:db8:2::1"},
		{"10.0.0.1:1", []string{"2001:db8:2::1"}, "2001:db8:2::1"},
		{"10.0.0.1:1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"[::ffff:10.0.0.1]:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[2001:db8:1::5]:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[2001:db8:1::5%eth0]:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"@", []string{"198.51.100.1"}, "invalid IP"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.xff
		if got := trusted.client(r).String(); got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.peer, c.xff, got, c.want)
		}
	}
}

// Whatever a reader writes into X-Forwarded-For, what his proxy adds right of it decides.
func TestClientAddressCannotBeChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.0.0.1:1"
		claim := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.Just("10.9.9.9"), rapid.Just("1.2.3.4"))).Draw(t, "claim")
		r.Header["X-Forwarded-For"] = append(claim, "198.51.100.1")
		if got := prefixes(t, "10.0.0.0/8").client(r); got.String() != "198.51.100.1" {
			t.Fatalf("%q: %s", claim, got)
		}
	})
}

// Each client has an allowance of its own, one second's worth at once; a /64 is one client.
func TestRateLimit(t *testing.T) {
	l := newRateLimit(1, 3, prefixes(t, "10.0.0.0/8"))
	take := func(client string) error {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.0.0.1:1"
		r.Header.Set("X-Forwarded-For", client)
		return l.allow(r)
	}
	l.every = 0 // nothing comes back while the test runs
	for _, client := range []string{"198.51.100.1", "198.51.100.2", "2001:db8::1"} {
		for i := range 4 {
			if err := take(client); (err != nil) != (i == 3) {
				t.Errorf("%s, request %d: %v", client, i+1, err)
			}
		}
	}
	if take("2001:db8::2") == nil {
		t.Error("another address of the same /64 has an allowance of its own")
	}
	if err := take("2001:db8:0:1::2"); err != nil {
		t.Errorf("another /64: %v", err)
	}
	if newRateLimit(1, 0, nil) != nil {
		t.Error("there is a limit by default")
	}
}

// The memory of clients is bounded.
func TestRateLimitForgets(t *testing.T) {
	l := newRateLimit(1, 1, nil)
	for i := range maxClients + 10 {
		r := &http.Request{RemoteAddr: fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)}
		if err := l.allow(r); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
	}
	l.clients.CleanUp()
	if n := l.clients.EstimatedSize(); n > maxClients {
		t.Errorf("%d clients are remembered", n)
	}
}

// Over HTTP: documented paths count, pictures by themselves, unknown ones do not.
func TestRateLimitOverHTTP(t *testing.T) {
	f := serve(t, func(c *Config) {
		c.RateLimit, c.TrustedProxies = 0.002, prefixes(t, "127.0.0.0/8")
	})
	for i, target := range documented() {
		client := fmt.Sprintf("198.51.100.%d", i)
		f.get(t, "/nope", "X-Forwarded-For", client)
		if a := f.get(t, target+"?id=1", "X-Forwarded-For", client+", 127.0.0.2"); a.status == http.StatusTooManyRequests {
			t.Errorf("%s: refused at once", target)
		}
		wait := "500"
		if strings.HasPrefix(target, "/api/chat/avatar/") { // a page has many
			wait = "9"
			for range bounds.MaxLimit - 1 {
				if a := f.get(t, target+"?id=1", "X-Forwarded-For", client); a.status != http.StatusOK {
					t.Fatalf("%s: %d", target, a.status)
				}
			}
		}
		a := f.wantError(t, http.StatusTooManyRequests, "Zbyt wiele zapytań.", http.MethodGet, target+"?id=1", "X-Forwarded-For", client)
		if a.header.Get("Retry-After") != wait {
			t.Errorf("%s: Retry-After %q", target, a.header.Get("Retry-After"))
		}
	}
}
