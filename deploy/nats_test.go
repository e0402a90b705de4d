package deploy

import (
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
)

// cluster is one node with the accounts of nats/, and the installation's secrets.
type cluster struct {
	server  *server.Server
	secrets string // directory
	log     *violations
}

// startNode starts a node from nats/nats.conf itself, changed only where a test must: free ports, its own directory, no other nodes.
func startNode(t *testing.T) *cluster {
	t.Helper()
	return startNodeFrom(t, func() (*server.Options, error) { return server.ProcessConfigFile("nats/nats.conf") })
}

// startNodeFrom is startNode with another file.
func startNodeFrom(t *testing.T, configuration func() (*server.Options, error)) *cluster {
	t.Helper()
	c := &cluster{secrets: t.TempDir(), log: &violations{}}
	setSecrets(t, c.secrets)
	opts, err := configuration()
	if err != nil {
		t.Fatal(err)
	}
	if opts.Port == server.DEFAULT_PORT {
		opts.Port = -1
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
	if !c.server.ReadyForConnections(30 * time.Second) {
		t.Fatal("the node does not start")
	}
	return c
}

// setSecrets makes them as an operator does, and gives the node its environment.
func setSecrets(t *testing.T, dir string) {
	t.Helper()
	output(t, "go", "run", "./keys", "-dir", dir)
	env, err := os.ReadFile(filepath.Join(dir, "nats.env"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(env)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		t.Setenv(name, value)
	}
	t.Setenv("NATS_NAME", "nats-0")
}

// as are the flags of a command that is a role.
func (c *cluster) as(role string) []string {
	return []string{"--nats-url=" + c.server.ClientURL(), "--nats-creds=" + filepath.Join(c.secrets, role+".nk"), "--nats-inbox-prefix=_INBOX." + role}
}

// connect is a connection of a role's user.
func (c *cluster) connect(t *testing.T, role string, more ...nats.Option) *nats.Conn {
	t.Helper()
	key, err := nats.NkeyOptionFromSeed(filepath.Join(c.secrets, role+".nk"))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(c.server.ClientURL(), append(more, key, nats.CustomInboxPrefix("_INBOX."+role), nats.Name(role),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// The whole configuration of a node, read by the server's own parser; and the listeners are those that the manifests open.
func TestNodeConfiguration(t *testing.T) {
	setSecrets(t, t.TempDir())
	opts, err := server.ProcessConfigFile("nats/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for _, route := range opts.Routes {
		routes = append(routes, route.Host)
	}
	listeners := fmt.Sprintf("%d %d %d %s %v", opts.Port, opts.HTTPPort, opts.Cluster.Port, opts.Cluster.Name, routes)
	if want := "4222 8222 6222 registry [nats-0:6222 nats-1:6222 nats-2:6222]"; listeners != want {
		t.Errorf("%s, want %s", listeners, want)
	}
	if !opts.JetStream || opts.StoreDir != "/data" || opts.ServerName != "nats-0" || opts.SystemAccount != "SYS" || len(opts.Nkeys) != 6 {
		t.Errorf("JetStream %v in %q, name %q, system account %q, %d users", opts.JetStream, opts.StoreDir, opts.ServerName, opts.SystemAccount, len(opts.Nkeys))
	}
	if opts.Cluster.Username != "route" || len(opts.Cluster.Password) < 20 || opts.Routes[0].User.String() != url.UserPassword("route", opts.Cluster.Password).String() {
		t.Error("routes are not authorized with the routes' password")
	}
}

// Whoever is no user is refused; so is one with a seed of another installation.
func TestStrangers(t *testing.T) {
	c := startNode(t)
	if _, err := nats.Connect(c.server.ClientURL()); err == nil {
		t.Error("connected without a key")
	}
	other := t.TempDir()
	output(t, "go", "run", "./keys", "-dir", other)
	key, err := nats.NkeyOptionFromSeed(filepath.Join(other, "operator.nk"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nats.Connect(c.server.ClientURL(), key); err == nil {
		t.Error("connected with another installation's key")
	}
}

// Secrets that are there are kept.
func TestKeysAreKept(t *testing.T) {
	dir := t.TempDir()
	output(t, "go", "run", "./keys", "-dir", dir)
	before := readAll(t, dir)
	output(t, "go", "run", "./keys", "-dir", dir)
	if after := readAll(t, dir); after != before {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
	for _, file := range []string{"replica.nk", "admin-token", "nats.env"} {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Error(file, info, err)
		}
	}
}

func readAll(t *testing.T, dir string) (all string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all += file.Name() + ": " + string(text)
	}
	return all
}

// violations is a server log that keeps what somebody tried and may not.
type violations struct {
	mu   sync.Mutex
	seen []string
}

func (v *violations) Errorf(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); strings.Contains(line, "Violation") {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.seen = append(v.seen, line)
	}
}

// take returns what was seen since the last call.
func (v *violations) take() (seen []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen, v.seen = v.seen, nil
	return seen
}

// The rest of the server's logger.
func (*violations) Noticef(string, ...any) {}
func (*violations) Warnf(string, ...any)   {}
func (*violations) Fatalf(string, ...any)  {}
func (*violations) Debugf(string, ...any)  {}
func (*violations) Tracef(string, ...any)  {}
