package wire

import (
	"context"
	"log/slog"
	"net"
	"net/http"
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

// LimitConnections returns l with at most n connections open at a time; more wait to be accepted.
// If n is zero, the bound follows from the process's descriptor limit. Handlers of a server made by
// NewServer find the connection of a request with [ConnOf].
func LimitConnections(l net.Listener, n int) net.Listener {
	if n <= 0 {
		n = connectionsFor(descriptorLimit())
	}
	return &listener{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{}), buffers: &sync.Pool{}}
}

const (
	ownDescriptors = 128     // kept free for the store, the broker, upstreams and the admin listener
	mostByDefault  = 1 << 14 // an idle connection costs about 10 KB of memory
)

// connectionsFor leaves ownDescriptors free, or half of a very small limit.
func connectionsFor(descriptors uint64) int {
	if descriptors < 2*ownDescriptors {
		return int(max(descriptors/2, 1))
	}
	return int(min(descriptors-ownDescriptors, mostByDefault))
}

// listener wraps every connection it accepts in a Conn, which takes a slot until it is closed. It
// does not use netutil.LimitListener, whose connections hide their sockets.
type listener struct {
	net.Listener
	slots   chan struct{}
	once    sync.Once // for closed
	closed  chan struct{}
	buffers *sync.Pool
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	conn := newConn(c, l.buffers)
	conn.release = sync.OnceFunc(func() { <-l.slots })
	return conn, nil
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
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
