package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func prefixes(t interface{ Fatal(...any) }, texts ...string) (out []netip.Prefix) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
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
		if got := clientAddress(r, trusted).String(); got != c.want {
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
		if got := clientAddress(r, prefixes(t, "10.0.0.0/8")); got.String() != "198.51.100.1" {
			t.Fatalf("%q: %s", claim, got)
		}
	})
}

func TestSubnet(t *testing.T) {
	for in, want := range map[string]string{
		"198.51.100.1": "198.51.100.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "2001:db8:1:2::%eth0": "2001:db8:1:2::",
	} {
		if got := subnet(netip.MustParseAddr(in)).String(); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Each client has an allowance of its own, one second's worth at once; a /64 is one client.
func TestRateLimit(t *testing.T) {
	l := newRateLimit(3, prefixes(t, "10.0.0.0/8"))
	take := func(client string) error {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.0.0.1:1"
		r.Header.Set("X-Forwarded-For", client)
		return l.take(r)
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
	if newRateLimit(0, nil) != nil {
		t.Error("there is a limit by default")
	}
}

// The memory of clients is bounded.
func TestRateLimitForgets(t *testing.T) {
	l := newRateLimit(1, nil)
	for i := range maxClients + 10 {
		r := &http.Request{RemoteAddr: fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)}
		if err := l.take(r); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
	}
	if n := l.clients.Len(); n != maxClients {
		t.Errorf("%d clients are remembered", n)
	}
}

// Over HTTP: documented paths count, unknown ones do not.
func TestRateLimitOverHTTP(t *testing.T) {
	f := serve(t, func(c *Config) {
		c.RateLimit, c.TrustedProxies = 0.5, prefixes(t, "127.0.0.0/8")
	})
	for i, target := range documented() {
		client := fmt.Sprintf("198.51.100.%d", i)
		f.get(t, "/nope", "X-Forwarded-For", client)
		if a := f.get(t, target+"?id=1", "X-Forwarded-For", client+", 127.0.0.2"); a.status == http.StatusTooManyRequests {
			t.Errorf("%s: refused at once", target)
		}
		a := f.wantError(t, http.StatusTooManyRequests, "Zbyt wiele zapytań.", http.MethodGet, target+"?id=1", "X-Forwarded-For", client)
		if a.header.Get("Retry-After") != "2" {
			t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
		}
	}
}
