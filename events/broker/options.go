package broker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// serverName is fixed: JetStream keeps it in its state, and a changing one looks like
// another server after a restart.
const serverName = "registry"

// credentials are those of the connections that Connect makes. Empty: none are needed.
type credentials struct{ name, password string }

// options turns a Config into the server's options, everything of which is decided here:
// what the configuration file may say is limited by readConfigFile.
func options(cfg Config) (*server.Options, credentials, error) {
	if cfg.StoreDir == "" {
		// The server would fall back to the temporary directory.
		return nil, credentials{}, errors.New("no directory for its streams is configured")
	}
	host, port, listens, err := splitAddr(cfg.Addr)
	if err != nil {
		return nil, credentials{}, err
	}
	opts, internal, err := clientOptions(cfg)
	if err != nil {
		return nil, credentials{}, err
	}
	if listens && !loopback(host) && len(opts.Users)+len(opts.Nkeys) == 0 {
		return nil, credentials{}, fmt.Errorf("%s is not a loopback address: it needs a configuration file with users", cfg.Addr)
	}
	if err := os.MkdirAll(cfg.StoreDir, 0o700); err != nil {
		return nil, credentials{}, err
	}
	opts.ServerName = serverName
	opts.Host, opts.Port, opts.DontListen = host, port, !listens
	opts.NoSigs, opts.NoLog = true, true
	opts.JetStream, opts.DisableJetStreamBanner = true, true
	opts.StoreDir = cfg.StoreDir
	opts.SyncAlways = !cfg.UnsafeNoSync
	opts.JetStreamMaxStore, opts.JetStreamMaxMemory = storeLimit(cfg), memoryLimit(cfg)
	return opts, internal, nil
}

// clientOptions are the options about who may connect, with the internal user among them
// where there are users at all: without users the server asks nobody for a name.
func clientOptions(cfg Config) (*server.Options, credentials, error) {
	if cfg.ConfigFile == "" {
		return &server.Options{}, credentials{}, nil
	}
	opts, account, err := readConfigFile(cfg.ConfigFile, cfg.Account)
	if err != nil {
		return nil, credentials{}, err
	}
	if len(opts.Users)+len(opts.Nkeys) == 0 {
		return opts, credentials{}, errors.New(cfg.ConfigFile + " defines no users: whoever connects could do everything")
	}
	internal := credentials{name: "registry-internal-" + rand.Text(), password: rand.Text()}
	opts.Users = append(opts.Users, &server.User{Username: internal.name, Password: internal.password, Account: account})
	return opts, internal, nil
}

// splitAddr reads Config.Addr. listens is false when no listener is wanted.
func splitAddr(addr string) (host string, port int, listens bool, err error) {
	if addr == "" || addr == "-" {
		return "", 0, false, nil
	}
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, false, fmt.Errorf("address %q is not host:port", addr)
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, false, fmt.Errorf("address %q: the port is not a number from 0 to 65535", addr)
	}
	if host == "" {
		host = "0.0.0.0" // what the server would make of it; never loopback
	}
	if n == 0 {
		return host, server.RANDOM_PORT, true, nil // 0 would mean 4222 to the server
	}
	return host, int(n), true, nil
}

// loopback is true for a host that only this machine can reach. Names other than localhost
// are not resolved: what they resolve to can change.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
