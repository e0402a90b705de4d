package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// joinListener makes the connections of a listener joinConns.
type joinListener struct {
	net.Listener
	buffers *sync.Pool
}

func (l joinListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &joinConn{Conn: newLazyConn(c), buffers: l.buffers}, nil
}

// connKey is where NewServer puts the joinConn of a request's context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	if joins, ok := c.(*joinConn); ok {
		return context.WithValue(ctx, connKey{}, joins)
	}
	return ctx
}

// connOf is the connection that r came over; nil where it is none of a joinListener.
func connOf(r *http.Request) *joinConn {
	c, _ := r.Context().Value(connKey{}).(*joinConn)
	return c
}

// joinWrites is called just before a body of that many bytes is written.
func joinWrites(r *http.Request, size int) {
	if size < minJoined {
		return
	}
	if c := connOf(r); c != nil {
		c.arm()
	}
}
