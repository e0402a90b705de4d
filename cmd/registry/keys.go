package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"

	"example.org/registry/cmd/registry/internal/cli"
)

// keysCmd makes the secrets of an installation.
type keysCmd struct {
	Dir   string   `default:"secrets" placeholder:"DIR" help:"Directory for the files."`
	Nodes []string `default:"nats-0,nats-1,nats-2" placeholder:"NAME" help:"Host names of the brokers, separated by commas."`
}

// Help returns the help beyond the flags.
func (keysCmd) Help() string {
	return "Writes ROLE.nk, the seed for --nats-creds, for each role: " + strings.Join(roles, ", ") + ". " +
		"Beside them admin-token, for --admin-token-file, and nats.env, the public keys and the routes for the brokers' environment. " +
		"Secrets that exist stay as they are, so it may be run again."
}

// roles are the users of deploy/nats/accounts.conf.
var roles = []string{"publisher", "replica", "snapshots", "edge", "operator", "emergency", "sys"}

// Run writes the files.
func (c *keysCmd) Run(p *process) error {
	if err := c.write(); err != nil {
		return cli.Unwritable("--dir", c.Dir, err)
	}
	_, err := fmt.Fprintf(p.stdout, "%s: %d keys, admin-token and nats.env\n", cli.Printable(c.Dir), len(roles))
	return err
}

func (c *keysCmd) write() error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	var env strings.Builder
	for _, role := range roles {
		public, err := c.publicKey(role)
		if err != nil {
			return err
		}
		fmt.Fprintf(&env, "REGISTRY_%s_KEY=%s\n", strings.ToUpper(role), public)
	}

	if _, err := c.secret("admin-token", newToken); err != nil {
		return err
	}
	password, err := c.secret("route-password", newToken)
	if err != nil {
		return err
	}
	var routes []string
	for _, node := range c.Nodes {
		routes = append(routes, "nats://route:"+password+"@"+node+":6222")
	}
	fmt.Fprintf(&env, "NATS_ROUTE_PASSWORD=%s\nNATS_ROUTES=[%s]\n", password, strings.Join(routes, ", "))
	return os.WriteFile(filepath.Join(c.Dir, "nats.env"), []byte(env.String()), 0o600)
}

// publicKey returns the public key of a role.
func (c *keysCmd) publicKey(role string) (string, error) {
	name := role + ".nk"
	seed, err := c.secret(name, newSeed)
	if err != nil {
		return "", err
	}
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return pair.PublicKey()
}

// secret returns the content of a file, or writes a new secret into it if it is missing.
func (c *keysCmd) secret(name string, create func() (string, error)) (string, error) {
	path := filepath.Join(c.Dir, name)
	text, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	value, err := create()
	if err != nil {
		return "", err
	}
	return value, os.WriteFile(path, []byte(value+"\n"), 0o600)
}

func newToken() (string, error) { return rand.Text(), nil }

func newSeed() (string, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	seed, err := pair.Seed()
	return string(seed), err
}
