package snapshots

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/stream"
)

// newBucket makes a bucket on a broker of its own.
func newBucket(t *testing.T) (*Bucket, jetstream.JetStream) {
	t.Helper()
	js := eventstest.Connect(t, eventstest.Broker(t))
	b := NewBucket(js)
	require.NoError(t, b.Ensure(t.Context(), 1))
	return b, js
}

// put puts a snapshot of the store, after a save with this sequence and identity.
func put(t *testing.T, b *Bucket, s *Store, sequence uint64, id stream.Identity) Object {
	t.Helper()
	m := s.Meta()
	m.Sequence, m.Identity = sequence, id
	require.NoError(t, s.Save(Commit{Meta: m}))
	o, err := b.Put(t.Context(), s)
	require.NoError(t, err)
	return o
}

func identity(epoch string, follows ...string) stream.Identity {
	return stream.Identity{Stream: events.DefaultStream, Epoch: epoch, Follows: follows}
}

func names(t *testing.T, b *Bucket) (all []string) {
	t.Helper()
	objects, err := b.List(t.Context())
	require.NoError(t, err)
	for _, o := range objects {
		all = append(all, o.Name)
	}
	return all
}

// What was put is listed, the newest first, and read; NATS's own client reads it, too.
func TestBucket(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 3000)
	js := eventstest.Connect(t, eventstest.Broker(t))
	b := NewBucket(js)
	require.Empty(t, names(t, b), "without a bucket")
	_, err := b.Open(t.Context(), "none")
	require.ErrorIs(t, err, ErrNoSnapshot)
	_, err = b.Put(t.Context(), s)
	require.Error(t, err, "without a bucket")
	require.NoError(t, b.Ensure(t.Context(), 1))
	require.NoError(t, b.Ensure(t.Context(), 1))

	first := put(t, b, s, 90_000, identity("b"))
	second := put(t, b, s, 7, identity("a", "b"))
	require.Equal(t, []string{second.Name, first.Name}, names(t, b), "by the time they were put, not by name")
	objects, err := b.List(t.Context())
	require.NoError(t, err)
	require.NoError(t, objects[0].Err)
	require.Equal(t, s.Meta(), objects[0].Header.Meta)
	require.Equal(t, second.Bytes, objects[0].Bytes)

	from, err := b.Open(t.Context(), second.Name)
	require.NoError(t, err)
	h, states, err := readAll(from)
	require.NoError(t, err)
	require.NoError(t, from.Close())
	require.Equal(t, s.Meta(), h.Meta)
	require.Len(t, states, h.Count)

	store, err := js.ObjectStore(t.Context(), BucketName)
	require.NoError(t, err)
	packed, err := store.GetBytes(t.Context(), second.Name)
	require.NoError(t, err, "length and checksum are right")
	_, theirs, err := readAll(bytes.NewReader(packed))
	require.NoError(t, err)
	require.Equal(t, states, theirs)
	_, err = store.Put(t.Context(), jetstream.ObjectMeta{Name: "theirs"}, strings.NewReader("no snapshot"))
	require.NoError(t, err)
	objects, err = b.List(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, objects[0].Err, "not a snapshot of this version")
	require.NoError(t, store.Delete(t.Context(), "theirs"))
	require.Len(t, names(t, b), 2, "a deleted object is not there")
}

// Prune keeps the newest of a registry, whatever their epochs, and what is not of it. Old chunks without a
// name go.
func TestPrune(t *testing.T) {
	t.Parallel()
	b, js := newBucket(t)
	s, _ := filled(t, 3)
	foreign := put(t, b, s, 1, identity("z"))
	elsewhere := identity("a")
	elsewhere.Stream = "OTHER"
	other := put(t, b, s, 1, elsewhere)
	var own []Object
	for i, id := range []stream.Identity{identity("a"), identity("a"), identity("b", "a"), identity("c", "b", "a")} {
		own = append(own, put(t, b, s, uint64(10-i), id))
	}

	removed, err := b.Prune(t.Context(), identity("c", "b", "a"), 2)
	require.NoError(t, err)
	require.Equal(t, []string{own[1].Name, own[0].Name}, removed)
	require.Equal(t, []string{own[3].Name, own[2].Name, other.Name, foreign.Name}, names(t, b))
	chunks, err := b.listSubjects(t.Context(), chunkPrefix+">")
	require.NoError(t, err)
	require.Len(t, chunks, 4)

	_, err = js.Publish(t.Context(), chunkPrefix+"young", []byte("of a Put that is under way"))
	require.NoError(t, err)
	_, err = b.Prune(t.Context(), identity("c"), 2)
	require.NoError(t, err)
	chunks, err = b.listSubjects(t.Context(), chunkPrefix+">")
	require.NoError(t, err)
	require.Len(t, chunks, 5, "young chunks stay")
}

// A server starts from the newest readable snapshot of its registry.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	b, js := newBucket(t)
	log := slog.New(slog.DiscardHandler)
	path := filepath.Join(t.TempDir(), "registry.db")
	bootstrap := func(id stream.Identity) error {
		all, err := b.List(t.Context())
		require.NoError(t, err)
		return b.Bootstrap(t.Context(), all, id, path, log)
	}
	require.NoError(t, bootstrap(identity("a")))
	require.NoFileExists(t, path, "no snapshots")

	s, m := filled(t, 20)
	old := put(t, b, s, 5, identity("a"))
	newer := put(t, b, s, 4, identity("b", "a"))
	put(t, b, s, 9, identity("z"))
	require.NoError(t, bootstrap(identity("q")))
	require.NoFileExists(t, path, "snapshots of others")

	for name, id := range map[string]stream.Identity{"the same": identity("b", "a"), "an earlier one": identity("a"), "a later one": identity("c", "b", "a")} {
		require.NoError(t, bootstrap(id), name)
		r, model := mustOpen(t, path)
		require.Equal(t, m.Digest(), model.Digest(), name)
		require.Equal(t, newer.Header.Meta, r.Meta(), name)
		require.NoError(t, r.Close())
		require.NoError(t, os.Remove(path))
	}

	breakChunk := func(o Object) {
		st, err := js.Stream(t.Context(), bucketStream)
		require.NoError(t, err)
		require.NoError(t, st.Purge(t.Context(), jetstream.WithPurgeSubject(chunkPrefix+o.info.NUID)))
	}
	breakChunk(newer)
	require.NoError(t, bootstrap(identity("c", "b", "a")))
	require.NoError(t, os.Remove(path), "an older one was restored")
	breakChunk(old)
	require.ErrorContains(t, bootstrap(identity("c", "b", "a")), "chunk 1 of 1")
	require.NoFileExists(t, path)
}
