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

func (keysCmd) Help() string {
	return "Writes ROLE.nk, the seed for --nats-creds, for each role: " + strings.Join(roles, ", ") + ". " +
		"Beside them admin-token, for --admin-token-file, and nats.env, the public keys and the routes for the brokers' environment. " +
		"Secrets that exist stay as they are, so it may be run again."
}

// roles are the users of deploy/nats/accounts.conf.
var roles = []string{"publisher", "replica", "snapshots", "edge", "operator", "emergency", "sys"}

// Run writes the files.
func (c *keysCmd) Run(p *process) error {
	if err := c.writeFiles(); err != nil {
		return cli.FileError("--dir", c.Dir, err)
	}
	_, err := fmt.Fprintf(p.stdout, "%s: %d keys, admin-token and nats.env\n", cli.Printable(c.Dir), len(roles))
	return err
}

func (c *keysCmd) writeFiles() error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}

	var env strings.Builder
	for _, role := range roles {
		public, err := c.ensureKey(role)
		if err != nil {
			return err
		}
		fmt.Fprintf(&env, "REGISTRY_%s_KEY=%s\n", strings.ToUpper(role), public)
	}

	if _, err := c.ensureSecret("admin-token", rand.Text()); err != nil {
		return err
	}
	password, err := c.ensureSecret("route-password", rand.Text())
	if err != nil {
		return err
	}

	// Each broker connects to all others as the same user.
	var routes []string
	for _, node := range c.Nodes {
		routes = append(routes, "nats://route:"+password+"@"+node+":6222")
	}
	fmt.Fprintf(&env, "NATS_ROUTE_PASSWORD=%s\nNATS_ROUTES=[%s]\n", password, strings.Join(routes, ", "))
	return os.WriteFile(filepath.Join(c.Dir, "nats.env"), []byte(env.String()), 0o600)
}

// ensureKey returns the public key of a role, and makes its key if it is missing.
func (c *keysCmd) ensureKey(role string) (public string, err error) {
	// The new seed is kept only if the file is missing.
	newKey, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	newSeed, err := newKey.Seed()
	if err != nil {
		return "", err
	}

	seed, err := c.ensureSecret(role+".nk", string(newSeed))
	if err != nil {
		return "", err
	}

	key, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", fmt.Errorf("%s.nk: %w", role, err)
	}
	return key.PublicKey()
}

// ensureSecret returns the secret in a file. If the file is missing, it writes newSecret into it.
func (c *keysCmd) ensureSecret(name, newSecret string) (string, error) {
	path := filepath.Join(c.Dir, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newSecret, os.WriteFile(path, []byte(newSecret+"\n"), 0o600)
	}
	return strings.TrimSpace(string(text)), err
}
