package projector

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// Store keeps the applied states. *snapshots.Store implements it. One goroutine at a time calls Save, which returns
// when the commit is durable. After an error, the caller saves the same commit again, since the store may have it or
// not. Any goroutine calls the other methods.
type Store interface {
	Save(snapshots.Commit) error
	State(events.Subject) (state snapshots.State, ok bool, err error)
	Each(begin func(m snapshots.Meta, count int) error, visit func(snapshots.State) error) error
}

// Config configures a Projector.
type Config struct {
	// JetStream uses a connection made with ConnectOptions. The connection need not be up. The caller closes it after
	// Run has returned. Required.
	JetStream jetstream.JetStream

	// Stream is the stream's name. If empty, it is events.DefaultStream.
	Stream string

	// Replicas and History (messages kept for each subject, 0 for all) apply when a stream is created. Replicas 0
	// means 1. A projector never alters an existing stream.
	Replicas, History int

	// MayWrite reports whether this server may now purge the messages before a removal, and publish a displaced state
	// again. If nil, this server never may.
	MayWrite func() bool

	// ReadOnly is for a replay that leaves no trace at the broker: it creates no stream and copies no rejected event.
	// It reads the demonstration's stream like any other.
	ReadOnly bool

	// Demo makes the projector follow a demonstration's stream, and no other.
	Demo bool

	// Model receives the events. Nothing else may write to it while Run runs. Required.
	Model *readmodel.Model

	// Store saves applied events. Required. Meta is the position of store and model in the stream. It is zero if both
	// are empty: only then does the projector create a missing stream.
	Store Store
	Meta  snapshots.Meta

	// Logger receives messages for the operator. If nil, they are dropped.
	Logger *slog.Logger

	// StartupTimeout is how long, after New, a saved state waits for the stream before the state is served. 0 means
	// 10 s.
	StartupTimeout time.Duration

	pace pace // usualPace, unless a test sets it
}

// pace holds the times between repeated steps.
type pace struct {
	saveEvery    time.Duration // between an applied event and the start of its commit
	pollEvery    time.Duration // between two requests for the stream's end
	stuckAfter   time.Duration // how long a consumer may deliver nothing although the stream has more
	retryEvery   time.Duration // the wait after a failed save, the longest wait between sessions, and the wait before freezing
	restoreEvery time.Duration // between two publications of the same subject's state
}

var usualPace = pace{
	saveEvery:    250 * time.Millisecond,
	pollEvery:    500 * time.Millisecond,
	stuckAfter:   5 * time.Second,
	retryEvery:   time.Second,
	restoreEvery: time.Minute,
}

func (c Config) withDefaults() Config {
	c.Stream = cmp.Or(c.Stream, events.DefaultStream)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.StartupTimeout = cmp.Or(c.StartupTimeout, 10*time.Second)
	c.pace = cmp.Or(c.pace, usualPace)
	if c.MayWrite == nil {
		c.MayWrite = func() bool { return false }
	}
	return c
}

// ConnectOptions returns the options for a Projector's connection. It reconnects forever, detects a dead broker
// within seconds, and fails requests at once while it is down.
func ConnectOptions() []nats.Option {
	return []nats.Option{
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.IgnoreAuthErrorAbort(), // the operator may fix credentials at the broker
		nats.ReconnectBufSize(-1),
		nats.Timeout(2 * time.Second),
		nats.PingInterval(2 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // without a handler, the library prints every error
	}
}
