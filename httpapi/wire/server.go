package wire

import (
	"container/list"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// readTimeout is how long a client may take to send a request.
const readTimeout = 5 * time.Second

// NewServer returns an http.Server for either listener, with the bounds of the package doc.
// Requests that net/http itself refuses, before any handler, get plain text. A nil logger drops the
// server's messages. The caller serves, shuts down and waits.
func NewServer(h http.Handler, logger *slog.Logger) *http.Server {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &http.Server{
		Handler:                      closeAfterFaultyFraming(h),
		ReadHeaderTimeout:            readTimeout,
		ReadTimeout:                  readTimeout, // equal to the header's, which spares each request a timer: there are no bodies
		WriteTimeout:                 15 * time.Second,
		IdleTimeout:                  60 * time.Second,
		MaxHeaderBytes:               16 << 10,
		ConnContext:                  withConn,
		ConnState:                    track,
		DisableGeneralOptionsHandler: true, // OPTIONS * is an unknown path like any other
		ErrorLog:                     slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// closeAfterFaultyFraming makes net/http close the connection after a request with
// Transfer-Encoding. A proxy may instead use Content-Length to find the end of the request, and
// take the rest of it for another request (RFC 9112, 6.1). In HTTP/1.0 net/http silently ignores
// the header, so there no connection is reused.
func closeAfterFaultyFraming(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
			w.Header()["Connection"] = []string{"close"}
		}
		next.ServeHTTP(w, r)
	})
}

// Limits bound the connections of one listener. The zero value is for the public listener, with
// no shares.
type Limits struct {
	// Connections is how many may be open at a time. Zero means what Descriptors has for the public
	// listener.
	Connections int
	// Client returns who a connection from addr belongs to, and whether that is a single client,
	// which then gets at most a quarter of the connections. If nil, no client is known.
	Client func(addr netip.Addr) (client netip.Addr, known bool)
	// Refused, if not nil, is called for each connection that is closed at once: because its client
	// has its share, or else to make room for another.
	Refused func(share bool)
}

// LimitConnections returns l with bounds on its connections. If all are open, the one that has been
// idle longest is closed for a new one; if none is idle, the new one waits. A connection beyond its
// client's share is closed at once. Handlers of a server made by NewServer find the connection of a
// request with [ConnOf].
func LimitConnections(l net.Listener, limits Limits) net.Listener {
	if limits.Connections <= 0 {
		limits.Connections = Descriptors().Public
	}
	if limits.Client == nil {
		limits.Client = func(netip.Addr) (netip.Addr, bool) { return netip.Addr{}, false }
	}
	if limits.Refused == nil {
		limits.Refused = func(bool) {}
	}
	return &listener{Listener: l, limits: limits, slots: make(chan struct{}, limits.Connections), closed: make(chan struct{}),
		byClient: map[netip.Addr]int{}}
}

// Share returns how many of n places one client may take: a quarter of them, and at least one.
func Share(n int) int { return max(n/4, 1) }

const mostByDefault = 1 << 14 // an idle connection costs about 10 KB of memory

// Parts are the parts that the connections of a process's listeners have of its descriptors.
type Parts struct{ Public, Operators, Broker int }

// Descriptors divides the descriptors that the process may have open among its listeners. What it
// leaves is for files, upstreams and the process itself.
func Descriptors() Parts { return partsOf(descriptorLimit()) }

func partsOf(descriptors uint64) Parts {
	n := int(min(descriptors, 1<<20))
	p := Parts{Operators: min(max(n/16, 4), 64), Broker: min(max(n/8, 8), 1024)}
	p.Public = min(max(n-p.Operators-p.Broker-max(min(n/8, 128), 16), n/4, 1), mostByDefault)
	return p
}

// listener wraps every connection it accepts in a Conn, which takes a slot until it is closed. It
// does not use netutil.LimitListener, whose connections hide their sockets.
type listener struct {
	net.Listener
	limits Limits
	slots  chan struct{}
	once   sync.Once // for closed
	closed chan struct{}

	mu       sync.Mutex
	byClient map[netip.Addr]int // of known clients
	idle     list.List          // of *Conn, the longest idle first
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		conn, err := l.admit(c)
		if conn != nil || err != nil {
			return conn, err
		}
	}
}

// admit returns c with a slot, or nil if it has closed it.
func (l *listener) admit(c net.Conn) (net.Conn, error) {
	var client netip.Addr
	known := false
	if peer, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		client, known = l.limits.Client(peer.Addr().Unmap())
	}
	if known && !l.enter(client) {
		l.limits.Refused(true)
		reset(c)
		return nil, nil
	}
	leave := func() {
		if known {
			l.leave(client)
		}
	}
	if !l.acquire() {
		leave()
		_ = c.Close()
		return nil, net.ErrClosed
	}
	conn := &Conn{Conn: c, ended: make(chan struct{})}
	conn.BoundUnsent(maxUnsent)
	conn.listener = l
	conn.release = sync.OnceFunc(func() {
		conn.setIdle(false)
		leave()
		<-l.slots
	})
	return conn, nil
}

// acquire waits for a slot, and makes one as soon as a connection is idle. It returns false once the
// listener is closed.
func (l *listener) acquire() bool {
	for {
		select {
		case l.slots <- struct{}{}:
			return true
		default:
		}
		l.closeIdle()
		select {
		case l.slots <- struct{}{}:
			return true
		case <-l.closed:
			return false
		case <-time.After(closeIdleEvery):
		}
	}
}

// closeIdleEvery is how often a connection that waits for a slot looks for an idle one.
const closeIdleEvery = 20 * time.Millisecond

// enter reports whether a client may have one more connection, and counts it.
func (l *listener) enter(client netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byClient[client] >= Share(l.limits.Connections) {
		return false
	}
	l.byClient[client]++
	return true
}

func (l *listener) leave(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byClient[client]--; l.byClient[client] == 0 {
		delete(l.byClient, client)
	}
}

// closeIdle closes the connection that has been idle longest, if one is. A request that arrives on
// it at the same moment is lost, as on any idle connection that a server closes.
func (l *listener) closeIdle() {
	l.mu.Lock()
	var longest *Conn
	if first := l.idle.Front(); first != nil {
		longest = first.Value.(*Conn)
	}
	l.mu.Unlock()
	if longest != nil {
		l.limits.Refused(false)
		_ = longest.Close()
	}
}

// reset closes a connection at once, without a wait for what its client may still send.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// setIdle records that the connection waits for a request, or no longer does.
func (c *Conn) setIdle(idle bool) {
	l := c.listener
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.place != nil {
		l.idle.Remove(c.place)
		c.place = nil
	}
	if idle {
		c.place = l.idle.PushBack(c)
	}
}

// track keeps the listener's idle connections in order.
func track(c net.Conn, state http.ConnState) {
	if conn, ok := c.(*Conn); ok {
		switch state {
		case http.StateNew, http.StateIdle:
			conn.setIdle(true)
		case http.StateActive, http.StateHijacked, http.StateClosed:
			conn.setIdle(false)
		}
	}
}

// connKey is the context key of a request's Conn.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	if conn, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, conn)
	}
	return ctx
}

// ConnOf returns the connection that r came over, or nil if its server or listener is not of this
// package.
func ConnOf(r *http.Request) *Conn {
	c, _ := r.Context().Value(connKey{}).(*Conn)
	return c
}
