//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"

	"example.org/registry/events/broker"
)

// brokerWord makes this program a broker: soak broker DIRECTORY ADDRESS.
const brokerWord = "broker"

// beBroker is a broker until its standard input ends, which is when the soak does, however that ends.
func beBroker(dir, addr string, stdin io.Reader, stderr io.Writer) int {
	b, err := broker.Start(broker.Config{StoreDir: dir, Addr: addr})
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	_, _ = io.Copy(io.Discard, stdin)
	b.Shutdown()
	return 0
}

// node is the broker, a process. One goroutine at a time does something to it.
type node struct {
	dir, addr string
	stdin     io.Closer
	process   *process // nil while there is none
}

func newNode(dir string) (*node, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &node{dir: dir, addr: l.Addr().String()}, l.Close()
}

// start returns when it listens.
func (n *node) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, brokerWord, n.dir, n.addr)
	cmd.Stderr = os.Stderr
	if n.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if n.process, err = begin(cmd, nil); err != nil {
		return err
	}
	return until(ctx, "the broker listens", func() bool {
		c, err := net.Dial("tcp", n.addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// kill ends it as a crash does.
func (n *node) kill() {
	if n.process != nil {
		n.process.end(os.Kill)
		n.stdin.Close()
		n.process = nil
	}
}

// stop ends it in order.
func (n *node) stop() {
	n.stdin.Close()
	<-n.process.ended
	n.process = nil
}
