//go:build unix && !race && nightly

package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
)

// brokerWord makes the test binary a broker: "broker CONFIGFILE" is a node of a cluster, "broker
// DIRECTORY ADDRESS" the broker that the program embeds.
const brokerWord = "broker"

// beBroker runs this process as a broker until its standard input ends, which it does when the
// test's process ends.
func beBroker(args []string) int {
	shutdown, err := startBroker(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	shutdown()
	return 0
}

func startBroker(args []string) (shutdown func(), err error) {
	if len(args) == 2 {
		b, err := broker.Start(broker.Config{StoreDir: args[0], Addr: args[1]})
		if err != nil {
			return nil, err
		}
		return b.Shutdown, nil
	}
	opts, err := server.ProcessConfigFile(args[0])
	if err != nil {
		return nil, err
	}
	opts.LogFile = args[0] + ".log"
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, err
	}
	s.ConfigureLogger()
	s.Start()
	return func() { s.Shutdown(); s.WaitForShutdown() }, nil
}

// node is one broker. One goroutine at a time stops and starts it.
type node struct {
	addr  string   // for clients
	dir   string   // holds its configuration, its log and its store
	args  []string // for beBroker
	stdin io.Closer
	*registrytest.Process
}

func (n *node) start() (err error) {
	cmd := exec.Command(os.Args[0], append([]string{brokerWord}, n.args...)...)
	cmd.Stderr = os.Stderr
	if n.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	n.Process, err = registrytest.Begin(cmd, nil)
	return err
}

// kill ends it as a crash does: what it had in memory is gone. Nothing happens to a node that does
// not run.
func (n *node) kill() {
	if n.Process != nil {
		n.End(os.Kill)
		n.stdin.Close()
		n.Process = nil
	}
}

// nodeConfig is one node of three. The cluster's name keeps nodes of other tests out. Clients learn
// no other addresses than those they were given, so that a relay in between stays in between.
const nodeConfig = `server_name: node%d
listen: %q
no_sys_acc: false
jetstream { store_dir: %q, max_file_store: 4GB, max_memory_store: 256MB }
cluster { name: %q, listen: %q, routes: [%s], no_advertise: true }
`

// nodes are a cluster's three brokers. The test's goroutine alone stops and starts them.
type nodes struct {
	t   testing.TB
	all [3]*node
}

// startNodes starts three and waits until they are a cluster. They end with the test.
func startNodes(t testing.TB) (*nodes, jetstream.JetStream) {
	t.Helper()
	c := prepareNodes(t, 3)
	for i := range c.all {
		c.start(i)
	}
	js := c.connect()
	until(t, "the nodes make a stream of three replicas", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "FORMED", Subjects: []string{"formed"}, Replicas: 3})
		return err == nil && js.DeleteStream(ctx, "FORMED") == nil
	})
	return c, js
}

// prepareNodes configures three nodes, which know routes to the first few of them.
func prepareNodes(t testing.TB, known int) *nodes {
	t.Helper()
	c := &nodes{t: t}
	var routes []string
	var own [3]string
	for i := range c.all {
		c.all[i] = &node{addr: freeAddress(t), dir: t.TempDir()}
		own[i] = freeAddress(t)
		routes = append(routes, fmt.Sprintf("%q", "nats://"+own[i]))
	}
	for i, n := range c.all {
		t.Cleanup(n.kill)
		config := filepath.Join(n.dir, "nats.conf")
		n.args = []string{config}
		text := fmt.Sprintf(nodeConfig, i, n.addr, n.store(), t.Name(), own[i], strings.Join(routes[:known], ", "))
		require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	}
	return c
}

func freeAddress(t testing.TB) string {
	t.Helper()
	address, err := eventstest.Address()
	require.NoError(t, err)
	return address
}

func (n *node) store() string { return filepath.Join(n.dir, "store") }

func (c *nodes) start(i int) {
	c.t.Helper()
	require.NoError(c.t, c.all[i].start())
}

func (c *nodes) kill(i int) { c.all[i].kill() }

// signal stops a node for a while (SIGSTOP), or lets it go on (SIGCONT).
func (c *nodes) signal(i int, s syscall.Signal) { c.all[i].Signal(s) }

// wipe removes a killed node's store.
func (c *nodes) wipe(i int) {
	c.t.Helper()
	require.NoError(c.t, os.RemoveAll(c.all[i].store()))
}

func (c *nodes) urls() []string {
	var all []string
	for _, n := range c.all {
		all = append(all, "nats://"+n.addr)
	}
	return all
}

// connect reaches the cluster through whichever node is up, for as long as the test runs.
func (c *nodes) connect() jetstream.JetStream {
	c.t.Helper()
	js, err := connect(c.urls()...)
	require.NoError(c.t, err)
	c.t.Cleanup(js.Conn().Close)
	return js
}

func connect(urls ...string) (jetstream.JetStream, error) {
	nc, err := nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.RetryOnFailedConnect(true), nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // what matters comes back as an error
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(3*time.Second))
	if err != nil {
		nc.Close()
	}
	return js, err
}

// info returns what the brokers say of a stream, nil when nobody answers.
func info(js jetstream.JetStream, stream string) *jetstream.StreamInfo {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return nil
	}
	return s.CachedInfo()
}

// leader waits for a leader of the event stream and returns its number.
func (c *nodes) leader(js jetstream.JetStream) int {
	c.t.Helper()
	leader := -1
	until(c.t, "the stream has a leader", func() bool {
		i := info(js, events.DefaultStream)
		if i == nil || i.Cluster == nil {
			return false
		}
		_, err := fmt.Sscanf(i.Cluster.Leader, "node%d", &leader)
		return err == nil
	})
	return leader
}

// whole waits until every copy of the streams is current. A fault before that would be a second
// one.
func (c *nodes) whole(js jetstream.JetStream) {
	c.t.Helper()
	until(c.t, "the stream's replicas are current", func() bool {
		for _, name := range []string{events.DefaultStream, "OBJ_REGISTRY_SNAPSHOTS"} {
			i := info(js, name)
			if i == nil || i.Cluster == nil || len(i.Cluster.Replicas) != 2 {
				return false
			}
			for _, r := range i.Cluster.Replicas {
				if !r.Current || r.Offline || r.Lag > 100 {
					return false
				}
			}
		}
		return true
	})
}

// stepDown makes the stream's leader step down.
func stepDown(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	until(t, "the leader steps down", func() bool {
		m, err := js.Conn().Request("$JS.API.STREAM.LEADER.STEPDOWN."+events.DefaultStream, nil, 3*time.Second)
		return err == nil && strings.Contains(string(m.Data), `"success":true`)
	})
}
