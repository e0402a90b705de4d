//go:build !race

package cluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"example.org/registry/events/eventstest"
)

// nodeConfig is one node of three. The cluster's name keeps those of other tests out. Clients are told of no other
// addresses than they were given, so that a relay in between stays in between.
const nodeConfig = `server_name: node%d
listen: %q
no_sys_acc: false
jetstream { store_dir: %q, max_file_store: 4GB, max_memory_store: 256MB }
cluster { name: %q, listen: %q, routes: [%s], no_advertise: true }
`

// beNode runs this process as a node until it is killed.
func beNode(file string) {
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	opts.LogFile = file + ".log"
	s, err := server.NewServer(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.ConfigureLogger()
	s.Start()
	go func() { // the pipe ends with the test's process, however that ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	s.WaitForShutdown()
	os.Exit(0)
}

// node is one broker of the cluster.
type node struct {
	addr  string // for clients
	dir   string // holds its configuration, its log and its store
	route string
	cmd   *exec.Cmd // nil while it does not run
}

// nodes are the cluster's three. The test's goroutine alone stops and starts them.
type nodes struct {
	t   testing.TB
	all [3]*node
}

// startNodes starts three on free ports and ends them with the test.
func startNodes(t testing.TB) *nodes {
	t.Helper()
	c := prepareNodes(t, 3)
	for i := range c.all {
		c.start(i)
	}
	return c
}

// prepareNodes configures three, which know of the first so many of them. They end with the test.
func prepareNodes(t testing.TB, known int) *nodes {
	t.Helper()
	c := &nodes{t: t}
	var routes []string
	for i := range c.all {
		c.all[i] = &node{addr: freeAddress(t), route: freeAddress(t), dir: t.TempDir()}
		routes = append(routes, fmt.Sprintf("%q", "nats://"+c.all[i].route))
	}
	t.Cleanup(func() {
		for i := range c.all {
			c.kill(i)
		}
	})
	for i, n := range c.all {
		text := fmt.Sprintf(nodeConfig, i, n.addr, n.store(), t.Name(), n.route, strings.Join(routes[:known], ", "))
		if err := os.WriteFile(n.config(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (n *node) config() string { return filepath.Join(n.dir, "nats.conf") }
func (n *node) store() string  { return filepath.Join(n.dir, "store") }

func (c *nodes) start(i int) {
	c.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), nodeVariable+"="+c.all[i].config())
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // nothing is written to it
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.all[i].cmd = cmd
}

// kill ends a node as power loss of the process alone would: what it had in memory is gone.
func (c *nodes) kill(i int) {
	cmd := c.all[i].cmd
	if cmd == nil {
		return
	}
	c.all[i].cmd = nil
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
}

// signal stops a node for a while (SIGSTOP), or lets it go on (SIGCONT).
func (c *nodes) signal(i int, s syscall.Signal) {
	c.t.Helper()
	if err := c.all[i].cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// wipe takes a killed node's store away.
func (c *nodes) wipe(i int) {
	c.t.Helper()
	if err := os.RemoveAll(c.all[i].store()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *nodes) urls() []string {
	var all []string
	for _, n := range c.all {
		all = append(all, "nats://"+n.addr)
	}
	return all
}

func freeAddress(t testing.TB) string {
	t.Helper()
	address, err := eventstest.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
