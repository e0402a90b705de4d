package main

import (
	"context"
	"net"
	"sync"
)

// dialToAsk connects for one request. A broker, say, speaks first: net/http would write that to the log of the whole
// process before the request has even been sent.
func dialToAsk(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &asking{Conn: conn, asked: make(chan struct{})}, nil
}

// asking is a connection of which nothing is read before something has been written.
type asking struct {
	net.Conn
	once  sync.Once
	asked chan struct{}
}

func (a *asking) Read(b []byte) (int, error) {
	<-a.asked
	return a.Conn.Read(b)
}

func (a *asking) Write(b []byte) (int, error) {
	defer a.once.Do(func() { close(a.asked) })
	return a.Conn.Write(b)
}

func (a *asking) Close() error {
	defer a.once.Do(func() { close(a.asked) })
	return a.Conn.Close()
}
