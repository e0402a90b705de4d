package snapshots

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
)

// BucketName is the object store of the snapshots.
const BucketName = "REGISTRY_SNAPSHOTS"

const (
	bucketStream = "OBJ_" + BucketName
	chunkPrefix  = "$O." + BucketName + ".C." // followed by an object's NUID
	namePrefix   = "$O." + BucketName + ".M." // followed by a name in base64
	headerLabel  = "header"                   // in an object's metadata
	maxChunk     = 512 << 10                  // bytes; large, since the broker syncs its disk for each chunk
	orphanAge    = 10 * time.Minute           // from this age on, chunks without a name belong to no running Put
)

// ErrNoSnapshot means that the bucket has no snapshot of a name.
var ErrNoSnapshot = errors.New("there is no snapshot of this name")

// Bucket is the object store of snapshots, in the layout of NATS. The client library would read objects with a
// consumer, but the roles' accounts do not let a consumer's messages through. So Bucket reads each message by a
// request. Any goroutine may use a Bucket.
type Bucket struct{ stream stream.Stream }

// NewBucket returns the bucket, and makes no request.
func NewBucket(js jetstream.JetStream) *Bucket {
	return &Bucket{stream.Stream{JS: js, Name: bucketStream}}
}

// Object is one snapshot in the bucket.
type Object struct {
	Name   string
	Time   time.Time // when the snapshot was put, by the broker's clock
	Bytes  uint64
	Header Header
	Err    error // why the object cannot be used

	info jetstream.ObjectInfo
}

// BucketConfig returns the bucket's stream, as the client library of NATS makes the stream of an object store.
func BucketConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        bucketStream,
		Description: "snapshots of the registry",
		Subjects:    []string{chunkPrefix + ">", namePrefix + ">"},
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
		Discard:     jetstream.DiscardNew,
		AllowRollup: true,
		AllowDirect: true,
	}
}

// Ensure makes the bucket if it is missing. It never alters an existing one.
func (b *Bucket) Ensure(ctx context.Context, replicas int) error {
	_, err := b.stream.Ensure(ctx, BucketConfig(replicas))
	return err
}

// Put puts a snapshot of the store into the bucket, which must exist. It holds the packed snapshot in memory. If Put
// fails, chunks may remain, which Prune removes.
func (b *Bucket) Put(ctx context.Context, s *Store) (Object, error) {
	var packed bytes.Buffer
	h, err := writePacked(ctx, s, &packed)
	if err != nil {
		return Object{}, err
	}

	header, err := json.Marshal(h)
	if err != nil {
		return Object{}, err
	}

	// NATS's own client reads objects by this description.
	checksum := sha256.New()
	checksum.Write(packed.Bytes())
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{
			Name:     fmt.Sprintf("%s-%s-%012d-%s", h.Stream, h.Epoch, h.Sequence, h.Time.UTC().Format("20060102T150405.000Z")),
			Metadata: map[string]string{headerLabel: string(header)},
		},
		Bucket: BucketName, NUID: rand.Text(), Size: uint64(packed.Len()), Digest: jetstream.GetObjectDigestValue(checksum),
	}

	for chunk := range slices.Chunk(packed.Bytes(), int(min(maxChunk, b.stream.JS.Conn().MaxPayload()/2))) {
		info.Chunks++
		if err := b.putChunk(ctx, info.NUID, chunk); err != nil {
			return Object{}, fmt.Errorf("chunk %d: %w", info.Chunks, err)
		}
	}

	// The name comes last: only then do the chunks become a snapshot.
	text, err := json.Marshal(info)
	if err != nil {
		return Object{}, err
	}

	name := &nats.Msg{Subject: nameSubject(info.Name), Data: text}
	err = b.stream.Publish(ctx, name, jetstream.WithExpectLastSequencePerSubject(0))
	return Object{Name: info.Name, Time: time.Now(), Bytes: info.Size, Header: h, info: info}, err
}

func writePacked(ctx context.Context, s *Store, to io.Writer) (Header, error) {
	packed, err := Pack(to)
	if err != nil {
		return Header{}, err
	}
	h, err := Write(ctx, s, packed, nil)
	return h, errors.Join(err, packed.Close())
}

func (b *Bucket) putChunk(ctx context.Context, nuid string, chunk []byte) error {
	err := b.stream.Publish(ctx, &nats.Msg{Subject: chunkPrefix + nuid, Data: chunk})
	if errors.Is(err, natserr.ErrRefused) { // say it without the NUID, so that the text is the same for all objects
		return fmt.Errorf("%w: this user of the broker may not publish to %s>", natserr.ErrRefused, chunkPrefix)
	}
	return err
}

func nameSubject(name string) string {
	return namePrefix + base64.URLEncoding.EncodeToString([]byte(name))
}

// List returns all snapshots, the newest first. Without a bucket there are none.
func (b *Bucket) List(ctx context.Context) ([]Object, error) {
	subjects, err := b.listSubjects(ctx, namePrefix+">")
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	var all []Object
	for _, subject := range subjects {
		o, err := b.readObject(ctx, subject)
		if errors.Is(err, ErrNoSnapshot) { // removed since
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}

	slices.SortFunc(all, func(x, y Object) int { return cmp.Or(y.Time.Compare(x.Time), cmp.Compare(y.Name, x.Name)) })
	return all, nil
}

// listSubjects returns the subjects of the bucket's stream that match a filter.
func (b *Bucket) listSubjects(ctx context.Context, filter string) ([]string, error) {
	info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(info.State.Subjects)), nil
}

func (b *Bucket) readObject(ctx context.Context, subject string) (Object, error) {
	m, err := b.stream.LastMessage(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return Object{}, ErrNoSnapshot
	}
	if err != nil {
		return Object{}, err
	}

	// Other programs may have put an object that is no snapshot.
	name, _ := base64.URLEncoding.DecodeString(strings.TrimPrefix(subject, namePrefix))
	o := Object{Name: string(name), Time: m.Time}
	if err := json.Unmarshal(m.Data, &o.info); err != nil {
		o.Err = errors.New("not an object")
		return o, nil
	}

	if o.info.Deleted {
		return Object{}, ErrNoSnapshot
	}

	o.Bytes = o.info.Size
	err = json.Unmarshal([]byte(o.info.Metadata[headerLabel]), &o.Header)
	if err == nil {
		err = checkHeader(o.Header)
	}
	if err != nil {
		o.Err = fmt.Errorf("not a snapshot of this version: %w", err)
	}
	return o, nil
}

// Open reads a snapshot into memory, and returns a reader for Read. It does not verify the object's checksum, which
// is for other programs, since Read verifies the content.
func (b *Bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	o, err := b.readObject(ctx, nameSubject(name))
	if err != nil {
		return nil, err
	}

	var packed []byte
	nextSequence := uint64(1)
	for n := range o.info.Chunks {
		m, err := b.stream.NextMessageOf(ctx, chunkPrefix+o.info.NUID, nextSequence)
		if err != nil {
			return nil, fmt.Errorf("chunk %d of %d: %w", n+1, o.info.Chunks, err)
		}
		packed = append(packed, m.Data...)
		nextSequence = m.Sequence + 1
	}
	return io.NopCloser(bytes.NewReader(packed)), nil
}

// Prune keeps the newest snapshots of the registry with the identity id. Their number is keep, but at least 1. Prune
// removes the registry's older snapshots and the chunks that a killed Put has left, and returns the names of the
// removed snapshots.
func (b *Bucket) Prune(ctx context.Context, id stream.Identity, keep int) (removed []string, err error) {
	all, err := b.List(ctx)
	if err != nil {
		return nil, err
	}

	own := slices.DeleteFunc(all, func(o Object) bool {
		return o.Err != nil || o.Header.Stream != id.Stream || !id.Has(o.Header.Epoch)
	})

	numKept := min(max(keep, 1), len(own))
	for _, o := range own[numKept:] { // the newest come first
		if err := errors.Join(b.purgeSubject(ctx, nameSubject(o.Name)), b.purgeSubject(ctx, chunkPrefix+o.info.NUID)); err != nil {
			return removed, fmt.Errorf("%s: %w", o.Name, err)
		}
		removed = append(removed, o.Name)
	}
	return removed, b.removeOrphans(ctx)
}

func (b *Bucket) purgeSubject(ctx context.Context, subject string) error {
	return b.stream.PurgeBefore(ctx, subject, math.MaxUint64)
}

// removeOrphans removes old chunks that belong to no name.
func (b *Bucket) removeOrphans(ctx context.Context) error {
	chunks, err := b.listSubjects(ctx, chunkPrefix+">")
	if err != nil {
		return err
	}

	// List the names after the chunks. In the other order, chunks of a Put that ends in between would lack a name.
	all, err := b.List(ctx)
	if err != nil {
		return err
	}

	for _, subject := range chunks {
		if slices.ContainsFunc(all, func(o Object) bool { return chunkPrefix+o.info.NUID == subject }) {
			continue
		}

		last, err := b.stream.LastMessage(ctx, subject)
		isGone := errors.Is(err, jetstream.ErrMsgNotFound)
		isRecent := err == nil && time.Since(last.Time) < orphanAge // perhaps of a Put in progress
		if isGone || isRecent {
			continue
		}
		if err != nil { // the age is unknown, so the chunks may be of a Put in progress
			return err
		}

		if err := b.purgeSubject(ctx, subject); err != nil {
			return err
		}
	}
	return nil
}
