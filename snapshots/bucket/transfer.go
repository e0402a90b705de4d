package bucket

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/failpoint"
	"example.org/registry/events/natserr"
	"example.org/registry/snapshots"
)

// maxChunk is the length of a chunk in bytes: the broker syncs each chunk once, and memory holds
// one.
const maxChunk = 512 << 10

// Put puts a verified archive into the bucket under the name that its manifest determines. After an
// error the name may or may not exist; it never exists without its chunks. One goroutine at a time
// may call it.
func (b *Bucket) Put(ctx context.Context, m snapshots.Manifest, archive io.Reader) (Object, error) {
	s, err := b.stream(ctx)
	if err != nil {
		return Object{}, err
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		return Object{}, err
	}
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{
			Name:     nameOf(m),
			Metadata: map[string]string{manifestLabel: string(manifest)},
			Opts:     &jetstream.ObjectMetaOptions{ChunkSize: uint32(b.chunkSize())},
		},
		Bucket: Name, NUID: rand.Text(),
	}
	last, err := b.putChunks(ctx, &info, archive)
	if err == nil {
		err = failpoint.Hit("upload/before-name")
	}
	if err == nil && time.Since(last) > b.orphanAfter/2 {
		err = errors.New("its chunks are so old that another server may have deleted them") // this process stood still
	}
	refused := err != nil // the chunks have no name
	if err == nil {
		err = b.putName(ctx, info)
		refused = errors.Is(err, errNameTaken)
	}
	_ = failpoint.Hit("upload/named") // a point to die at
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	o, findErr := s.object(after, nameSubject(info.Name))
	switch {
	case findErr == nil && o.info.NUID == info.NUID: // also if the acknowledgment was lost
		return o, nil
	case err == nil: // the acknowledgment counts
		return Object{Name: info.Name, Time: time.Now(), Bytes: info.Size, Manifest: m, info: info, subject: nameSubject(info.Name)}, nil
	case refused:
		_ = s.purge(after, chunkPrefix+info.NUID) // if it fails, RemoveOrphans does it later
	}
	return Object{}, err
}

func (b *Bucket) chunkSize() int {
	return int(min(int64(b.chunk), b.js.Conn().MaxPayload()/2))
}

// putChunks publishes the archive and records its length and checksum in info. last is when it began
// to publish the last chunk.
func (b *Bucket) putChunks(ctx context.Context, info *jetstream.ObjectInfo, archive io.Reader) (last time.Time, err error) {
	sum, chunk := sha256.New(), make([]byte, b.chunkSize())
	for {
		n, err := io.ReadFull(archive, chunk)
		if n > 0 {
			last = time.Now()
			err := b.publish(ctx, &nats.Msg{Subject: chunkPrefix + info.NUID, Data: chunk[:n]})
			if errors.Is(err, natserr.ErrRefused) { // one text for all objects
				err = fmt.Errorf("%w: this user of the broker may not publish to %s>", natserr.ErrRefused, chunkPrefix)
			}
			if err != nil {
				return last, fmt.Errorf("chunk %d: %w", info.Chunks+1, err)
			}
			if err := failpoint.Hit("upload/chunk"); err != nil {
				return last, err
			}
			sum.Write(chunk[:n])
			info.Size += uint64(n)
			info.Chunks++
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			info.Digest = jetstream.GetObjectDigestValue(sum)
			return last, nil
		case err != nil:
			return last, err
		}
	}
}

var errNameTaken = errors.New("there is a snapshot of this name")

// putName publishes the object's name, so that List returns it. If the name exists, the error is
// errNameTaken.
func (b *Bucket) putName(ctx context.Context, info jetstream.ObjectInfo) error {
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	err = b.publish(ctx, &nats.Msg{Subject: nameSubject(info.Name), Data: data}, jetstream.WithExpectLastSequencePerSubject(0))
	if natserr.IsConflict(err) {
		return errNameTaken
	}
	return err
}

func (b *Bucket) publish(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := b.js.PublishMsg(ctx, m, append(opts, jetstream.WithExpectStream(streamName))...)
	return natserr.PermissionError(b.js.Conn(), err, m.Subject)
}

// Open reads the bytes of an object, which snapshots.Reader verifies. Each Read makes at most one
// request; ctx ends them all.
func (b *Bucket) Open(ctx context.Context, o Object) (io.Reader, error) {
	s, err := b.stream(ctx)
	if err != nil {
		return nil, err
	}
	if o.info.NUID == "" {
		return nil, errors.New("the object names no chunks")
	}
	return &chunkReader{ctx: ctx, stream: s, info: o.info, next: 1}, nil
}

type chunkReader struct {
	ctx    context.Context
	stream stream
	info   jetstream.ObjectInfo
	next   uint64 // stream sequence of the next search
	left   []byte // of the current chunk
	chunks uint32 // read so far
	err    error
}

func (r *chunkReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(r.left) == 0 && r.err == nil {
		r.err = r.fetch()
	}
	if r.err != nil {
		return 0, r.err
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// fetch gets the next chunk. It returns io.EOF after the last one.
func (r *chunkReader) fetch() error {
	if r.chunks == r.info.Chunks {
		return io.EOF
	}
	ctx, cancel := context.WithTimeout(r.ctx, requestTimeout)
	defer cancel()
	sequence, data, err := r.get(ctx)
	if err != nil {
		return fmt.Errorf("chunk %d of %d: %w", r.chunks+1, r.info.Chunks, err)
	}
	r.chunks++
	r.next = sequence + 1
	r.left = data
	if len(data) == 0 {
		return fmt.Errorf("chunk %d is empty", r.chunks)
	}
	return nil
}

// get reads the next chunk from any replica. If that one has none, it may lag, and get asks the
// leader.
func (r *chunkReader) get(ctx context.Context) (sequence uint64, data []byte, err error) {
	subject := chunkPrefix + r.info.NUID
	m, err := r.stream.GetMsg(ctx, r.next, jetstream.WithGetMsgSubject(subject))
	if err == nil {
		return m.Sequence, m.Data, nil
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil, r.stream.b.explain(err, directGet)
	}
	last, err := r.stream.leader().NextMessage(ctx, r.next, subject)
	return last.Sequence, last.Data, err
}
