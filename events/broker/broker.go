package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// readyWithin bounds the wait for the listener once the stores have been recovered.
const readyWithin = 10 * time.Second

// Config says where the broker keeps its streams and who may reach it.
type Config struct {
	// StoreDir is the directory of the streams. Required; made when absent.
	StoreDir string

	// Addr is "host:port" for clients, port 0 for a free one. "-" or empty: no listener, the
	// broker is reached through Connect only. A host that is not loopback needs a
	// ConfigFile with users.
	Addr string

	// ConfigFile is a nats.conf that says who may connect: authorization or accounts with
	// users (passwords or nkeys), tls, and limits for clients. Any other top-level setting
	// is an error, and so are no users at all. Empty: whoever reaches Addr may do everything.
	ConfigFile string

	// Account is the account of ConfigFile in which the registry's streams are. Empty: the
	// only one with JetStream, or the global account where the file has no accounts.
	Account string

	// MaxStore bounds the streams on disk, in bytes. 0: three quarters of what is free or
	// already theirs, at least 256 MiB and at most 64 GiB.
	MaxStore int64

	// MaxMemory bounds what JetStream keeps in memory, in bytes. 0: 256 MiB. The registry
	// keeps only the state of consumers there.
	MaxMemory int64

	// UnsafeNoSync leaves writing to disk to the operating system, two minutes late. For
	// tests that are not about durability; false (the zero value) syncs before it
	// acknowledges.
	UnsafeNoSync bool

	// Logger takes the server's log. Nil: it is dropped.
	Logger *slog.Logger
}

// Broker is a running embedded server. Its methods may be called from any goroutine.
type Broker struct {
	srv      *server.Server
	listens  bool
	user     string // of Connect; empty when no users are configured
	password string
}

// Start runs a broker and returns when clients can connect and every stream is recovered.
// An error says in one line what to change. The caller owns the broker and ends it with Shutdown.
func Start(cfg Config) (*Broker, error) {
	opts, internal, err := options(cfg)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	if err := portFree(cfg.Addr); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", oneLine(err))
	}
	log := newLogger(cfg.Logger)
	srv.SetLoggerV2(log, log.debug(), false, false)
	b := &Broker{srv: srv, listens: !opts.DontListen, user: internal.name, password: internal.password}
	srv.Start() // returns once the stores are recovered, or after calling Fatalf
	if reason := log.fatal(); reason != "" {
		b.Shutdown()
		return nil, fmt.Errorf("embedded broker: %s", reason)
	}
	if !srv.ReadyForConnections(readyWithin) {
		b.Shutdown()
		return nil, errors.New("embedded broker: not ready for connections within " + readyWithin.String())
	}
	return b, nil
}

// portFree tells early, before any store is opened, that another process has the port.
func portFree(addr string) error {
	host, port, listens, err := splitAddr(addr)
	if err != nil || !listens || port == server.RANDOM_PORT {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// Connect opens a connection through memory, allowed to do everything in the registry's
// account, whether or not the broker listens or has users. Options come after the defaults
// (reconnect for ever) and may replace them. The caller closes the connection.
func (b *Broker) Connect(opts ...nats.Option) (*nats.Conn, error) {
	all := []nats.Option{nats.InProcessServer(b.srv), nats.MaxReconnects(-1)}
	if b.user != "" {
		all = append(all, nats.UserInfo(b.user, b.password))
	}
	nc, err := nats.Connect("", append(all, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: connect: %w", err)
	}
	return nc, nil
}

// Addr is the host:port that clients connect to, with the real port; empty without a listener.
func (b *Broker) Addr() string {
	if !b.listens {
		return ""
	}
	return b.srv.Addr().String()
}

// ClientURL is the nats:// address of Addr; empty without a listener.
func (b *Broker) ClientURL() string {
	if !b.listens {
		return ""
	}
	return "nats://" + b.Addr()
}

// Shutdown ends every connection, closes the streams and waits until it is done. Calling it
// again is harmless.
func (b *Broker) Shutdown() {
	b.srv.Shutdown()
	b.srv.WaitForShutdown()
}
