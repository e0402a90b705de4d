package deploy

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
)

// cluster is one node with the accounts of nats/.
type cluster struct {
	server *server.Server
	url    string // of a broker that has no server here
	log    *violations
}

// startNode starts a node from nats/nats.conf, with free ports, its own directory, and no other
// nodes.
func startNode(t *testing.T) *cluster {
	t.Helper()
	return startNodeFrom(t, func() (*server.Options, error) { return server.ProcessConfigFile("nats/nats.conf") })
}

// startNodeFrom is startNode with another configuration.
func startNodeFrom(t *testing.T, configuration func() (*server.Options, error)) *cluster {
	t.Helper()
	c := &cluster{log: &violations{}}
	opts, err := configuration()
	require.NoError(t, err)
	if opts.Port == 0 || opts.Port == server.DEFAULT_PORT { // 0 would become the default, which another program may have
		opts.Port = server.RANDOM_PORT
	}
	opts.Host, opts.HTTPPort, opts.StoreDir = "127.0.0.1", 0, t.TempDir()
	opts.Cluster, opts.Routes = server.ClusterOpts{}, nil
	opts.NoSigs = true
	if c.server, err = server.NewServer(opts); err != nil {
		t.Fatal(err)
	}
	c.server.SetLoggerV2(c.log, true, false, false)
	c.server.Start()
	t.Cleanup(func() { c.server.Shutdown(); c.server.WaitForShutdown() })
	until(t, func() string { return "the node is ready" }, func() bool {
		if why := c.log.fatal(); why != "" {
			t.Fatal("the node does not start: ", why)
		}
		return c.server.ReadyForConnections(10 * time.Millisecond)
	})
	return c
}

// as returns a command's flags for a role.
func (c *cluster) as(role string) []string {
	return []string{"--nats-url=" + c.server.ClientURL(), "--nats-creds=" + filepath.Join(secrets, role+".nk"), "--nats-inbox-prefix=_INBOX." + role}
}

// run runs a command of the program as a role.
func (c *cluster) run(t *testing.T, role, line string) string {
	t.Helper()
	return output(t, registry, append(strings.Fields(line), c.as(role)...)...)
}

func (c *cluster) clientURL() string {
	if c.server == nil {
		return c.url
	}
	return c.server.ClientURL()
}

// connect connects as a role.
func (c *cluster) connect(t *testing.T, role string, more ...nats.Option) *nats.Conn {
	t.Helper()
	key, err := nats.NkeyOptionFromSeed(filepath.Join(secrets, role+".nk"))
	require.NoError(t, err)
	nc, err := nats.Connect(c.clientURL(), append(more, key, nats.CustomInboxPrefix("_INBOX."+role), nats.Name(role), nats.Timeout(registrytest.Patience),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// The broker's own parser reads nats.conf, and the listeners are those that the manifests open.
func TestNodeConfiguration(t *testing.T) {
	opts, err := server.ProcessConfigFile("nats/nats.conf")
	require.NoError(t, err)
	require.Equal(t, []int{4222, 8222, 6222}, []int{opts.Port, opts.HTTPPort, opts.Cluster.Port})
	require.Len(t, opts.Nkeys, 7)
	require.Equal(t, "SYS", opts.SystemAccount)
	require.GreaterOrEqual(t, len(opts.Cluster.Password), 20)
	var routes []string
	for _, route := range opts.Routes {
		routes = append(routes, route.String())
	}
	user := "nats://" + url.UserPassword("route", opts.Cluster.Password).String()
	require.Equal(t, []string{user + "@nats-0:6222", user + "@nats-1:6222", user + "@nats-2:6222"}, routes)
}

// The broker takes nats.conf with the arguments of each way to install it: it refuses a setting that is in both.
func TestNodeArguments(t *testing.T) {
	for _, file := range []string{"compose.yaml", "kubernetes/nats.yaml", "systemd/nats-server.service"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, after, _ := strings.Cut(string(text), "--config")
		line, _, _ := strings.Cut("--config"+after, "\n")
		args := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(`", []`, r) })
		args[1] = strings.Replace(args[1], "/etc/nats/", "nats/", 1)
		opts, err := server.ConfigureOptions(flag.NewFlagSet(file, flag.ContinueOnError), args, nil, nil, nil)
		require.NoError(t, err, file)
		require.True(t, filepath.IsAbs(opts.StoreDir), "%s: %s", file, opts.StoreDir)
		require.Equal(t, "registry", opts.JetStreamDomain, file)
	}
}

// Nobody connects without a key, or with another installation's. Existing secrets are kept, and nobody else reads them.
func TestKeys(t *testing.T) {
	t.Parallel()
	c := startNode(t)
	_, err := nats.Connect(c.server.ClientURL())
	require.ErrorIs(t, err, nats.ErrAuthorization)

	dir := t.TempDir()
	output(t, registry, "keys", "--dir", dir)
	key, err := nats.NkeyOptionFromSeed(filepath.Join(dir, "operator.nk"))
	require.NoError(t, err)
	_, err = nats.Connect(c.server.ClientURL(), key)
	require.ErrorIs(t, err, nats.ErrAuthorization)

	before := secretsIn(t, dir)
	output(t, registry, "keys", "--dir", dir)
	require.Equal(t, before, secretsIn(t, dir))
}

func secretsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[file] = string(text)
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), file)
	}
	return texts
}

// violations is a server log that keeps what somebody tried and was refused.
type violations struct {
	mu   sync.Mutex
	seen []string
	end  string // why the server ended, if it did
}

func (v *violations) Errorf(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); strings.Contains(line, "Violation") {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.seen = append(v.seen, line)
	}
}

// take returns what it has seen since the last call.
func (v *violations) take() (seen []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen, v.seen = v.seen, nil
	return seen
}

// Fatalf keeps why the server ends.
func (v *violations) Fatalf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.end = fmt.Sprintf(format, args...)
}

func (v *violations) fatal() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.end
}

// The rest of the server's logger.
func (*violations) Noticef(string, ...any) {}
func (*violations) Warnf(string, ...any)   {}
func (*violations) Debugf(string, ...any)  {}
func (*violations) Tracef(string, ...any)  {}
