package projector

import (
	"cmp"
	"log/slog"
	"runtime"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// Store saves applied events. One goroutine at a time calls Save, which returns when the commit is
// durable. After an error the commit may or may not be stored; everything in it that is still
// current is saved again.
//
// Any goroutine may call State, which returns the state of a subject as of the last commit, or ok
// false if there is none.
type Store interface {
	Save(readmodel.Commit) error
	State(events.Subject) (state readmodel.State, ok bool, err error)
}

// Config configures a Projector.
type Config struct {
	// JetStream reaches the broker over a connection made with ConnectOptions, which need not be
	// up. The caller closes the connection after Run has returned. Required.
	JetStream jetstream.JetStream

	// Stream is the stream's name. If empty, it is events.DefaultStream.
	Stream string

	// Replicas and History (messages kept for each subject, 0 for all) apply when a stream is
	// created. Replicas 0 means 1. An existing stream is never altered.
	Replicas, History int

	// Erase reports whether this server may now purge the messages before a tombstone, and publish a
	// state again that other messages have displaced (events/CONTRACT.md#erasing). Otherwise it only
	// counts tombstones. If nil, it never may.
	Erase func() bool

	// Markers says that such a server may publish the marker of a history again, too: in a cluster
	// only the operator may.
	Markers bool

	// Demo selects the demonstration's stream.
	Demo bool

	// Model receives the events. Run owns its writer's side while it runs. Required.
	Model *readmodel.Model

	// Store saves applied events. Required unless ReadOnly. Saved is the checkpoint of store and
	// model. If Saved is zero, nothing has been saved, and only then is a missing stream created. A
	// Saved with a stream but no sequence replays exactly that stream from its start.
	Store Store
	Saved readmodel.Checkpoint

	// Owed is what must be known before the model is served; nil for nothing. AcceptLoss is the
	// operator's word that it is lost: the epoch of the stream, or without a stream the newest
	// history of Owed.
	Owed       *readmodel.Owed
	AcceptLoss string

	// LoggedUpTo is the last sequence whose rejection was logged by the projector that this one
	// replaces. Rejections up to it are logged at level debug. 0 means none.
	LoggedUpTo uint64

	// ReadOnly makes a replay that leaves no trace: it creates no stream, copies no rejected event
	// and saves nothing. It accepts the demonstration's stream like any other.
	ReadOnly bool

	// Logger receives messages for the operator. If nil, they are dropped.
	Logger *slog.Logger

	// Workers is the number of goroutines that decode and render. 0 means GOMAXPROCS.
	Workers int

	// PollEvery is the time between two requests for the stream's end. 0 means 500 ms.
	PollEvery time.Duration

	// VerifyEvery is the time between two checks of the checkpoint's message. 0 means 5 s.
	VerifyEvery time.Duration

	// StartupTimeout is how long a saved state is withheld while the stream is not being followed.
	// 0 means 10 s.
	StartupTimeout time.Duration

	// SaveEvery and SaveCount bound how long applied events wait for the store. 0 means 250 ms and
	// 1,000 events.
	SaveEvery time.Duration
	SaveCount int

	// RetryEvery is the wait after a failed Save, after a failed copy of a rejected event, and before
	// the second look at a stream that seems missing or foreign. 0 means 1 s.
	RetryEvery time.Duration

	// Limits bound the work in progress. Only tests set them: small limits cause in a small stream
	// what otherwise takes a large one.
	Limits Limits
}

// Limits are counts of messages and records. 0 means the default.
type Limits struct {
	Pull    int // messages requested at once; by default 2,000
	Bulk    int // backlog from which the orders are sorted once at its end; by default 2,000
	Waiting int // records that wait for the store; by default 65,536
}

// nowhere is the Store of a replay that leaves no trace.
type nowhere struct{}

func (nowhere) Save(readmodel.Commit) error { return nil }

func (nowhere) State(events.Subject) (s readmodel.State, ok bool, err error) { return s, false, nil }

func (c Config) withDefaults() Config {
	c.Stream = cmp.Or(c.Stream, events.DefaultStream)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Workers = cmp.Or(c.Workers, runtime.GOMAXPROCS(0))
	c.PollEvery = cmp.Or(c.PollEvery, 500*time.Millisecond)
	c.VerifyEvery = cmp.Or(c.VerifyEvery, 5*time.Second)
	c.StartupTimeout = cmp.Or(c.StartupTimeout, 10*time.Second)
	c.SaveEvery = cmp.Or(c.SaveEvery, 250*time.Millisecond)
	c.SaveCount = cmp.Or(c.SaveCount, 1000)
	c.RetryEvery = cmp.Or(c.RetryEvery, time.Second)
	c.Limits.Bulk = cmp.Or(c.Limits.Bulk, bulkFrom)
	c.Limits.Waiting = cmp.Or(c.Limits.Waiting, maxWaiting)
	if c.ReadOnly {
		c.Store = nowhere{}
	}
	if c.Erase == nil {
		c.Erase = func() bool { return false }
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// ConnectOptions returns the options for a Projector's connection: it reconnects forever, detects a
// dead broker within seconds, and fails requests at once while disconnected instead of queueing
// them.
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
	}
}
