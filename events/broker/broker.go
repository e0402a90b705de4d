package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"example.org/registry/events/natserr"
)

// readyWithin bounds the wait for the listener after the stores have been opened.
const readyWithin = 10 * time.Second

// Config configures a Broker: where it stores its streams and who may connect.
type Config struct {
	// StoreDir is the directory of the streams. Required; created if missing.
	StoreDir string

	// Addr is "host:port" for clients, with port 0 for a free one. If it is "-" or empty, there is
	// no listener, and only Connect reaches the broker. A host that is not loopback requires a
	// ConfigFile with users.
	Addr string

	// ConfigFile is a nats.conf that says who may connect: authorization or accounts with users
	// (passwords or nkeys), tls, and limits for clients. Any other top-level setting is an error,
	// and so is a file without users. If empty, every client may do everything.
	ConfigFile string

	// Account is the account in ConfigFile with the registry's streams. If empty, it is the only
	// account with JetStream, or the global account if the file has no accounts.
	Account string

	// MaxStore bounds the streams on disk, in bytes. 0 means their current size plus three quarters
	// of the free space, at least 256 MiB and at most 64 GiB.
	MaxStore int64

	// MaxMemory bounds JetStream's memory, in bytes. 0 means 256 MiB. The registry keeps only the
	// state of consumers there.
	MaxMemory int64

	// MaxConnections bounds the connections of clients, unless ConfigFile does. 0 means the server's
	// default.
	MaxConnections int

	// UnsafeNoSync leaves writing to the disk to the operating system, up to two minutes late. It
	// is for tests that are not about durability. By default the broker syncs before it
	// acknowledges.
	UnsafeNoSync bool

	// Logger receives the server's log. If nil, it is dropped.
	Logger *slog.Logger
}

// Broker is a running embedded server. Any goroutine may call its methods.
type Broker struct {
	cfg Config // with the actual port

	mu       sync.Mutex // held by Recover and Shutdown
	closed   bool
	restarts time.Time // time of the last attempt of Recover

	current atomic.Pointer[running]
	failed  atomic.Pointer[error] // why Recover could not start a server; nil if it could, or was not needed
}

// running is one server. Recover replaces it.
type running struct {
	srv      *server.Server
	addr     string // empty if it does not listen
	internal credentials

	// lost are the streams that could not be recovered at the start and have not returned since.
	// The server reports the same for a stream that is being created or deleted, since its
	// directory exists before and after the stream.
	mu   sync.Mutex
	lost map[string]bool // by the text of the server's error; nil before the first check
}

// Start runs a broker and returns when clients can connect and every stream is open. An error is
// one line that says what to change. The caller owns the broker and ends it with Shutdown.
func Start(cfg Config) (*Broker, error) {
	opts, internal, err := options(cfg)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	b := &Broker{cfg: cfg}
	if err := b.launch(opts, internal); errors.Is(err, errNotSynced) {
		return nil, fmt.Errorf("embedded broker: %w; mend the disk and start again", err)
	} else if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	return b, nil
}

// launch starts a server and makes it the current one. After an error there is no new server.
func (b *Broker) launch(opts *server.Options, internal credentials) error {
	if err := portFree(b.cfg.Addr); err != nil {
		return err
	}
	if opts.SyncAlways {
		if err := syncStreams(opts.StoreDir); err != nil {
			return err
		}
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return errors.New(natserr.OneLine(err))
	}
	log := newLogger(b.cfg.Logger)
	srv.SetLoggerV2(log, log.debug(), false, false)
	srv.Start() // returns once the stores are open, or after calling Fatalf
	if err := started(srv, log); err != nil {
		end(srv)
		return err
	}
	r := &running{srv: srv, internal: internal}
	if !opts.DontListen {
		r.addr = srv.Addr().String()
		b.cfg.Addr = samePort(b.cfg.Addr, r.addr)
	}
	r.problems() // records what is lost
	r.warnOfUnused(log, opts.StoreDir)
	b.current.Store(r)
	return nil
}

func started(srv *server.Server, log *logger) error {
	if reason := log.fatal(); reason != "" {
		return errors.New(reason)
	}
	if !srv.ReadyForConnections(readyWithin) {
		return errors.New("not ready for connections within " + readyWithin.String())
	}
	return nil
}

// samePort returns the configured address with the actual port, where clients expect the next
// server.
func samePort(addr, is string) string {
	host, _, _ := net.SplitHostPort(addr) // was parsed before
	_, port, _ := net.SplitHostPort(is)
	return net.JoinHostPort(host, port)
}

// portFree fails early, before any store is opened, if another process has the port.
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

// Addr returns the host:port that clients connect to, with the actual port, or "" without a
// listener.
func (b *Broker) Addr() string { return b.current.Load().addr }

// ClientURL returns the nats:// address of Addr, or "" without a listener.
func (b *Broker) ClientURL() string {
	addr := b.Addr()
	if addr == "" {
		return ""
	}
	return "nats://" + addr
}

// Connect opens an in-memory connection with full rights in the registry's account, whether or not
// the broker listens or has users. Options come after the defaults (reconnect forever) and may
// replace them. The caller closes the connection.
func (b *Broker) Connect(opts ...nats.Option) (*nats.Conn, error) {
	all := []nats.Option{nats.InProcessServer(b), nats.MaxReconnects(-1)}
	if b.current.Load().internal != (credentials{}) {
		all = append(all, nats.UserInfoHandler(b.userInfo))
	}
	nc, err := nats.Connect("", append(all, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: connect: %w", err)
	}
	return nc, nil
}

// InProcessConn implements nats.InProcessConnProvider, so a connection that reconnects reaches the
// current server.
func (b *Broker) InProcessConn() (net.Conn, error) { return b.current.Load().srv.InProcessConn() }

func (b *Broker) userInfo() (name, password string) {
	internal := b.current.Load().internal
	return internal.name, internal.password
}

// Shutdown ends every connection, closes the streams and waits until that is done. Further calls do
// nothing.
func (b *Broker) Shutdown() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	end(b.current.Load().srv)
}

func end(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}
