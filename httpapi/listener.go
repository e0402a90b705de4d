package httpapi

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
)

const (
	readTimeout  = 5 * time.Second  // to send a request; there are no bodies
	writeTimeout = 15 * time.Second // to take an answer
	defaultIdle  = 75 * time.Second
	maxHead      = 16 << 10 // bytes
	// maxUnsent is how many bytes the system may buffer for one client. Its own bound is some MiB, which thousands of
	// clients that do not read would multiply.
	maxUnsent = 128 << 10
)

// NewServer returns the http.Server of the public listener. A connection is closed after idle without a request; zero means
// 75 s. A nil logger drops the server's messages. The caller serves, shuts down and waits.
func NewServer(h http.Handler, idle time.Duration, logger *slog.Logger) *http.Server {
	logger = cmp.Or(logger, slog.New(slog.DiscardHandler))
	return &http.Server{
		Handler:                      closeAfterFaultyFraming(h),
		ReadHeaderTimeout:            readTimeout,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  cmp.Or(idle, defaultIdle),
		MaxHeaderBytes:               maxHead,
		DisableGeneralOptionsHandler: true, // OPTIONS * is an unknown path like any other
		ErrorLog:                     slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// closeAfterFaultyFraming closes the connection after a request with Transfer-Encoding: a proxy may find the end of the
// request by Content-Length instead, and take the rest of the request for another request (RFC 9112, 6.1). In HTTP/1.0
// net/http ignores the header, so every connection of HTTP/1.0 is closed.
func closeAfterFaultyFraming(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// LimitConnections returns l with at most so many open connections; one more waits. Zero means Descriptors().Public. A client
// address has at most a quarter of the connections: one more is closed at once, and refused is called. Loopback and private
// addresses and trusted proxies have no such bound, since many clients may share one.
func LimitConnections(l net.Listener, most int, trusted []netip.Prefix, refused func()) net.Listener {
	most = cmp.Or(most, Descriptors().Public)
	return netutil.LimitListener(&sharingListener{Listener: l, share: max(most/4, 1), trusted: trusted, refused: refused, open: map[netip.Addr]int{}}, most)
}

// sharingListener bounds the connections of each client address.
type sharingListener struct {
	net.Listener
	share   int
	trusted []netip.Prefix
	refused func()

	mu   sync.Mutex
	open map[netip.Addr]int
}

// Accept returns the next connection that is not beyond its client's share.
func (l *sharingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}

		tcp, isTCP := conn.(*net.TCPConn)
		if isTCP {
			_ = tcp.SetWriteBuffer(maxUnsent) // else the system's own bound applies
		}

		client, known := l.clientOf(conn)
		if !known {
			return conn, nil
		}
		if l.enter(client) {
			return &sharedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(client) })}, nil
		}

		// Close without waiting for bytes that the client may still send.
		l.refused()
		if isTCP {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// clientOf returns the subnet of a connection's peer, and whether it belongs to one client.
func (l *sharingListener) clientOf(conn net.Conn) (client netip.Addr, known bool) {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}, false
	}
	a := peer.Addr().Unmap().WithZone("")
	shared := a.IsLoopback() || a.IsPrivate() || slices.ContainsFunc(l.trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	return subnetOf(a), !shared
}

func (l *sharingListener) enter(client netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[client] >= l.share {
		return false
	}
	l.open[client]++
	return true
}

func (l *sharingListener) leave(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[client]--
	if l.open[client] == 0 {
		delete(l.open, client)
	}
}

// sharedConn gives its place back when it is closed.
type sharedConn struct {
	net.Conn
	leave func()
}

func (c *sharedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

const mostByDefault = 1 << 14 // an idle connection costs about 10 KB of memory

// Parts are the parts that the connections of a process's listeners have of its descriptors.
type Parts struct{ Public, Operators, Broker int }

// Descriptors divides the descriptors that the process may have open among its listeners. What it leaves is for files,
// upstreams and the process itself.
func Descriptors() Parts {
	var limit syscall.Rlimit // the runtime has raised the soft limit to the hard one
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		limit.Cur = 1024 // the usual soft limit
	}
	return partsOf(limit.Cur)
}

func partsOf(descriptors uint64) Parts {
	n := int(min(descriptors, 1<<20))
	p := Parts{Operators: min(max(n/16, 4), 64), Broker: min(max(n/8, 8), 1024)}

	// The public listener has the rest, without a reserve for files and upstreams; with few descriptors, a quarter of all.
	reserve := max(min(n/8, 128), 16)
	p.Public = min(max(n-p.Operators-p.Broker-reserve, n/4, 1), mostByDefault)
	return p
}
