package bucket

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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/failpoint"
	"example.org/registry/snapshots"
)

// maxChunk is the length of a chunk in bytes unless it is configured: each is synced once, and kept in
// memory once.
const maxChunk = 512 << 10

// Put puts a proved archive into the bucket under the name that its manifest gives it. After an error there
// is no such name. One goroutine at a time; callers hold the Lock.
func (b *Bucket) Put(ctx context.Context, m snapshots.Manifest, archive io.Reader) (Item, error) {
	s, err := b.stream(ctx)
	if err != nil {
		return Item{}, err
	}
	said, err := json.Marshal(m)
	if err != nil {
		return Item{}, err
	}
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{
			Name:     NameOf(m),
			Metadata: map[string]string{manifestLabel: string(said)},
			Opts:     &jetstream.ObjectMetaOptions{ChunkSize: uint32(b.chunkSize())},
		},
		Bucket: Name, NUID: rand.Text(),
	}
	if err = b.chunks(ctx, &info, archive); err == nil {
		err = failpoint.Hit("upload/before-name")
	}
	if err == nil {
		err = b.publishName(ctx, info)
	}
	_ = failpoint.Hit("upload/named") // to die at: Find says what there is
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), askWithin)
	defer cancel()
	item, findErr := b.Find(after, info.Name)
	switch {
	case findErr == nil && item.info.NUID == info.NUID:
		return item, nil // also when its acknowledgement was lost
	case findErr == nil, errors.Is(findErr, ErrUnknown):
		_ = s.Purge(after, jetstream.WithPurgeSubject(chunkPrefix+info.NUID)) // else Clean does it, later
	}
	return Item{}, cmp.Or(err, findErr)
}

func (b *Bucket) chunkSize() int {
	return int(min(int64(b.cfg.Chunk), b.js.Conn().MaxPayload()/2))
}

// chunks publishes the archive and takes down its length and checksum.
func (b *Bucket) chunks(ctx context.Context, info *jetstream.ObjectInfo, archive io.Reader) error {
	sum, chunk := sha256.New(), make([]byte, b.chunkSize())
	for {
		n, err := io.ReadFull(archive, chunk)
		if n > 0 {
			if err := b.publish(ctx, &nats.Msg{Subject: chunkPrefix + info.NUID, Data: chunk[:n]}); err != nil {
				return fmt.Errorf("chunk %d: %w", info.Chunks+1, err)
			}
			if err := failpoint.Hit("upload/chunk"); err != nil {
				return err
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

// publishName makes the object: from here on it is listed. There must be none of the name.
func (b *Bucket) publishName(ctx context.Context, info jetstream.ObjectInfo) error {
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: namePrefix + base64.URLEncoding.EncodeToString([]byte(info.Name)), Data: data}
	return b.publish(ctx, m, jetstream.WithExpectLastSequencePerSubject(0))
}

func (b *Bucket) publish(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, err := b.js.PublishMsg(ctx, m, append(opts, jetstream.WithExpectStream(streamName))...)
	return b.explained(err, m.Subject)
}
