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

// readyWithin bounds the wait for the listener once the stores have been opened.
const readyWithin = 10 * time.Second

// Config says where the broker keeps its streams and who may reach it.
type Config struct {
	// StoreDir is the directory of the streams. Required; created when absent.
	StoreDir string

	// Addr is "host:port" for clients, port 0 for a free one. "-" or empty: no listener, only
	// Connect reaches the broker. A host that is not loopback needs a ConfigFile with users.
	Addr string

	// ConfigFile is a nats.conf that says who may connect: authorization or accounts with
	// users (passwords or nkeys), tls, and limits for clients. Any other top-level setting
	// is an error, and so are no users at all. If empty, every client may do everything.
	ConfigFile string

	// Account is the account of ConfigFile that holds the registry's streams. Empty: the only one
	// with JetStream, or the global account where the file has no accounts.
	Account string

	// MaxStore bounds the streams on disk, in bytes. 0: what they have and three quarters of what
	// is free, at least 256 MiB and at most 64 GiB.
	MaxStore int64

	// MaxMemory bounds what JetStream keeps in memory, in bytes. 0: 256 MiB. The registry keeps
	// only the state of consumers there.
	MaxMemory int64

	// UnsafeNoSync leaves writing to the disk to the operating system, up to two minutes late: for
	// tests that are not about durability. False: the broker syncs before it acknowledges.
	UnsafeNoSync bool

	// Logger receives the server's log. Nil: it is dropped.
	Logger *slog.Logger
}

// Broker is a running embedded server. Its methods may be called from any goroutine.
type Broker struct {
	cfg Config // with the port that was found free

	mu       sync.Mutex // held by Recover and Shutdown
	closed   bool
	restarts time.Time // when Recover last tried

	current atomic.Pointer[running]
	failed  atomic.Pointer[error] // why Recover could not start a server; nil: it could, or did not have to
}

// running is one server: Recover puts another one in its place.
type running struct {
	srv      *server.Server
	addr     string // empty: it does not listen
	internal credentials

	// lost are the streams that could not be recovered at the start and have not come back since.
	// The server says the same of one that is being created or deleted, whose directory is there
	// before and after the stream is.
	mu   sync.Mutex
	lost map[string]bool // by the text of the server's error; nil: not asked yet
}

// Start runs a broker and returns when clients can connect and every stream is open. An error says
// in one line what to change. The caller owns the broker and ends it with Shutdown.
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

// launch starts a server and makes it the current one. After an error there is no new one.
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
	r.problems() // notes what is lost
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

// samePort returns the configured address with the real port, at which clients expect the next
// server.
func samePort(addr, is string) string {
	host, _, _ := net.SplitHostPort(addr) // has been read before
	_, port, _ := net.SplitHostPort(is)
	return net.JoinHostPort(host, port)
}

// portFree fails early, before any store is opened, when another process has the port.
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

// Addr returns the host:port that clients connect to, with the real port; empty without a listener.
func (b *Broker) Addr() string { return b.current.Load().addr }

// ClientURL returns the nats:// address of Addr; empty without a listener.
func (b *Broker) ClientURL() string {
	addr := b.Addr()
	if addr == "" {
		return ""
	}
	return "nats://" + addr
}

// Connect opens a connection through memory that may do everything in the registry's account,
// whether or not the broker listens or has users. Options come after the defaults (reconnect
// forever) and may replace them. The caller closes the connection.
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

// Shutdown ends every connection, closes the streams and waits until that is done. Calling it again
// is harmless.
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
