package broker

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/conf"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"
)

const (
	// serverName is fixed: JetStream stores it in its state, and another name would look like another
	// server after a restart.
	serverName = "registry"

	// streamAccount has the registry's streams if the configuration has accounts.
	streamAccount = "REGISTRY"

	mebibyte  = int64(1) << 20
	minStore  = 256 * mebibyte
	maxStore  = 64 * 1024 * mebibyte
	maxMemory = 256 * mebibyte // JetStream keeps only the state of consumers in memory
)

// makeOptions returns the server's options, and the option for Connect's user, which is nil if there are
// no users.
func makeOptions(cfg Config) (*server.Options, nats.Option, error) {
	if cfg.StoreDir == "" {
		return nil, nil, errors.New("no directory for its streams is configured") // the server would use a temporary one
	}

	// Who may connect, and from where?
	opts, internal, err := readUsers(cfg.ConfigFile)
	if err != nil {
		return nil, nil, err
	}

	if err := setListener(opts, cfg.Addr); err != nil {
		return nil, nil, err
	}
	hasUsers := internal != nil
	isLocal := opts.DontListen || Loopback(opts.Host)
	if !hasUsers && !isLocal {
		return nil, nil, fmt.Errorf("%s is not a loopback address: it needs a configuration file with users", cfg.Addr)
	}

	if err := os.MkdirAll(cfg.StoreDir, 0o700); err != nil {
		return nil, nil, err
	}
	if opts.MaxConn == 0 {
		opts.MaxConn = cfg.MaxConnections
	}

	// The configuration file cannot change the following options.
	opts.ServerName = serverName
	opts.NoSigs = true
	opts.NoLog = true
	opts.JetStream = true
	opts.DisableJetStreamBanner = true
	opts.StoreDir = cfg.StoreDir
	opts.SyncAlways = !cfg.UnsafeNoSync
	opts.JetStreamMaxStore = storeLimit(cfg.StoreDir)
	opts.JetStreamMaxMemory = maxMemory
	return opts, internal, nil
}

func setListener(opts *server.Options, addr string) error {
	if addr == "" || addr == "-" {
		opts.DontListen = true
		return nil
	}

	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q is not host:port", addr)
	}

	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return fmt.Errorf("address %q: the port is not a number from 0 to 65535", addr)
	}

	opts.Host = cmp.Or(host, "0.0.0.0")               // as the server does for an empty host
	opts.Port = cmp.Or(int(port), server.RANDOM_PORT) // the server would take 0 for 4222
	return nil
}

// Loopback reports whether only programs on this machine can reach host. It does not resolve names
// other than localhost, because the result can change.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// allowed are the top-level settings of a configuration file. All others would open a listener, move
// the store, or admit clients that are not users.
var allowed = []string{"authorization", "accounts", "system_account", "tls", "max_connections", "max_subscriptions",
	"max_control_line", "max_pending", "ping_interval", "ping_max", "write_deadline"}

// readUsers reads the configuration file, and adds a user for Connect. Without a file there are no users, and the
// option for Connect is nil.
func readUsers(file string) (*server.Options, nats.Option, error) {
	if file == "" {
		return &server.Options{}, nil, nil
	}

	if err := checkSettings(file); err != nil {
		return nil, nil, err
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		return nil, nil, err
	}

	// Move a single user into the list. Connect's user needs the list, and beside a list the server ignores a single user.
	if opts.Username != "" {
		opts.Users = append(opts.Users, &server.User{Username: opts.Username, Password: opts.Password})
		opts.Username = ""
		opts.Password = ""
	}

	if err := checkUsers(opts); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	internal, err := addInternalUser(opts)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return opts, internal, nil
}

// checkUsers refuses options that let clients in without a key or a password.
func checkUsers(opts *server.Options) error {
	if len(opts.Users)+len(opts.Nkeys) == 0 {
		return errors.New("it defines no users: any client could do everything")
	}
	for _, u := range opts.Users {
		if u.Password == "" {
			return fmt.Errorf("the user %q has no password", u.Username)
		}
	}
	if opts.AuthCallout != nil || opts.Authorization != "" || opts.TLSMap {
		return errors.New("auth_callout, token and verify_and_map are not for the embedded broker")
	}
	return nil
}

// addInternalUser adds a user for Connect, in the account of the registry's streams, and returns the option for it.
func addInternalUser(opts *server.Options) (nats.Option, error) {
	internal := &server.User{Username: "registry-internal-" + rand.Text(), Password: rand.Text()}
	if len(opts.Accounts) > 0 {
		i := slices.IndexFunc(opts.Accounts, func(a *server.Account) bool { return a.Name == streamAccount })
		if i < 0 {
			return nil, fmt.Errorf("the account of the registry's streams must have the name %s", streamAccount)
		}
		internal.Account = opts.Accounts[i]
	}

	opts.Users = append(opts.Users, internal)
	return nats.UserInfo(internal.Username, internal.Password), nil
}

// checkSettings refuses a configuration file with settings that are not allowed.
func checkSettings(file string) error {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", file) // reading a pipe would wait forever
	}

	settings, err := conf.ParseFile(file)
	if err != nil {
		return err
	}
	for name := range settings {
		if !slices.Contains(allowed, strings.ToLower(name)) {
			return fmt.Errorf("%s: the setting %q is not for the embedded broker", file, name)
		}
	}
	return nil
}

// storeLimit returns how many bytes the streams may take in all: their current size and three quarters of
// the free space, within bounds. Without the current size, the server would refuse its own streams after a
// restart on a full disk.
func storeLimit(dir string) int64 {
	return min(max(freeBytes(dir)/4*3+usedBytes(dir), minStore), maxStore)
}

// freeBytes returns how many bytes an unprivileged process may still write, or 0 if that is
// unknown.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0
	}
	return int64(min(st.Bavail*uint64(st.Bsize), uint64(maxStore)*4)) // storeLimit uses less
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
