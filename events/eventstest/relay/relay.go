// Package relay forwards TCP connections between two programs, and simulates the faults of a
// network.
//
// It needs no rights and no tools, unlike packet filters. It cannot lose single packets: TCP would
// send them again. But it can lose single messages of a NATS broker, as a disconnected route
// between two nodes of a cluster does.
package relay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// Relay forwards bytes between its clients and one address. Any goroutine may call its methods; the
// caller ends it with Close.
type Relay struct {
	listener net.Listener
	to       string
	messages bool // the address is a NATS broker, whose output is forwarded message by message
	running  sync.WaitGroup

	mu     sync.Mutex
	opened *sync.Cond
	hole   bool
	away   bool
	ended  bool
	lose   func(message []byte) bool
	conns  map[net.Conn]struct{}
}

// Start forwards to an address, from a free port of this machine.
func Start(to string) (*Relay, error) { return start(to, false) }

// StartNATS is Start for the address of a NATS broker without TLS, so that Lose works.
func StartNATS(to string) (*Relay, error) { return start(to, true) }

func start(to string, messages bool) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	r := &Relay{listener: l, to: to, messages: messages, conns: map[net.Conn]struct{}{}}
	r.opened = sync.NewCond(&r.mu)
	r.running.Go(r.accept)
	return r, nil
}

// Addr returns the host:port to connect to.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Blackhole stops forwarding while it is on, and continues when it is off. It closes nothing: both
// sides see a network that drops packets.
func (r *Relay) Blackhole(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hole = on
	r.opened.Broadcast()
}

// Away closes every connection, and each new one at once, while it is on.
func (r *Relay) Away(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = on
	r.cut()
}

// Lose drops the broker's messages for which lose returns true. A message includes its subject and
// headers, from MSG or HMSG on. Several goroutines call lose, one at a time. If lose is nil, as at
// the start, nothing is dropped. Lose needs a relay of StartNATS.
func (r *Relay) Lose(lose func(message []byte) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose = lose
}

// Close ends every connection and waits for the relay's goroutines.
func (r *Relay) Close() {
	r.mu.Lock()
	r.ended = true
	r.opened.Broadcast()
	r.cut()
	r.mu.Unlock()
	r.listener.Close()
	r.running.Wait()
}

// cut closes every connection. The caller must hold mu.
func (r *Relay) cut() {
	for c := range r.conns {
		c.Close()
	}
}

// pass waits while nothing may pass. It returns false once the relay has ended.
func (r *Relay) pass() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.hole && !r.ended {
		r.opened.Wait()
	}
	return !r.ended
}

func (r *Relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return // closed by Close
		}
		r.running.Go(func() { r.connect(in) })
	}
}

func (r *Relay) connect(in net.Conn) {
	defer in.Close()
	if !r.pass() {
		return
	}
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		return // the address does not answer
	}
	defer out.Close()
	if !r.keep(in, out) {
		return
	}
	defer r.forget(in, out)
	var both sync.WaitGroup
	if r.messages {
		both.Go(func() { r.copyMessages(in, out) })
	} else {
		both.Go(func() { r.copy(in, out) })
	}
	both.Go(func() { r.copy(out, in) })
	both.Wait()
}

// keep registers connections for cut. It returns false if they are to be closed at once.
func (r *Relay) keep(conns ...net.Conn) bool {
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

func (r *Relay) forget(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		delete(r.conns, c)
	}
}

func (r *Relay) copy(to, from net.Conn) {
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

// copyMessages is copy from a NATS broker, without the messages to lose.
func (r *Relay) copyMessages(to, from net.Conn) {
	defer to.Close()
	in := bufio.NewReader(from)
	for {
		message, err := readMessage(in)
		if err != nil || !r.pass() {
			return
		}
		if r.loses(message) {
			continue
		}
		if _, err := to.Write(message); err != nil {
			return
		}
	}
}

// readMessage reads the next line of NATS' protocol, and its payload.
func readMessage(in *bufio.Reader) ([]byte, error) {
	message, err := in.ReadBytes('\n')
	if err != nil || !carries(message) {
		return message, err
	}
	fields := bytes.Fields(message)
	size, err := strconv.Atoi(string(fields[len(fields)-1]))
	if err != nil {
		return nil, err
	}
	line := len(message)
	message = append(message, make([]byte, size+len("\r\n"))...)
	_, err = io.ReadFull(in, message[line:])
	return message, err
}

// carries reports whether a line of NATS' protocol begins a message.
func carries(line []byte) bool {
	return bytes.HasPrefix(line, []byte("MSG ")) || bytes.HasPrefix(line, []byte("HMSG "))
}

func (r *Relay) loses(message []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lose != nil && carries(message) && r.lose(message)
}
