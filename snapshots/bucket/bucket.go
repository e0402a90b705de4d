package bucket

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// Name is the bucket that snapshots are in (API contract, the program).
const Name = "REGISTRY_SNAPSHOTS"

const (
	streamName    = "OBJ_" + Name
	chunkPrefix   = "$O." + Name + ".C."
	namePrefix    = "$O." + Name + ".M."
	manifestLabel = "manifest" // in an object's metadata
)

// askWithin bounds one question to the broker.
const askWithin = 5 * time.Second

// ErrNone says that there is no bucket. ErrUnknown says that there is no snapshot of the name.
var (
	ErrNone    = errors.New("there is no bucket " + Name)
	ErrUnknown = errors.New("there is no snapshot of this name")
)

// Config says how a bucket is used. The zero values are those of the program.
type Config struct {
	// Replicas are those of a bucket that has to be made. 0: 1.
	Replicas int

	// Holder is how this process is named to others that want the lock. Empty: "unnamed".
	Holder string

	// Lease is how long a lock outlives its holder. 0: 1 min.
	Lease time.Duration

	// Chunk is the length of a chunk in bytes. 0: 512 KiB. Never more than half of what a message may have.
	Chunk int

	// OrphanAfter is the age from which chunks without a name are erased. 0: 10 min.
	OrphanAfter time.Duration
}

// Bucket is the object store. Any goroutine may use it.
type Bucket struct {
	js  jetstream.JetStream
	cfg Config
}

// New makes a Bucket. Nothing is asked yet.
func New(js jetstream.JetStream, cfg Config) *Bucket {
	cfg.Replicas = cmp.Or(cfg.Replicas, 1)
	cfg.Holder = cmp.Or(cfg.Holder, "unnamed")
	cfg.Chunk = cmp.Or(cfg.Chunk, maxChunk)
	cfg.Lease = cmp.Or(cfg.Lease, time.Minute)
	cfg.OrphanAfter = cmp.Or(cfg.OrphanAfter, 10*time.Minute)
	return &Bucket{js, cfg}
}

// stream finds the bucket's stream.
func (b *Bucket) stream(ctx context.Context) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	s, err := b.js.Stream(ctx, streamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, ErrNone
	}
	return s, b.explained(err, jetstream.DefaultAPIPrefix+"STREAM.INFO."+streamName)
}

// explained is err, or that this user of the broker may not ask what was asked on subject.
func (b *Bucket) explained(err error, subject string) error {
	return events.Refusal(b.js.Conn(), err, subject)
}

// Create makes the bucket where there is none. One that exists is never altered.
func (b *Bucket) Create(ctx context.Context) error {
	if _, err := b.stream(ctx); !errors.Is(err, ErrNone) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, err := b.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: Name, Description: "snapshots of the registry's read model",
		Storage: jetstream.FileStorage, Replicas: b.cfg.Replicas,
	})
	if errors.Is(err, jetstream.ErrBucketExists) {
		return nil // another replica was first
	}
	return b.explained(err, jetstream.DefaultAPIPrefix+"STREAM.CREATE."+streamName)
}
