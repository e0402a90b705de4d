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

// Store keeps what has been applied. Save is called by one goroutine at a time and returns when the
// commit is durable. After an error the commit may or may not have been kept; everything in it that
// is still true is saved again.
type Store interface {
	Save(readmodel.Commit) error
}

// Config says what to follow and where to put it.
type Config struct {
	// JetStream reaches the broker over a connection made with ConnectOptions, which need not be
	// up. The caller closes the connection after Run has returned. Required.
	JetStream jetstream.JetStream

	// Stream is the stream's name. Empty: events.DefaultStream.
	Stream string

	// Replicas and History (messages kept of a subject, 0 for all) are for streams that have to
	// be created. Replicas 0: 1. An existing stream is never altered.
	Replicas, History int

	// Erase reports whether this server may now purge the messages before a tombstone
	// (events/CONTRACT.md#erasing). Otherwise it only counts them. Nil: never.
	Erase func() bool

	// Demo says that the stream is, or shall be, the demonstration's.
	Demo bool

	// Model is what events are applied to. Run owns its writer's side while it runs. Required.
	Model *readmodel.Model

	// Store keeps what has been applied. Required unless ReadOnly. Saved is the checkpoint of store
	// and model. It is zero when nothing has been saved, and only then is a missing stream created.
	// One with a stream and no sequence replays that stream from its start, and no other.
	Store Store
	Saved readmodel.Checkpoint

	// LoggedUpTo is the last sequence whose rejection has been logged already, by the projector
	// that this one replaces. Rejections up to it are logged at level debug. 0: none.
	LoggedUpTo uint64

	// ReadOnly makes a replay that leaves no trace: it creates no stream, copies no rejected event
	// and saves nothing. It accepts the demonstration's stream like any other.
	ReadOnly bool

	// Logger receives what an operator must know. Nil: it is dropped.
	Logger *slog.Logger

	// Workers is the number of goroutines that decode and render. 0: GOMAXPROCS.
	Workers int

	// PollEvery is the time between two requests for the stream's end. 0: 500 ms.
	PollEvery time.Duration

	// VerifyEvery is the time between two looks at the checkpoint's message. 0: 5 s.
	VerifyEvery time.Duration

	// PatienceAtStart is how long a saved state is held back while the stream is not being
	// followed. If 0, it is 10 s.
	PatienceAtStart time.Duration

	// SaveEvery and SaveCount bound how long applied events wait for the store. 0: 250 ms, 1,000.
	SaveEvery time.Duration
	SaveCount int

	// RetryEvery is the wait after a failed Save, a failed copy of a rejected event, and between
	// two looks at a stream that seems shorter than the checkpoint. 0: 1 s.
	RetryEvery time.Duration

	// Limits bound what is under way. Only tests set them: small ones bring about in a small stream
	// what else takes a large one.
	Limits Limits
}

// Limits are counts of messages and records. A limit of 0 has its default.
type Limits struct {
	Pull    int // messages requested at once. 0: 2,000
	Queued  int // messages received and not yet handed to a worker. 0: 4,096
	Bulk    int // the backlog from which the orders are sorted once at its end. 0: 2,000
	Waiting int // records that wait for the store. 0: 65,536
}

// nowhere is the store of a replay that leaves no trace.
type nowhere struct{}

func (nowhere) Save(readmodel.Commit) error { return nil }

func (c Config) withDefaults() Config {
	c.Stream = cmp.Or(c.Stream, events.DefaultStream)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Workers = cmp.Or(c.Workers, runtime.GOMAXPROCS(0))
	c.PollEvery = cmp.Or(c.PollEvery, 500*time.Millisecond)
	c.VerifyEvery = cmp.Or(c.VerifyEvery, 5*time.Second)
	c.PatienceAtStart = cmp.Or(c.PatienceAtStart, 10*time.Second)
	c.SaveEvery = cmp.Or(c.SaveEvery, 250*time.Millisecond)
	c.SaveCount = cmp.Or(c.SaveCount, 1000)
	c.RetryEvery = cmp.Or(c.RetryEvery, time.Second)
	c.Limits.Pull = cmp.Or(c.Limits.Pull, pullMessages)
	c.Limits.Queued = cmp.Or(c.Limits.Queued, maxQueued)
	c.Limits.Bulk = cmp.Or(c.Limits.Bulk, bulkFrom)
	c.Limits.Waiting = cmp.Or(c.Limits.Waiting, maxWaiting)
	if c.ReadOnly {
		c.Store = nowhere{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// ConnectOptions are the options of a connection that a Projector uses: it reconnects forever,
// notices a dead broker within seconds, and fails requests at once while there is none instead of
// keeping them for later.
func ConnectOptions() []nats.Option {
	return []nats.Option{
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.IgnoreAuthErrorAbort(), // credentials may be mended on the broker's side
		nats.ReconnectBufSize(-1),
		nats.Timeout(2 * time.Second),
		nats.PingInterval(2 * time.Second),
		nats.MaxPingsOutstanding(2),
	}
}
