package broker

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/conf"
	"github.com/nats-io/nats-server/v2/server"

	"example.org/registry/events/natserr"
)

// allowed reports whether a configuration file may have a top-level setting, in lower case. All
// others would open a listener, move the store, or admit clients that are not users.
func allowed(setting string) bool {
	switch setting {
	case "authorization", "accounts", "system_account", "tls",
		"max_connections", "max_conn", "max_subscriptions", "max_subs", "max_control_line",
		"max_pending", "ping_interval", "ping_max", "write_deadline", "write_timeout":
		return true
	}
	return false
}

// maxConfig bounds the configuration file, in bytes.
const maxConfig = 1 << 20

// readConfigFile reads a nats.conf that only says who may connect. It also returns the account with
// the registry's streams, which is nil for the global one.
func readConfigFile(file, account string) (*server.Options, *server.Account, error) {
	if info, err := os.Stat(file); err == nil && (!info.Mode().IsRegular() || info.Size() > maxConfig) {
		return nil, nil, fmt.Errorf("%s: not a regular file of at most 1 MiB", file)
	}
	tree, err := conf.ParseFileWithChecks(file)
	if err != nil {
		return nil, nil, errors.New(natserr.OneLine(err))
	}
	if err := checkSettings(file, tree); err != nil {
		return nil, nil, err
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		return nil, nil, errors.New(natserr.OneLine(err))
	}
	if err := checkUsers(file, opts); err != nil {
		return nil, nil, err
	}
	acc, err := streamAccount(file, tree, opts, account)
	return clientSettings(opts), acc, err
}

// clientSettings copies the settings that allowed accepts. A setting that is also used as a
// variable passes checkSettings ("http_port: 8222, max_conn: $http_port"), but is not copied here.
func clientSettings(o *server.Options) *server.Options {
	return &server.Options{
		Users: o.Users, Nkeys: o.Nkeys, Accounts: o.Accounts, SystemAccount: o.SystemAccount, AuthTimeout: o.AuthTimeout,
		TLS: o.TLS, TLSConfig: o.TLSConfig, TLSTimeout: o.TLSTimeout, TLSVerify: o.TLSVerify, TLSPinnedCerts: o.TLSPinnedCerts,
		TLSRateLimit: o.TLSRateLimit, TLSHandshakeFirst: o.TLSHandshakeFirst, TLSHandshakeFirstFallback: o.TLSHandshakeFirstFallback,
		MaxConn: o.MaxConn, MaxSubs: o.MaxSubs, MaxControlLine: o.MaxControlLine, MaxPending: o.MaxPending,
		PingInterval: o.PingInterval, MaxPingsOut: o.MaxPingsOut, WriteDeadline: o.WriteDeadline, WriteTimeout: o.WriteTimeout,
	}
}

// checkSettings rejects the settings that allowed does not accept. Variables that others refer to
// are not settings.
func checkSettings(file string, tree map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if t, ok := tree[name].(interface{ IsUsedVariable() bool }); ok && t.IsUsedVariable() {
			continue
		}
		if !allowed(strings.ToLower(name)) {
			return fmt.Errorf("%s: the setting %q is not for the embedded broker", file, name)
		}
	}
	return nil
}

// checkUsers rejects settings that would admit clients without a secret of their own, or lock out
// the internal user. It turns the single user of an authorization block into a list of users,
// because the server ignores that user once there is a list, and adding the internal user makes
// one.
func checkUsers(file string, opts *server.Options) error {
	if opts.Username != "" {
		opts.Users = append(opts.Users, &server.User{Username: opts.Username, Password: opts.Password})
		opts.Username, opts.Password = "", ""
	}
	switch {
	case opts.AuthCallout != nil:
		return fmt.Errorf("%s: auth_callout is not for the embedded broker", file)
	case opts.Authorization != "":
		return fmt.Errorf("%s: tokens are not supported, since they name no user: define users", file)
	case opts.TLSMap:
		// The server would ask the in-memory connection for a certificate.
		return fmt.Errorf("%s: verify_and_map is not for the embedded broker: define users with passwords or nkeys", file)
	}
	for _, u := range opts.Users {
		if u.Password == "" {
			return fmt.Errorf("%s: the user %q has no password", file, u.Username)
		}
	}
	return nil
}

// streamAccount finds the account of the registry's streams.
func streamAccount(file string, tree map[string]any, opts *server.Options, name string) (*server.Account, error) {
	if len(opts.Accounts) == 0 && name == "" {
		return nil, nil
	}
	if name == "" {
		found := jetStreamAccounts(tree)
		if len(found) != 1 {
			return nil, fmt.Errorf("%s: exactly one account must have JetStream, for the registry's streams; found %d", file, len(found))
		}
		name = found[0]
	}
	for _, acc := range opts.Accounts {
		if acc.Name == name {
			return acc, nil
		}
	}
	return nil, fmt.Errorf("%s: no account %q", file, name)
}

// jetStreamAccounts returns the names of the accounts whose block enables JetStream. The server
// only knows them once it runs.
func jetStreamAccounts(tree map[string]any) []string {
	var names []string
	for name, block := range members(tree, "accounts") {
		settings, _ := value(block).(map[string]any)
		for k, v := range settings {
			if strings.EqualFold(k, "jetstream") && turnsOn(value(v)) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func members(tree map[string]any, setting string) map[string]any {
	for k, v := range tree {
		if strings.EqualFold(k, setting) {
			m, _ := value(v).(map[string]any)
			return m
		}
	}
	return nil
}

// value unwraps the parser's position token.
func value(v any) any {
	if t, ok := v.(interface{ Value() any }); ok {
		return t.Value()
	}
	return v
}

func turnsOn(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case string:
		return strings.EqualFold(v, "enabled") || strings.EqualFold(v, "enable")
	case map[string]any:
		return true
	}
	return false
}
