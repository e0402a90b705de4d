package eventstest

import (
	"fmt"
	"net"
	"sync"
)

// Relay forwards TCP connections between two programs, and fails as a network does. It needs no rights
// and no tools, unlike packet filters. Any goroutine may call its methods; the caller ends it with Close.
type Relay struct {
	listener net.Listener
	to       string // the address to forward to
	running  sync.WaitGroup

	mu        sync.Mutex
	changed   *sync.Cond // blackhole or ended has changed
	blackhole bool       // see Blackhole
	away      bool       // see Away
	ended     bool       // by Close
	conns     map[net.Conn]struct{}
}

// StartRelay forwards to an address, from a free port of this machine.
func StartRelay(to string) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}

	r := &Relay{listener: l, to: to, conns: map[net.Conn]struct{}{}}
	r.changed = sync.NewCond(&r.mu)
	r.running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // closed by Close
			}
			r.running.Go(func() { r.forwardConn(in) })
		}
	})
	return r, nil
}

// Addr returns the host:port to connect to.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Blackhole stops or resumes forwarding. It closes nothing: both sides see a network that drops packets.
func (r *Relay) Blackhole(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blackhole = on
	r.changed.Broadcast()
}

// Away closes every connection. While it is on, each new connection is closed at once.
func (r *Relay) Away(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = on
	r.closeConns()
}

// Close ends every connection and waits for the relay's goroutines.
func (r *Relay) Close() {
	r.mu.Lock()
	r.ended = true
	r.changed.Broadcast()
	r.closeConns()
	r.mu.Unlock()

	r.listener.Close()
	r.running.Wait()
}

// closeConns closes every connection. The caller must hold mu.
func (r *Relay) closeConns() {
	for c := range r.conns {
		c.Close()
	}
}

// waitOpen waits for the end of Blackhole. It returns false once the relay has ended.
func (r *Relay) waitOpen() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.blackhole && !r.ended {
		r.changed.Wait()
	}
	return !r.ended
}

func (r *Relay) forwardConn(in net.Conn) {
	defer in.Close()
	if !r.waitOpen() {
		return
	}

	out, err := net.Dial("tcp", r.to)
	if err != nil {
		return // the address does not answer
	}
	defer out.Close()

	// From here on, Away and Close close both connections.
	if !r.registerConns(in, out) {
		return
	}
	defer r.forgetConns(in, out)

	var both sync.WaitGroup
	both.Go(func() { r.copyBytes(in, out) })
	both.Go(func() { r.copyBytes(out, in) })
	both.Wait()
}

// registerConns registers connections for closeConns. It returns false if the caller must close them at once.
func (r *Relay) registerConns(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.away {
		return false
	}

	for _, c := range conns {
		r.conns[c] = struct{}{}
	}
	return true
}

func (r *Relay) forgetConns(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		delete(r.conns, c)
	}
}

func (r *Relay) copyBytes(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, readErr := from.Read(buffer)
		if !r.waitOpen() {
			return
		}

		_, writeErr := to.Write(buffer[:n])
		if readErr != nil || writeErr != nil {
			return
		}
	}
}
