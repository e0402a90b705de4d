package snapshots

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
)

// BucketName is the object store of the snapshots.
const BucketName = "REGISTRY_SNAPSHOTS"

const (
	bucketStream  = "OBJ_" + BucketName
	chunkPrefix   = "$O." + BucketName + ".C." // followed by an object's NUID
	namePrefix    = "$O." + BucketName + ".M." // followed by a name in base64
	headerLabel   = "header"                   // in an object's metadata
	bucketTimeout = 10 * time.Second           // for one request, for which the broker may sync its disk
	maxChunk      = 512 << 10                  // bytes: the broker syncs each chunk once
	orphanAge     = 10 * time.Minute           // of chunks without a name that no Put is sending any more
)

// ErrNoSnapshot means that the bucket has no snapshot of a name.
var ErrNoSnapshot = errors.New("there is no snapshot of this name")

// Bucket is the object store of snapshots, in the layout of NATS. It makes single requests: the
// accounts of the roles pass no messages of a consumer, by which the client library reads objects. Any
// goroutine may use it.
type Bucket struct {
	js       jetstream.JetStream
	replicas int
}

// NewBucket returns the bucket, without a request. replicas is for Create.
func NewBucket(js jetstream.JetStream, replicas int) *Bucket { return &Bucket{js, max(1, replicas)} }

// Object is one snapshot in the bucket.
type Object struct {
	Name   string
	Time   time.Time // when it was completed, by the broker's clock
	Bytes  uint64
	Header Header
	Err    error // why it cannot be used

	info jetstream.ObjectInfo
}

// Create makes the bucket if it is missing. It never alters one.
func (b *Bucket) Create(ctx context.Context) error {
	if _, err := b.stream().Info(ctx); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	_, err := b.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: BucketName, Description: "snapshots of the registry", Storage: jetstream.FileStorage, Replicas: b.replicas,
	})
	if errors.Is(err, jetstream.ErrBucketExists) {
		return nil // another server was first
	}
	return b.explain(err, "STREAM.CREATE")
}

func (b *Bucket) stream() stream.Stream { return stream.Stream{JS: b.js, Name: bucketStream} }

// Put writes a snapshot of the store to a temporary file in dir, and then puts that into the bucket,
// which must exist. If it fails, chunks may remain, which Prune removes.
func (b *Bucket) Put(ctx context.Context, s *Store, dir string) (Object, error) {
	f, err := os.CreateTemp(dir, "snapshot-*")
	if err != nil {
		return Object{}, fmt.Errorf("%w; %s", err, remedy(err))
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	h, err := WritePacked(ctx, s, f)
	if err != nil {
		return Object{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Object{}, err
	}
	return b.put(ctx, h, f)
}

// WritePacked is Write, packed.
func WritePacked(ctx context.Context, s *Store, to io.Writer) (Header, error) {
	packed, err := Pack(to)
	if err != nil {
		return Header{}, err
	}
	h, err := Write(ctx, s, packed, nil)
	return h, errors.Join(err, packed.Close())
}

// Pack returns a writer that packs for Unpack. Close ends the packed text.
func Pack(to io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
}

func (b *Bucket) put(ctx context.Context, h Header, from io.Reader) (Object, error) {
	header, err := json.Marshal(h)
	if err != nil {
		return Object{}, err
	}
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: nameOf(h), Metadata: map[string]string{headerLabel: string(header)}},
		Bucket:     BucketName, NUID: rand.Text(),
	}
	if err := b.putChunks(ctx, &info, from); err != nil {
		return Object{}, err
	}

	text, err := json.Marshal(info)
	if err != nil {
		return Object{}, err
	}
	err = b.publish(ctx, nameSubject(info.Name), text, jetstream.WithExpectLastSequencePerSubject(0))
	return Object{Name: info.Name, Time: time.Now(), Bytes: info.Size, Header: h, info: info}, err
}

// putChunks publishes the chunks, and records their number, length and checksum in info.
func (b *Bucket) putChunks(ctx context.Context, info *jetstream.ObjectInfo, from io.Reader) error {
	sum, chunk := sha256.New(), make([]byte, min(maxChunk, b.js.Conn().MaxPayload()/2))
	for {
		n, err := io.ReadFull(from, chunk)
		if n > 0 {
			err := b.publish(ctx, chunkPrefix+info.NUID, chunk[:n])
			if errors.Is(err, natserr.ErrRefused) { // one text for all objects
				err = fmt.Errorf("%w: this user of the broker may not publish to %s>", natserr.ErrRefused, chunkPrefix)
			}
			if err != nil {
				return fmt.Errorf("chunk %d: %w", info.Chunks+1, err)
			}
			sum.Write(chunk[:n])
			info.Size += uint64(n)
			info.Chunks++
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			info.Digest = jetstream.GetObjectDigestValue(sum)
			return nil
		case err != nil:
			return err
		}
	}
}

func (b *Bucket) publish(ctx context.Context, subject string, data []byte, opts ...jetstream.PublishOpt) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	m := &nats.Msg{Subject: subject, Data: data}
	_, err := b.js.PublishMsg(ctx, m, append(opts, jetstream.WithExpectStream(bucketStream))...)
	return natserr.Explain(b.js.Conn(), err, subject)
}

// nameOf returns the name of a snapshot.
func nameOf(h Header) string {
	return fmt.Sprintf("%s-%s-%012d-%s", h.Stream, h.Epoch, h.Sequence, h.Time.UTC().Format("20060102T150405.000Z"))
}

func nameSubject(name string) string {
	return namePrefix + base64.URLEncoding.EncodeToString([]byte(name))
}

// List returns all snapshots, the newest put first. Without a bucket there are none.
func (b *Bucket) List(ctx context.Context) ([]Object, error) {
	subjects, err := b.subjects(ctx, namePrefix+">")
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Object
	for _, subject := range subjects {
		o, err := b.object(ctx, subject)
		switch {
		case errors.Is(err, ErrNoSnapshot): // removed since
		case err != nil:
			return nil, err
		default:
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b Object) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Name, a.Name)) })
	return all, nil
}

// subjects returns the subjects of the bucket's stream that match a filter.
func (b *Bucket) subjects(ctx context.Context, filter string) (all []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	s, err := b.find(ctx)
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, b.explain(err, "STREAM.INFO")
	}
	if info.Cluster != nil && info.Cluster.Leader == "" {
		return nil, stream.ErrLeaderless
	}
	for subject := range info.State.Subjects {
		all = append(all, subject)
	}
	slices.Sort(all)
	return all, nil
}

// object reads the description of one object.
func (b *Bucket) object(ctx context.Context, subject string) (Object, error) {
	m, err := b.stream().LastMessage(ctx, subject)
	switch {
	case errors.Is(err, stream.ErrNoMessage), errors.Is(err, jetstream.ErrStreamNotFound):
		return Object{}, ErrNoSnapshot
	case err != nil:
		return Object{}, err
	}
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
	if o.Err = json.Unmarshal([]byte(o.info.Metadata[headerLabel]), &o.Header); o.Err == nil {
		o.Err = checkHeader(o.Header)
	}
	if o.Err != nil {
		o.Err = fmt.Errorf("not a snapshot of this version: %w", o.Err)
	}
	return o, nil
}

// Open returns a reader of a snapshot, for Read. ctx bounds all of the reading.
func (b *Bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	o, err := b.object(ctx, nameSubject(name))
	if err != nil {
		return nil, err
	}
	finding, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	s, err := b.find(finding)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(&chunks{ctx: ctx, bucket: b, stream: s, info: o.info, next: 1}), nil
}

// find returns the bucket's stream, or jetstream.ErrStreamNotFound.
func (b *Bucket) find(ctx context.Context) (jetstream.Stream, error) {
	if !b.js.Conn().IsConnected() {
		return nil, stream.ErrNotConnected
	}
	s, err := b.js.Stream(ctx, bucketStream)
	return s, b.explain(err, "STREAM.INFO")
}

// explain explains the error of a request of JetStream's API about the bucket's stream.
func (b *Bucket) explain(err error, request string) error {
	return natserr.Explain(b.js.Conn(), err, jetstream.DefaultAPIPrefix+request+"."+bucketStream)
}

// chunks reads the chunks of an object. (Read verifies the content, so the checksum is for others.)
type chunks struct {
	ctx    context.Context
	bucket *Bucket
	stream jetstream.Stream
	info   jetstream.ObjectInfo
	next   uint64 // stream sequence of the next search
	read   uint32
	left   []byte // of the current chunk
}

// Read implements io.Reader.
func (c *chunks) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		if c.read == c.info.Chunks {
			return 0, io.EOF
		}
		ctx, cancel := context.WithTimeout(c.ctx, bucketTimeout)
		defer cancel()
		m, err := c.stream.GetMsg(ctx, c.next, jetstream.WithGetMsgSubject(chunkPrefix+c.info.NUID))
		if err != nil {
			return 0, fmt.Errorf("chunk %d of %d: %w", c.read+1, c.info.Chunks, c.bucket.explain(err, "DIRECT.GET"))
		}
		c.read, c.next, c.left = c.read+1, m.Sequence+1, m.Data
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

// Prune removes all but the newest keep snapshots of the registry that id is of, and chunks that a
// killed Put has left. It returns the names that it removed.
func (b *Bucket) Prune(ctx context.Context, id stream.Identity, keep int) (removed []string, err error) {
	all, err := b.List(ctx)
	if err != nil {
		return nil, err
	}
	kept := 0
	for _, o := range all {
		if o.Err != nil || o.Header.Stream != id.Stream || !id.Has(o.Header.Epoch) {
			continue
		}
		if kept++; kept <= max(keep, 1) {
			continue
		}
		if err := errors.Join(b.purge(ctx, nameSubject(o.Name)), b.purge(ctx, chunkPrefix+o.info.NUID)); err != nil {
			return removed, fmt.Errorf("%s: %w", o.Name, err)
		}
		removed = append(removed, o.Name)
	}
	return removed, b.removeOrphans(ctx)
}

// purge removes all messages of a subject.
func (b *Bucket) purge(ctx context.Context, subject string) error {
	return b.stream().PurgeBefore(ctx, subject, math.MaxUint64)
}

// removeOrphans removes old chunks that belong to no name.
func (b *Bucket) removeOrphans(ctx context.Context) error {
	orphans, err := b.subjects(ctx, chunkPrefix+">")
	if err != nil {
		return err
	}
	all, err := b.List(ctx) // after the chunks, so that a name that is put now is there
	if err != nil {
		return err
	}
	for _, subject := range orphans {
		if slices.ContainsFunc(all, func(o Object) bool { return chunkPrefix+o.info.NUID == subject }) {
			continue
		}
		last, err := b.stream().LastMessage(ctx, subject)
		if errors.Is(err, stream.ErrNoMessage) || err == nil && time.Since(last.Time) < orphanAge {
			continue // perhaps of a Put in progress
		}
		if err := errors.Join(err, b.purge(ctx, subject)); err != nil {
			return err
		}
	}
	return nil
}
