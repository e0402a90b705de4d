package eventstest

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
)

// The ports that Address hands out lie below those that systems give to connections and to listeners
// of their own accord: what has one may give it up for a while and finds it free when it comes back.
const (
	firstPort = 20_000
	numPorts  = 10_000
)

// handedOut counts what this process has got: tests that run side by side share the machine's ports.
var handedOut atomic.Uint32

// Address is one of this machine on which nobody listens, for a program that cannot say itself where it
// listens. A process gets each once; processes begin at different ones. Any goroutine may call it.
func Address() (string, error) {
	for range numPorts {
		port := firstPort + (uint32(os.Getpid())*101+handedOut.Add(1))%numPorts
		address := fmt.Sprint("127.0.0.1:", port)
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", fmt.Errorf("no free port from %d to %d", firstPort, firstPort+numPorts)
}
