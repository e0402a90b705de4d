package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/internal/apitest"
)

// TestKnownClient: which addresses are one client's, and which may be a proxy's that all share.
func TestKnownClient(t *testing.T) {
	behind := prefixes(t, "127.0.0.0/8", "10.0.0.0/8")
	for _, c := range []struct {
		trusted    trustedProxies
		peer, xff  string
		want       string
		wantShared bool
	}{
		{nil, "203.0.113.7:1", "", "203.0.113.7", false},
		{nil, "203.0.113.7:1", "198.51.100.1", "203.0.113.7", false},
		{nil, "[2001:db8:0:7::1]:1", "", "2001:db8:0:7::", false},
		{nil, "[2001:db8:0:7:ffff::2]:1", "", "2001:db8:0:7::", false},
		{nil, "[2001:db8:0:7:ffff::2%eth0]:1", "", "2001:db8:0:7::", false},
		{nil, "127.0.0.1:1", "198.51.100.1", "127.0.0.1", true},
		{nil, "[::1]:1", "", "::", true},
		{nil, "[::ffff:10.1.2.3]:1", "", "10.1.2.3", true},
		{nil, "192.168.1.2:1", "", "192.168.1.2", true},
		{nil, "100.64.0.1:1", "", "100.64.0.1", true},
		{nil, "169.254.1.1:1", "", "169.254.1.1", true},
		{nil, "[fd00::1]:1", "", "fd00::", true},
		{nil, "@", "", "invalid IP", true},
		{behind, "127.0.0.1:1", "198.51.100.1", "198.51.100.1", false},
		{behind, "127.0.0.1:1", "198.51.100.1, 10.0.0.2", "198.51.100.1", false},
		{behind, "127.0.0.1:1", "192.168.1.2", "192.168.1.2", false}, // the proxies are known, so this is none
		{behind, "192.168.1.2:1", "", "192.168.1.2", false},
		{behind, "127.0.0.1:1", "", "127.0.0.1", true},
		{behind, "127.0.0.1:1", "10.0.0.2", "10.0.0.2", true},
		{behind, "@", "198.51.100.1", "invalid IP", true},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
		if c.xff != "" {
			r.Header.Set("X-Forwarded-For", c.xff)
		}
		if client, known := c.trusted.knownClient(r); client.String() != c.want || known == c.wantShared {
			t.Errorf("%s, %q, %v: %s, known: %v", c.peer, c.xff, c.trusted, client, known)
		}
	}
}

func TestPlaces(t *testing.T) {
	from := func(peer string) *http.Request { return &http.Request{RemoteAddr: peer} }
	refused := newRefused()
	count := func(reason string) float64 { return testutil.ToFloat64(refused.WithLabelValues("x", reason)) }
	p := newPlaces(20, "x", nil, refused)
	var leave []func()
	enter := func(peer string, want bool) {
		t.Helper()
		left, err := p.enter(from(peer))
		if (err == nil) != want || err != nil && err != errBusy {
			t.Errorf("%s: %v", peer, err)
		}
		if err == nil {
			leave = append(leave, left)
		}
	}
	for i := range 8 { // one /64 is one client
		enter(fmt.Sprintf("[2001:db8::%x]:1", i), i < 5)
	}
	for range 7 {
		enter("127.0.0.1:1", true) // may be everybody's proxy
	}
	for i := range 8 {
		enter(fmt.Sprintf("203.0.113.%d:1", i/2), true)
	}
	enter("198.51.100.1:1", false)
	if p.count() != 20 || count("share") != 3 || count("full") != 1 {
		t.Errorf("%d taken; refused %v for their share, %v because all are taken", p.count(), count("share"), count("full"))
	}
	for _, left := range leave {
		left()
	}
	if p.count() != 0 || len(p.byClient) != 0 {
		t.Errorf("%d taken, clients %v", p.count(), p.byClient)
	}
	few := newPlaces(3, "few", nil, refused) // a quarter is less than one: each may hold one
	for _, want := range []bool{true, false} {
		if _, err := few.enter(from("203.0.113.7:1")); (err == nil) != want {
			t.Error(err)
		}
	}
	if _, err := newPlaces(0, "none", nil, refused).enter(from("203.0.113.7:1")); err != errBusy {
		t.Errorf("of no places: %v", err)
	}
}

// TestShareOfPlaces: one client address takes a quarter of the places of each kind, and another
// address still gets its own.
func TestShareOfPlaces(t *testing.T) {
	f := serve(t, func(c *Config) { c.MaxFollowers, c.TrustedProxies = 20, prefixes(t, "127.0.0.0/8") })
	f.public.gate.wait = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for kind, c := range map[string]struct {
		target, header string
		places         *places
	}{
		"changes":  {changesOf + "?wait=25&since=" + apitest.Sequence(0), "", f.public.pollers.waiting},
		"sequence": {"/api/scammers", apitest.Sequence(5), f.public.gate.waiting},
	} {
		share := c.places.most / 4
		ask := func(client string) {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.addr+c.target, nil)
			r.RequestURI = ""
			r.Header.Set("X-Forwarded-For", client)
			if c.header != "" {
				r.Header.Set(minSeqHeader, c.header)
			}
			if resp, err := f.client.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
		for range share {
			go ask("198.51.100.1")
		}
		eventstest.Until(t, func() bool { return c.places.count() == share })
		headers := []string{"X-Forwarded-For", "198.51.100.1"}
		if c.header != "" {
			headers = append(headers, minSeqHeader, c.header)
		}
		a := f.wantError(t, http.StatusServiceUnavailable, "Serwer jest przeciążony.", http.MethodGet, c.target, headers...)
		if a.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %v", kind, a.header)
		}
		go ask("198.51.100.2")
		eventstest.Until(t, func() bool { return c.places.count() == share+1 })
	}
	cancel()
	f.apply(apitest.People()[:5]...)
	for _, p := range []*places{f.public.pollers.waiting, f.public.gate.waiting} {
		eventstest.Until(t, func() bool { return p.count() == 0 })
	}
}
