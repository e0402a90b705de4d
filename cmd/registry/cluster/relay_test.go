//go:build !race

package cluster

import (
	"errors"
	"net"
	"sync"
	"testing"
)

// relay passes bytes between a replica and a node until it is shut, and goes on where it was when it is opened.
// Nothing is closed: this is how a network that drops packets looks to both sides.
type relay struct {
	listener net.Listener
	to       string
	running  sync.WaitGroup

	mu    sync.Mutex
	open  *sync.Cond
	shut  bool
	ended bool
	conns []net.Conn
}

// relayTo starts one and ends it with the test.
func relayTo(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, to: to}
	r.open = sync.NewCond(&r.mu)
	r.running.Go(r.accept)
	t.Cleanup(r.end)
	return r
}

func (r *relay) url() string { return "nats://" + r.listener.Addr().String() }

// set shuts or opens it.
func (r *relay) set(shut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut = shut
	r.open.Broadcast()
}

// pass waits while it is shut; false says that it has ended.
func (r *relay) pass() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.shut && !r.ended {
		r.open.Wait()
	}
	return !r.ended
}

func (r *relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return // closed by end
		}
		r.running.Go(func() { r.connect(in) })
	}
}

func (r *relay) connect(in net.Conn) {
	defer in.Close()
	if !r.pass() {
		return
	}
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		return // the node is down
	}
	defer out.Close()
	r.mu.Lock()
	r.conns = append(r.conns, in, out)
	ended := r.ended
	r.mu.Unlock()
	if ended {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { r.copy(in, out) })
	both.Go(func() { r.copy(out, in) })
	both.Wait()
}

func (r *relay) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !r.pass() {
			return
		}
		_, failed := to.Write(buffer[:n])
		if errors.Join(err, failed) != nil {
			return
		}
	}
}

func (r *relay) end() {
	r.mu.Lock()
	r.ended = true
	r.open.Broadcast()
	for _, c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.listener.Close()
	r.running.Wait()
}
