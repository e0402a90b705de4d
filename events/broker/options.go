package broker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"
)

// serverName is fixed: JetStream stores it in its state, and another name would look like another
// server after a restart.
const serverName = "registry"

// credentials are those of the connections that Connect opens. If empty, none are needed.
type credentials struct{ name, password string }

// options turns a Config into the server's options. It makes all decisions; readConfigFile
// restricts the configuration file.
func options(cfg Config) (*server.Options, credentials, error) {
	if cfg.StoreDir == "" {
		// The server would use the temporary directory.
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
	if listens && !Loopback(host) && len(opts.Users)+len(opts.Nkeys) == 0 {
		return nil, credentials{}, fmt.Errorf("%s is not a loopback address: it needs a configuration file with users", cfg.Addr)
	}
	if err := os.MkdirAll(cfg.StoreDir, 0o700); err != nil {
		return nil, credentials{}, err
	}
	if opts.MaxConn == 0 {
		opts.MaxConn = cfg.MaxConnections
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

// clientOptions returns the options about who may connect. If there are users, it adds the internal
// user; without users the server asks for no name.
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

// splitAddr parses Config.Addr. listens is false if there is to be no listener.
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
		host = "0.0.0.0" // as the server interprets it; never loopback
	}
	if n == 0 {
		return host, server.RANDOM_PORT, true, nil // the server interprets 0 as 4222
	}
	return host, int(n), true, nil
}

// Loopback reports whether only programs on this machine can reach host. It does not resolve names
// other than localhost, because the result can change.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

const (
	mebibyte      = int64(1) << 20
	minStore      = 256 * mebibyte
	maxStore      = 64 * 1024 * mebibyte
	defaultMemory = 256 * mebibyte
)

// storeLimit returns how many bytes the streams may take in all. It includes their current size, so
// that after a restart on a full disk the server does not refuse its own streams.
func storeLimit(cfg Config) int64 {
	if cfg.MaxStore > 0 {
		return cfg.MaxStore
	}
	return min(max(freeBytes(cfg.StoreDir)/4*3+usedBytes(cfg.StoreDir), minStore), maxStore)
}

func memoryLimit(cfg Config) int64 {
	if cfg.MaxMemory > 0 {
		return cfg.MaxMemory
	}
	return defaultMemory
}

// freeBytes returns how many bytes an unprivileged process may still write, or 0 if that is
// unknown.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0
	}
	return int64(min(st.Bavail*uint64(st.Bsize), uint64(maxStore)*4))
}

// usedBytes returns the size of the readable files below dir.
func usedBytes(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file may vanish; an estimate suffices
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
