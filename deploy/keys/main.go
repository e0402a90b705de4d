// Command keys makes the secrets of an installation (deploy/README.md): an nkey for each user of
// deploy/nats/accounts.conf, the password of the routes between nodes, and the operators' token. It
// keeps existing secrets, so you may run it again after adding a role.
package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"
)

func main() {
	dir := flag.String("dir", "deploy/secrets", "directory for the files")
	nodes := flag.String("nodes", "nats-0,nats-1,nats-2", "host names of the NATS nodes")
	flag.Parse()
	if err := run(*dir, strings.Split(*nodes, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "keys:", err)
		os.Exit(1)
	}
}

// roles are the users of accounts.conf.
func roles() []string {
	return []string{"publisher", "replica", "snapshots", "edge", "operator", "emergency", "sys"}
}

// run writes the seeds (<role>.nk), admin-token, and nats.env, which holds what the NATS nodes
// need.
func run(dir string, nodes []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var env strings.Builder
	for _, role := range roles() {
		public, err := user(filepath.Join(dir, role+".nk"))
		if err != nil {
			return err
		}
		fmt.Fprintf(&env, "REGISTRY_%s_KEY=%s\n", strings.ToUpper(role), public)
	}
	password, err := secret(filepath.Join(dir, "route-password"))
	if err != nil {
		return err
	}
	if _, err := secret(filepath.Join(dir, "admin-token")); err != nil {
		return err
	}
	var routes []string
	for _, node := range nodes {
		routes = append(routes, "nats://route:"+password+"@"+node+":6222")
	}
	fmt.Fprintf(&env, "NATS_ROUTE_PASSWORD=%s\nNATS_ROUTES=[%s]\n", password, strings.Join(routes, ", "))
	return os.WriteFile(filepath.Join(dir, "nats.env"), []byte(env.String()), 0o600)
}

// user returns the public key of the seed in file, which it makes if there is none.
func user(file string) (string, error) {
	seed, err := keep(file, func() (string, error) {
		pair, err := nkeys.CreateUser()
		if err != nil {
			return "", err
		}
		seed, err := pair.Seed()
		return string(seed), err
	})
	if err != nil {
		return "", err
	}
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return pair.PublicKey()
}

func secret(file string) (string, error) {
	return keep(file, func() (string, error) { return rand.Text(), nil })
}

// keep returns the content of file, or writes and returns what made returns if there is none.
func keep(file string, made func() (string, error)) (string, error) {
	text, err := os.ReadFile(file)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	value, err := made()
	if err != nil {
		return "", err
	}
	return value, os.WriteFile(file, []byte(value+"\n"), 0o600)
}
