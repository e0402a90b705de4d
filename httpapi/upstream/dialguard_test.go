package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"code.dny.dev/ssrf"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// No name may lead to one of these, in whatever form it is written.
func TestHiddenAddresses(t *testing.T) {
	guardian := ssrf.New(ssrf.WithAnyPort())
	for _, text := range []string{
		// this machine and this network
		"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "127.1.2.3", "::", "::1",
		// private, shared, link-local, metadata
		"10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255",
		"100.64.0.1", "100.127.255.255", "169.254.0.1", "169.254.169.254", "169.254.170.2", "fe80::1", "fe80::a9fe:a9fe",
		"fc00::1", "fd00::1", "fd00:ec2::254", "fdff:ffff::1", "fec0::1",
		// protocol assignments, documentation, benchmarks, reserved
		"192.0.0.1", "192.0.0.170", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9",
		"240.0.0.1", "255.255.255.255", "2001:db8::1", "100::1", "3fff::1",
		// many at once
		"224.0.0.1", "224.0.0.251", "239.255.255.250", "ff02::1", "ff0e::1",
		// IPv4 inside IPv6: mapped, compatible, translated, tunnelled
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:192.168.1.1", "::ffff:8.8.8.8", "::127.0.0.1", "::ffff:0:127.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "64:ff9b:1::7f00:1",
		"2002:7f00:1::1", "2002:a00:1::1", "2002:a9fe:a9fe::1", "2001::1", "2001:0:7f00:1::",
	} {
		addr := netip.MustParseAddr(text)
		for _, port := range []uint16{80, 443, 22} {
			if err := refusePrivate(guardian, "tcp", netip.AddrPortFrom(addr, port).String()); err == nil && addr.Is4() {
				t.Errorf("%s is connected to", addr)
			}
			network := "tcp4"
			if addr.Is6() {
				network = "tcp6"
			}
			if err := refusePrivate(guardian, network, netip.AddrPortFrom(addr, port).String()); !errors.Is(err, errNotPublic) {
				t.Errorf("%s is connected to: %v", addr, err)
			}
		}
	}
	for _, text := range []string{"1.1.1.1:443", "162.159.128.233:443", "[2606:4700::6810:1]:443", "8.8.8.8:8443"} {
		network := "tcp4"
		if netip.MustParseAddrPort(text).Addr().Is6() {
			network = "tcp6"
		}
		if err := refusePrivate(guardian, network, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "x", "localhost:80", "127.0.0.1"} {
		if refusePrivate(guardian, "tcp4", text) == nil {
			t.Errorf("%q is connected to", text)
		}
	}
}

// nameServer answers every question for an address as its function says; without one it hangs.
func nameServer(t *testing.T, answer func(*dnsmessage.Message)) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if answer == nil || m.Unpack(buf[:n]) != nil {
				continue
			}
			m.Response, m.Additionals = true, nil
			answer(&m)
			if packed, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	// Go's resolver goes on after its context has ended, until its own timeout: its questions end
	// here.
	var mu sync.Mutex
	var questions []net.Conn
	closed := false
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		closed = true
		for _, c := range questions {
			c.Close()
		}
		conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if closed {
			return nil, net.ErrClosed
		}
		c, err := (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
		if err == nil {
			questions = append(questions, c)
		}
		return c, err
	}}
}

// leadsTo answers with IPv4 addresses.
func leadsTo(addresses ...string) func(*dnsmessage.Message) {
	return func(m *dnsmessage.Message) {
		if m.Questions[0].Type != dnsmessage.TypeA {
			return
		}
		for _, a := range addresses {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()},
			})
		}
	}
}

// A name that leads inside gives no connection, whatever gave it that address and however often
// it changes; one that does not resolve, or takes forever to, costs no more than the timeout.
func TestNamesThatLeadInside(t *testing.T) {
	inside := misbehave(t, sends(`{"avatar":"x"}`))
	_, port, err := net.SplitHostPort(inside.Listener.Addr().String())
	require.NoError(t, err)
	for name, answer := range map[string]func(*dnsmessage.Message){
		"loopback":            leadsTo("127.0.0.1"),
		"one of many":         leadsTo("10.0.0.1", "127.0.0.1", "192.168.0.1"),
		"no such name":        func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeNameError },
		"no address":          func(*dnsmessage.Message) {},
		"a failing server":    func(m *dnsmessage.Message) { m.RCode = dnsmessage.RCodeServerFailure },
		"a server that hangs": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, func(c *Config) {
				address := "https://api.platform.example:" + port
				c.Avatars = AvatarConfig{API: address, CDN: address, timeout: 300 * time.Millisecond}
			})
			guard := newDialGuard()
			guard.public.Resolver = nameServer(t, answer)
			f.avatars.platform.(*chatPlatform).client.Transport = newTransport(guard.dial)
			began := time.Now()
			f.wantAvatar(t, someUser, 128, "", "", true)
			if took := time.Since(began); took > callTimeout {
				t.Errorf("took %v", took)
			}
		})
	}
	t.Cleanup(func() {
		if n := inside.requests.Load(); n > 0 {
			t.Errorf("%d requests arrived inside", n)
		}
	})
}

// The operator's own addresses are exempt, each with its port; names with a dot never are.
func TestWhatTheOperatorNamed(t *testing.T) {
	var urls []*url.URL
	for _, text := range []string{"http://127.0.0.1:8000", "http://localhost", "https://platform", "https://[::1]:9", "https://api.example.org", "http://a.localhost:1"} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		urls = append(urls, u)
	}
	g := newDialGuard(urls...)
	for addr, want := range map[string]bool{
		"127.0.0.1:8000": true, "localhost:80": true, "platform:443": true, "[::1]:9": true,
		"127.0.0.1:8001": false, "127.0.0.2:8000": false, "localhost:81": false, "platform:80": false, "api.example.org:443": false,
		"a.localhost:1": false, "169.254.169.254:80": false, "": false,
	} {
		if g.named[addr] != want {
			t.Errorf("%s: %v", addr, !want)
		}
	}
	if conn, err := g.dial(t.Context(), "tcp", misbehave(t, status(200)).Listener.Addr().String()); !errors.Is(err, errNotPublic) {
		t.Errorf("another port of this machine: %v", err)
		if err == nil {
			conn.Close()
		}
	}
}
