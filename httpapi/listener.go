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
	readTimeout  = 5 * time.Second  // for a client to send a request; requests have no bodies
	writeTimeout = 15 * time.Second // for a client to take an answer
	defaultIdle  = 75 * time.Second // until a connection without a request is closed
	maxHead      = 16 << 10         // bytes of a request's headers
	// maxUnsent is how many bytes the operating system may buffer for one client. Its own bound is some MiB, too much if
	// thousands of clients do not read.
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

// closeAfterFaultyFraming closes the connection after a request with Transfer-Encoding. A proxy may see the end of such a request
// where Content-Length puts it, and take what follows for another request (RFC 9112, 6.1). net/http ignores Transfer-Encoding
// in HTTP/1.0, so the connection is closed after every HTTP/1.0 request.
func closeAfterFaultyFraming(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isHTTP10 := !r.ProtoAtLeast(1, 1)
		if isHTTP10 || len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// LimitConnections returns l with at most limit open connections; further ones wait. Zero means Descriptors().Public. One client
// address may hold a quarter of the connections: a further one is closed at once, and refused is called. Loopback and private
// addresses and trusted proxies may hold more, since many clients may share such an address.
func LimitConnections(l net.Listener, limit int, trusted []netip.Prefix, refused func()) net.Listener {
	limit = cmp.Or(limit, Descriptors().Public)
	sharing := &sharingListener{
		Listener: l,
		share:    max(limit/4, 1),
		trusted:  trusted,
		refused:  refused,
		open:     map[netip.Addr]int{},
	}
	return netutil.LimitListener(sharing, limit)
}

// sharingListener bounds the connections of each client address.
type sharingListener struct {
	net.Listener
	share   int // connections that one client address may have
	trusted []netip.Prefix
	refused func()

	mu   sync.Mutex
	open map[netip.Addr]int // connections of each client address
}

// Accept returns the next connection that fits into its client's share, and closes the connections that do not.
func (l *sharingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}

		tcp, isTCP := conn.(*net.TCPConn)
		if isTCP {
			_ = tcp.SetWriteBuffer(maxUnsent) // if it fails, the system's own bound applies
		}

		client, isOneClient := l.clientOf(conn)
		if !isOneClient {
			return conn, nil
		}
		if l.enter(client) {
			// Close may be called more than once, but the client leaves once.
			return &sharedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(client) })}, nil
		}

		// With a linger of 0, Close resets the connection without waiting for the client.
		l.refused()
		if isTCP {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// clientOf returns the subnet of a connection's peer. isOneClient is false for an address that many clients may share, or that
// cannot be read.
func (l *sharingListener) clientOf(conn net.Conn) (client netip.Addr, isOneClient bool) {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}, false
	}

	a := peer.Addr().Unmap().WithZone("")
	isTrusted := slices.ContainsFunc(l.trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	isShared := isTrusted || a.IsLoopback() || a.IsPrivate()
	return subnetOf(a), !isShared
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

// sharedConn is a connection that counts for its client until it is closed.
type sharedConn struct {
	net.Conn
	leave func()
}

func (c *sharedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// maxPublic bounds Parts.Public. An idle connection costs about 10 KB of memory.
const maxPublic = 1 << 14

// Parts is how many descriptors of the process each listener may use for connections.
type Parts struct{ Public, Operators, Broker int }

// Descriptors divides the descriptors that the process may have open among its listeners, and leaves a reserve.
func Descriptors() Parts {
	var limit syscall.Rlimit // the runtime has raised the soft limit to the hard one
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		limit.Cur = 1024 // the usual soft limit
	}
	return partsOf(limit.Cur)
}

// partsOf divides a number of descriptors. Of 1,024, the operators' listener gets 64, the broker 128, the reserve for files and
// upstreams 128, and the public listener the other 704.
func partsOf(descriptors uint64) Parts {
	n := int(min(descriptors, 1<<20)) // an unlimited number would not fit into an int
	p := Parts{Operators: min(max(n/16, 4), 64), Broker: min(max(n/8, 8), 1024)}
	reserve := min(max(n/8, 16), 128)

	// With few descriptors, public connections are more important than the reserve.
	rest := n - p.Operators - p.Broker - reserve
	p.Public = min(max(rest, n/4, 1), maxPublic)
	return p
}
