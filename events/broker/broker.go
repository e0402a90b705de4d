// Package broker runs a NATS server with JetStream inside this process, for a registry on one machine.
//
// It adds three things to the server: every acknowledged message has been synced to the disk, only users
// can connect from other machines, and there is at most one listener. Start with Start.
//
//	broker.go  Start, Connect, Health, Shutdown
//	options.go the server's options: listener, users, sync, limits
//	log.go     the server's log, as log/slog
package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
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
	// ConfigFile.
	Addr string

	// ConfigFile is a nats.conf. It has the users, in authorization or accounts, and maybe tls and limits for
	// clients. With accounts, the registry's streams are in the account REGISTRY. If empty, every
	// client may do everything.
	ConfigFile string

	// MaxConnections bounds the connections of clients, unless ConfigFile has a bound. 0 means the
	// server's default.
	MaxConnections int

	// UnsafeNoSync leaves writing to the disk to the operating system, which may write two minutes
	// later. It is for tests that are not about durability.
	UnsafeNoSync bool

	// Logger receives the server's log. If nil, it is dropped.
	Logger *slog.Logger
}

// Broker is a running embedded server. Any goroutine may call its methods.
type Broker struct {
	srv      *server.Server
	internal nats.Option // the user of Connect; nil if there are no users

	mu      sync.Mutex
	problem string // found by the last call of Health
}

// Start runs a broker and returns when clients can connect and every stream is open. An error is
// one line that says what to change. The caller ends the broker with Shutdown.
func Start(cfg Config) (*Broker, error) {
	b, err := startServer(cfg)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %s", natserr.OneLine(err))
	}
	return b, nil
}

func startServer(cfg Config) (*Broker, error) {
	opts, internal, err := makeOptions(cfg)
	if err != nil {
		return nil, err
	}
	if err := checkPort(opts); err != nil {
		return nil, err
	}

	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, err
	}

	log := newLogger(cfg.Logger)
	srv.SetLoggerV2(log, log.isDebug(), false, false) // the last two would log traces of the protocol
	srv.Start()                                       // returns once the stores are open, or after calling Fatalf

	// The server reports a failed start through its log alone.
	b := &Broker{srv: srv, internal: internal}
	if reason := log.fatalReason(); reason != "" {
		b.Shutdown()
		return nil, errors.New(reason)
	}
	if !srv.ReadyForConnections(readyWithin) {
		b.Shutdown()
		return nil, errors.New("not ready for connections within " + readyWithin.String())
	}
	return b, nil
}

// checkPort fails if another process has the port. It is called before any store is opened.
func checkPort(opts *server.Options) error {
	if opts.DontListen || opts.Port == server.RANDOM_PORT {
		return nil
	}

	l, err := net.Listen("tcp", net.JoinHostPort(opts.Host, fmt.Sprint(opts.Port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// ClientURL returns the nats:// address that clients connect to, with the actual port, or "" without a
// listener.
func (b *Broker) ClientURL() string {
	if addr := b.srv.Addr(); addr != nil {
		return "nats://" + addr.String()
	}
	return ""
}

// Connect opens an in-memory connection with full rights in the registry's account, whether or not
// the broker listens or has users. Options come after the defaults (reconnect forever) and may
// replace them. The caller closes the connection.
func (b *Broker) Connect(opts ...nats.Option) (*nats.Conn, error) {
	all := []nats.Option{nats.InProcessServer(b.srv), nats.MaxReconnects(-1)}
	if b.internal != nil {
		all = append(all, b.internal)
	}

	nc, err := nats.Connect("", append(all, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: connect: %w", err)
	}
	return nc, nil
}

// Health returns nil while every stream can be written. After a failed write, such as on a full disk,
// the server accepts no more events into that stream until the process is restarted; the stream can
// still be read. A problem counts once two calls in a row have found it: a stream looks lost for a moment
// while it is created or deleted. Health may wait for the disk.
func (b *Broker) Health() error {
	found := b.findProblem()

	b.mu.Lock()
	defer b.mu.Unlock()
	previous := b.problem
	b.problem = found

	if found != "" && found == previous {
		return errors.New(found)
	}
	return nil
}

// findProblem returns the first problem that the server reports, or "". It passes over accounts that the
// configuration no longer has, or has without JetStream: their streams are still on the disk.
func (b *Broker) findProblem() string {
	for _, e := range b.srv.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Account != "" {
			account, err := b.srv.LookupAccount(e.Account)
			if err != nil || !account.JetStreamEnabled() {
				continue
			}
		}
		return natserr.OneLine(errors.New(e.Error))
	}
	return ""
}

// Shutdown ends every connection, closes the streams and waits until that is done. Further calls do
// nothing.
func (b *Broker) Shutdown() {
	b.srv.Shutdown()
	b.srv.WaitForShutdown()
}
