package bucket

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, eventstest.Leaks()...) }

// open makes a bucket on a broker of its own.
func open(t *testing.T, with ...func(*Bucket)) (*Bucket, jetstream.JetStream) {
	t.Helper()
	js := eventstest.Connect(t, eventstest.Broker(t))
	b := New(js, Config{})
	for _, set := range with {
		set(b)
	}
	require.NoError(t, b.Create(t.Context()))
	return b, js
}

func smallChunks(b *Bucket) { b.chunk = 10_000 }

// archive is one of n entries at sequence seq.
func archive(t *testing.T, n int, seq uint64, epoch string) (snapshots.Manifest, []byte) {
	t.Helper()
	s, m, err := snapshots.Open(t.Context(), snapshots.Config{Path: filepath.Join(t.TempDir(), "registry.db")})
	require.NoError(t, err)
	defer s.Close()
	renderer := readmodel.NewRenderer()
	var records []readmodel.Record
	for _, e := range eventstest.Entries(n, seq) {
		records = append(records, renderer.Render(seq, e))
	}
	m.Apply(records, seq)
	err = s.Save(readmodel.Commit{Records: records, Digest: m.Digest(), Checkpoint: readmodel.Checkpoint{
		Sequence: seq, StreamIdentity: readmodel.StreamIdentity{Stream: events.DefaultStream, StreamEpoch: epoch}}})
	require.NoError(t, err)
	a, err := s.Archive(t.Context(), snapshots.ArchiveConfig{TempDir: t.TempDir()})
	require.NoError(t, err)
	defer a.Close()
	packed, err := io.ReadAll(a.Reader())
	require.NoError(t, err)
	return a.Manifest, packed
}

func put(t *testing.T, b *Bucket, n int, seq uint64, epoch string) Object {
	t.Helper()
	m, packed := archive(t, n, seq, epoch)
	o, err := b.Put(t.Context(), m, bytes.NewReader(packed))
	require.NoError(t, err)
	return o
}

func names(t *testing.T, b *Bucket) (names []string) {
	t.Helper()
	objects, _, err := b.List(t.Context())
	require.NoError(t, err)
	for _, o := range objects {
		names = append(names, o.Name)
	}
	return names
}

func mustStream(t *testing.T, b *Bucket) stream {
	t.Helper()
	s, err := b.stream(t.Context())
	require.NoError(t, err)
	return s
}

// List also returns objects that are not snapshots, with the reason.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	b, js := open(t)
	store, err := js.ObjectStore(t.Context(), Name)
	require.NoError(t, err)
	_, err = store.PutString(t.Context(), "notes\n", "somebody's")
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), namePrefix+"bm90IGpzb24=", []byte("not json"))
	require.NoError(t, err)
	mine := put(t, b, 10, 1, "one")
	objects, _, err := b.List(t.Context())
	if err != nil || len(objects) != 3 || objects[0].Err != nil || objects[1].Err == nil || objects[2].Err == nil {
		t.Fatalf("%+v, %v", objects, err)
	}
	_, err = b.Prune(t.Context(), mine, 1)
	require.NoError(t, err)
	if found := names(t, b); len(found) != 3 {
		t.Errorf("other names were erased: %v", found)
	}
}

// Prune erases only the oldest of the same stream and epoch, without a trace in the stream.
func TestPrune(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	put(t, b, 5, 90, "lost")
	var just Object
	for seq := range uint64(4) {
		just = put(t, b, 5, seq+1, "one")
	}
	gone, err := b.Prune(t.Context(), just, 2)
	if err != nil || len(gone) != 2 {
		t.Fatal(gone, err)
	}
	found := names(t, b)
	if len(found) != 3 || !strings.Contains(found[0], "0004-") || !strings.Contains(found[1], "0003-") || !strings.Contains(found[2], "0090-") {
		t.Errorf("left: %v", found)
	}
	for _, filter := range []string{chunkPrefix + ">", namePrefix + ">"} {
		if left, _, err := mustStream(t, b).subjects(t.Context(), filter); err != nil || len(left) != 3 {
			t.Errorf("%s: %v, %v", filter, left, err)
		}
	}
}

// The snapshots of a history that was lost are the way back, so those of the last four stay; not of
// all that ever were, nor does a clock or a sequence decide which.
func TestPruneOtherHistories(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	var just Object
	for i, history := range []string{"first", "second", "third", "fourth", "first", "fifth", "other", "now"} {
		m, packed := archive(t, 3, uint64(100-i), history)
		if m.Time = time.Unix(int64(1e9-i), 0).UTC(); history == "other" {
			m.Stream = "OTHER"
		}
		var err error
		if just, err = b.Put(t.Context(), m, bytes.NewReader(packed)); err != nil {
			t.Fatal(err)
		}
	}
	gone, err := b.Prune(t.Context(), just, 5)
	if err != nil || len(gone) != 1 || !strings.HasPrefix(gone[0], "REGISTRY-"+hashOf("second")) {
		t.Errorf("erased %v, %v", gone, err)
	}
	if found := names(t, b); len(found) != 7 {
		t.Errorf("left: %v", found)
	}
}

// Sequences decide what is old, however the broker's clock was set, and what has just been put
// stays.
func TestPruneBySequence(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	for _, seq := range []uint64{40, 10, 30, 20} { // by time, 20 is the newest
		put(t, b, 5, seq, "one")
	}
	just := put(t, b, 5, 5, "one")
	if gone, err := b.Prune(t.Context(), just, 3); err != nil || len(gone) != 2 {
		t.Fatal(gone, err)
	}
	found := names(t, b)
	if len(found) != 3 || found[0] != just.Name || !strings.Contains(found[1], "0030-") || !strings.Contains(found[2], "0040-") {
		t.Errorf("left: %v", found)
	}
}

// A Put that dies half-way is not listed. Its chunks are erased when they are old; those of a Put
// under way are not.
func TestUnfinishedPut(t *testing.T) {
	t.Parallel()
	b, js := open(t, func(b *Bucket) { b.orphanAfter = time.Hour })
	good := put(t, b, 10, 1, "one")
	if _, err := js.Publish(t.Context(), chunkPrefix+"HALFDONE", make([]byte, 1000)); err != nil { // kill -9 is here
		t.Fatal(err)
	}
	if found := names(t, b); len(found) != 1 {
		t.Errorf("listed: %v", found)
	}
	if n, err := b.RemoveOrphans(t.Context()); n != 0 || err != nil {
		t.Errorf("%d young ones erased, %v", n, err)
	}
	later := New(js, Config{})
	later.orphanAfter = time.Nanosecond
	if n, err := later.RemoveOrphans(t.Context()); n != 1 || err != nil {
		t.Errorf("%d erased, %v", n, err)
	}
	r, err := b.Open(t.Context(), good)
	require.NoError(t, err)
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("a good one was damaged: %v", err)
	}
}

// Servers that make snapshots at the same moment do not disturb each other: everything that is
// listed then is whole, and the newest is among it.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	b, js := open(t)
	const servers, keep = 4, 2
	var group errgroup.Group
	for server := range uint64(servers) {
		m, packed := archive(t, 30, 10+server, "one")
		group.Go(func() error {
			b := New(js, Config{})
			smallChunks(b)
			for round := range uint64(3) {
				m.Sequence += servers * round
				o, err := b.Put(t.Context(), m, bytes.NewReader(packed))
				if err == nil {
					_, err = b.Prune(t.Context(), o, keep)
				}
				if err == nil {
					_, err = b.RemoveOrphans(t.Context())
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	objects, _, err := b.List(t.Context())
	require.NoError(t, err)
	newest := uint64(0)
	for _, o := range objects {
		newest = max(newest, o.Manifest.Sequence)
		r, err := b.Open(t.Context(), o)
		require.NoError(t, err)
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("%s: %v", o.Name, err)
		}
	}
	if want := uint64(10 + servers - 1 + 3*servers); newest != want || len(objects) > keep+servers {
		t.Errorf("%d snapshots, the newest at %d, want %d", len(objects), newest, want)
	}
}

// A Put that stood still for so long that its chunks count as left puts no name.
func TestPutStoodStill(t *testing.T) {
	t.Parallel()
	b, _ := open(t, func(b *Bucket) { b.orphanAfter = time.Nanosecond })
	m, packed := archive(t, 5, 1, "one")
	if _, err := b.Put(t.Context(), m, bytes.NewReader(packed)); err == nil || len(names(t, b)) > 0 {
		t.Errorf("put %v, %v", names(t, b), err)
	}
}

// Without a bucket the error says so. Create leaves the settings of an existing one alone.
func TestNoBucket(t *testing.T) {
	t.Parallel()
	js := eventstest.Connect(t, eventstest.Broker(t))
	b := New(js, Config{})
	if _, _, err := b.List(t.Context()); !errors.Is(err, ErrNoBucket) {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: Name, Description: "mine"})
	require.NoError(t, err)
	require.NoError(t, b.Create(ctx))
	if info := mustStream(t, b).CachedInfo(); info.Config.Description != "mine" {
		t.Errorf("altered: %+v", info.Config)
	}
}

// FuzzName: only names that nameOf makes are ours.
func FuzzName(f *testing.F) {
	m := snapshots.Manifest{Digest: strings.Repeat("ab", 16), Time: time.Unix(1e9, 0)}
	m.Stream, m.StreamEpoch, m.Sequence = "REGISTRY", "e", 12
	f.Add(nameOf(m))
	f.Add("REGISTRY-")
	f.Fuzz(func(t *testing.T, name string) {
		if _, ok := historyOf(name, "REGISTRY"); ok && (len(name) != len(nameOf(m)) || strings.ContainsAny(name, "\n/ ")) {
			t.Errorf("%q is taken for ours", name)
		}
		if history, ok := historyOf(nameOf(m), "REGISTRY"); !ok || history != hashOf("e") || history == hashOf("f") {
			t.Error("a name of ours is not known")
		}
		if _, ok := historyOf(nameOf(m), "OTHER"); ok {
			t.Error("a name of another stream is taken for one of this")
		}
	})
}
