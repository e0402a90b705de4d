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
	cfg Config // with the port that was found free

	mu       sync.Mutex // held by Recover and Shutdown
	closed   bool
	restarts time.Time // the last one that Recover tried

	current atomic.Pointer[running]
	failed  atomic.Pointer[error] // why Recover could not; nil: it did, or had not to
}

// running is one server: Recover puts another one in its place.
type running struct {
	srv      *server.Server
	addr     string // empty: it does not listen
	internal credentials

	// lost is which streams could not be recovered when it started and are not there since. The server says the
	// same of one that is being made or removed: its directory is there before, and after, the stream is.
	mu   sync.Mutex
	lost map[string]bool // by what the server says; nil: not looked yet
}

// Start runs a broker and returns when clients can connect and every stream is recovered.
// An error says in one line what to change. The caller owns the broker and ends it with Shutdown.
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

// launch makes a server the current one. After an error there is no new one.
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
		return oneLine(err)
	}
	log := newLogger(b.cfg.Logger)
	srv.SetLoggerV2(log, log.debug(), false, false)
	srv.Start() // returns once the stores are recovered, or after calling Fatalf
	if err := started(srv, log); err != nil {
		end(srv)
		return err
	}
	r := &running{srv: srv, internal: internal}
	if !opts.DontListen {
		r.addr = srv.Addr().String()
		b.cfg.Addr = samePort(b.cfg.Addr, r.addr)
	}
	r.troubles() // notes what is lost
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

// samePort is the configured address with the real port, at which clients expect the next server.
func samePort(addr, is string) string {
	host, _, _ := net.SplitHostPort(addr) // has been read before
	_, port, _ := net.SplitHostPort(is)
	return net.JoinHostPort(host, port)
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

// Addr is the host:port that clients connect to, with the real port; empty without a listener.
func (b *Broker) Addr() string { return b.current.Load().addr }

// ClientURL is the nats:// address of Addr; empty without a listener.
func (b *Broker) ClientURL() string {
	addr := b.Addr()
	if addr == "" {
		return ""
	}
	return "nats://" + addr
}

// Shutdown ends every connection, closes the streams and waits until it is done. Calling it
// again is harmless.
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
