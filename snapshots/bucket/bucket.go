package bucket

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/snapshots"
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

// Item is one object of the bucket.
type Item struct {
	Name  string
	Time  time.Time // when it was complete, by the broker's clock
	Bytes uint64

	// Manifest is what was said of the archive when it was put; Bad is why there is none, or why
	// this program cannot use the archive.
	Manifest snapshots.Manifest
	Bad      error

	info    jetstream.ObjectInfo
	subject string
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

// List is every snapshot, the newest first, and the broker's time. Nothing that is still being put is
// among them.
func (b *Bucket) List(ctx context.Context) ([]Item, time.Time, error) {
	s, err := b.stream(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	subjects, now, err := subjectsOf(ctx, s, namePrefix+">")
	if err != nil {
		return nil, now, err
	}
	var items []Item
	for subject := range subjects {
		item, err := b.item(ctx, s, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // pruned in the meantime
		}
		if err != nil {
			return nil, now, err
		}
		if !item.info.Deleted {
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(a, b Item) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Name, a.Name)) })
	return items, now, nil
}

// subjectsOf lists the subjects that the filter matches, with the number of their messages.
func subjectsOf(ctx context.Context, s jetstream.Stream, filter string) (map[string]uint64, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, time.Time{}, err
	}
	return info.State.Subjects, info.TimeStamp, nil
}

func (b *Bucket) item(ctx context.Context, s jetstream.Stream, subject string) (Item, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	m, err := s.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return Item{}, err
	}
	item := Item{Time: m.Time, subject: subject}
	if err := json.Unmarshal(m.Data, &item.info); err != nil {
		name, _ := base64.URLEncoding.DecodeString(strings.TrimPrefix(subject, namePrefix))
		item.Name, item.Bad = string(name), fmt.Errorf("not an object: %w", err)
		return item, nil
	}
	item.Name, item.Bytes = item.info.Name, item.info.Size
	item.Manifest, item.Bad = snapshots.ParseManifest([]byte(item.info.Metadata[manifestLabel]))
	return item, nil
}

// Find is the snapshot of this name; ErrUnknown when there is none.
func (b *Bucket) Find(ctx context.Context, name string) (Item, error) {
	s, err := b.stream(ctx)
	if err != nil {
		return Item{}, err
	}
	item, err := b.item(ctx, s, namePrefix+base64.URLEncoding.EncodeToString([]byte(name)))
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && item.info.Deleted {
		return Item{}, ErrUnknown
	}
	return item, err
}
