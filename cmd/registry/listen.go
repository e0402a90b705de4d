package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// drainWithin bounds how long running requests are waited for after the first signal.
const drainWithin = 10 * time.Second

// ports are the two listeners, bound before anything is opened: an address in use is found at once.
type ports struct{ public, admin net.Listener }

func (p *ports) close() {
	p.public.Close()
	p.admin.Close()
}

func (c *serveCmd) listen() (*ports, error) {
	public, err := bind(c.HTTPAddr, "http-addr")
	if err != nil {
		return nil, err
	}
	admin, err := bind(c.AdminAddr, "admin-addr")
	if err != nil {
		public.Close()
		return nil, err
	}
	return &ports{public, admin}, nil
}

func bind(addr address, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", string(addr))
	if err != nil {
		return nil, fmt.Errorf("--%s: %w; stop what uses the address or choose another", flag, err)
	}
	return l, nil
}

// serveHTTP serves until stop is closed, then accepts nothing more and waits for the running
// requests, at most drainWithin; those that take longer are cut off. It returns when no goroutine
// of the server is left.
//
// The listener is closed a little before Shutdown: net/http drops what it reads after that, so a
// request on a connection that was just accepted would be lost.
func serveHTTP(stop <-chan struct{}, srv *http.Server, l net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("listener %s: %w", l.Addr(), err)
	case <-stop:
	}
	_ = l.Close() // Shutdown closes it again, and says what there is to say
	time.Sleep(leaveWithin / 2)
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	<-failed
	if errors.Is(err, net.ErrClosed) {
		return nil // the listener, by us
	}
	return err
}

// openable is the address of a listener as a browser on this machine opens it.
func openable(l net.Listener) string {
	addr, ok := l.Addr().(*net.TCPAddr)
	if ok && addr.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", addr.Port)
	}
	return "http://" + l.Addr().String()
}
