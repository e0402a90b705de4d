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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, eventstest.ClientLeak()) }

// open makes the bucket on a broker of its own.
func open(t *testing.T, cfg Config) (*Bucket, jetstream.JetStream) {
	t.Helper()
	js := eventstest.Connect(t, eventstest.Broker(t))
	b := New(js, cfg)
	if err := b.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b, js
}

// archive is one of n entries at sequence seq.
func archive(t *testing.T, n int, seq uint64, epoch string) (snapshots.Manifest, []byte) {
	t.Helper()
	s, m, err := snapshots.Open(t.Context(), snapshots.Config{Path: filepath.Join(t.TempDir(), "registry.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	renderer := readmodel.NewRenderer()
	var records []readmodel.Record
	for _, e := range eventstest.Entries(n, seq) {
		records = append(records, renderer.Render(seq, e))
	}
	m.Apply(records, seq)
	err = s.Save(readmodel.Commit{Records: records, Digest: m.Digest(), Checkpoint: readmodel.Checkpoint{
		Sequence: seq, Stream: readmodel.StreamIdentity{Name: events.DefaultStream, Epoch: epoch}}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Archive(t.Context(), snapshots.Work{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	packed, err := io.ReadAll(a.Reader())
	if err != nil {
		t.Fatal(err)
	}
	return a.Manifest, packed
}

func put(t *testing.T, b *Bucket, n int, seq uint64, epoch string) Item {
	t.Helper()
	m, packed := archive(t, n, seq, epoch)
	item, err := b.Put(t.Context(), m, bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func names(t *testing.T, b *Bucket) (names []string) {
	t.Helper()
	items, _, err := b.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range items {
		names = append(names, i.Name)
	}
	return names
}

// What was put is listed and comes back, also through the client library's own object store.
func TestPutAndOpen(t *testing.T) {
	b, js := open(t, Config{Chunk: 10_000})
	m, packed := archive(t, 200, 7, "one")
	item, err := b.Put(t.Context(), m, bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if item.Bytes != uint64(len(packed)) || item.Bad != nil || item.Manifest.Digest != m.Digest || item.info.Chunks < 2 {
		t.Errorf("put %+v", item)
	}
	r, err := b.Open(t.Context(), item)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, packed) {
		t.Errorf("read %d bytes of %d, %v", len(got), len(packed), err)
	}
	store, err := js.ObjectStore(t.Context(), Name)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.GetBytes(t.Context(), item.Name); err != nil || !bytes.Equal(got, packed) {
		t.Errorf("the library reads %d bytes of %d, %v", len(got), len(packed), err)
	}
	if _, err := b.Put(t.Context(), m, bytes.NewReader(packed)); err == nil {
		t.Error("a name was put twice")
	}
	if found := names(t, b); len(found) != 1 {
		t.Errorf("listed: %v", found)
	}
	if chunks, _, _ := subjectsOf(t.Context(), stream(t, b), chunkPrefix+">"); len(chunks) != 1 {
		t.Errorf("chunks of a refused put are left: %v", chunks)
	}
}

func stream(t *testing.T, b *Bucket) jetstream.Stream {
	t.Helper()
	s, err := b.stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Chunks that are missing, changed or too many are an error at once, and never the archive.
func TestDamagedObjects(t *testing.T) {
	b, js := open(t, Config{Chunk: 10_000})
	for name, damage := range map[string]func(t *testing.T, i Item){
		"missing": func(t *testing.T, i Item) {
			if err := stream(t, b).Purge(t.Context(), jetstream.WithPurgeSubject(chunkPrefix+i.info.NUID), jetstream.WithPurgeKeep(1)); err != nil {
				t.Fatal(err)
			}
		},
		"changed": func(t *testing.T, i Item) {
			s := stream(t, b)
			m, err := s.GetLastMsgForSubject(t.Context(), chunkPrefix+i.info.NUID)
			if err != nil {
				t.Fatal(err)
			}
			m.Data[len(m.Data)/2] ^= 1
			if err := s.DeleteMsg(t.Context(), m.Sequence); err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(t.Context(), chunkPrefix+i.info.NUID, m.Data); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			item := put(t, b, 200, 11, name)
			damage(t, item)
			r, err := b.Open(t.Context(), item)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(r); err == nil {
				t.Error("read to its end")
			}
		})
	}
}

// A name that says nothing usable is listed as such.
func TestForeignObjects(t *testing.T) {
	b, js := open(t, Config{})
	store, err := js.ObjectStore(t.Context(), Name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutString(t.Context(), "notes\n", "somebody's"); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), namePrefix+"bm90IGpzb24=", []byte("not json")); err != nil {
		t.Fatal(err)
	}
	put(t, b, 10, 1, "one")
	items, _, err := b.List(t.Context())
	if err != nil || len(items) != 3 || items[0].Bad != nil || items[1].Bad == nil || items[2].Bad == nil {
		t.Fatalf("%+v, %v", items, err)
	}
	if _, err := b.Prune(t.Context(), events.DefaultStream, "one", 1); err != nil {
		t.Fatal(err)
	}
	if found := names(t, b); len(found) != 3 {
		t.Errorf("other names were erased: %v", found)
	}
}

// Only the oldest of the same stream and epoch are erased, without a trace in the stream.
func TestPrune(t *testing.T) {
	b, _ := open(t, Config{})
	put(t, b, 5, 90, "lost")
	for seq := range uint64(4) {
		put(t, b, 5, seq+1, "one")
	}
	gone, err := b.Prune(t.Context(), events.DefaultStream, "one", 2)
	if err != nil || len(gone) != 2 {
		t.Fatal(gone, err)
	}
	found := names(t, b)
	if len(found) != 3 || !strings.Contains(found[0], "0004-") || !strings.Contains(found[1], "0003-") || !strings.Contains(found[2], "0090-") {
		t.Errorf("left: %v", found)
	}
	for _, filter := range []string{chunkPrefix + ">", namePrefix + ">"} {
		if left, _, err := subjectsOf(t.Context(), stream(t, b), filter); err != nil || len(left) != 3 {
			t.Errorf("%s: %v, %v", filter, left, err)
		}
	}
}

// A put that dies half-way is not listed, and its chunks are erased when they are old; those of a put
// under way are not.
func TestUnfinishedPut(t *testing.T) {
	b, js := open(t, Config{OrphanAfter: time.Hour})
	good := put(t, b, 10, 1, "one")
	if _, err := js.Publish(t.Context(), chunkPrefix+"HALFDONE", make([]byte, 1000)); err != nil { // kill -9 is here
		t.Fatal(err)
	}
	if found := names(t, b); len(found) != 1 {
		t.Errorf("listed: %v", found)
	}
	if n, err := b.Clean(t.Context()); n != 0 || err != nil {
		t.Errorf("%d young ones erased, %v", n, err)
	}
	later := New(js, Config{OrphanAfter: time.Nanosecond})
	_, lock, err := later.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if n, err := later.Clean(t.Context()); n != 1 || err != nil {
		t.Errorf("%d erased, %v", n, err)
	}
	r, err := b.Open(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("a good one was damaged: %v", err)
	}
	if _, _, err := b.Lock(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("the lock was erased: %v", err)
	}
}

// A put whose source fails leaves nothing.
func TestFailedPut(t *testing.T) {
	b, _ := open(t, Config{Chunk: 10_000})
	m, packed := archive(t, 200, 3, "one")
	failing := io.MultiReader(bytes.NewReader(packed[:len(packed)-1]), failingReader{})
	if _, err := b.Put(t.Context(), m, failing); !errors.Is(err, errFailing) {
		t.Error(err)
	}
	if left, _, err := subjectsOf(t.Context(), stream(t, b), ">"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

var errFailing = errors.New("failing")

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errFailing }

// The lock is held by one at a time, is given back, outlives its lease while it is renewed, and passes
// to another when its holder dies.
func TestLock(t *testing.T) {
	a, js := open(t, Config{Holder: "a", Lease: 400 * time.Millisecond})
	b := New(js, Config{Holder: "b", Lease: 400 * time.Millisecond})
	_, lock, err := a.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Second) // more than two leases
	for time.Now().Before(until) {
		if _, _, err := b.Lock(t.Context()); !errors.Is(err, ErrBusy) {
			t.Fatalf("two have the lock: %v", err)
		}
	}
	lock.Release()
	_, second, err := b.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second.cancel(nil) // b dies: nothing renews, nothing releases
	<-second.done
	for {
		_, third, err := a.Lock(t.Context())
		if err == nil {
			third.Release()
			break
		}
		if !errors.Is(err, ErrBusy) {
			t.Fatal(err)
		}
	}
	if m, err := stream(t, a).Info(t.Context()); err != nil || m.State.Msgs != 1 {
		t.Errorf("the lock leaves %d messages, %v", m.State.Msgs, err)
	}
}

// Of many who try at the same moment one gets the lock.
func TestLockRace(t *testing.T) {
	a, js := open(t, Config{Holder: "a"})
	const tries = 20
	got := make(chan *Lock, tries)
	for range tries {
		go func() {
			_, l, err := New(js, Config{Holder: "x"}).Lock(t.Context())
			if err != nil && !errors.Is(err, ErrBusy) {
				t.Error(err)
			}
			got <- l
		}()
	}
	held := 0
	for range tries {
		if l := <-got; l != nil {
			held++
			defer l.Release()
		}
	}
	if held != 1 {
		t.Errorf("%d have the lock of %v", held, a)
	}
}

// Who loses the lock is told through its context.
func TestLostLock(t *testing.T) {
	b, js := open(t, Config{Holder: "a", Lease: 200 * time.Millisecond})
	ctx, lock, err := b.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: lockSubject, Data: []byte(`{"holder":"b","lease":60000000000}`)}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("not told")
	}
	lock.Release()
	if _, _, err := b.Lock(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("the other's lock was given back: %v", err)
	}
}

// Without a bucket the error says so, and another's settings are left alone.
func TestNoBucket(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	b := New(js, Config{})
	if _, _, err := b.List(t.Context()); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: Name, Description: "mine"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Create(ctx); err != nil {
		t.Fatal(err)
	}
	if info := stream(t, b).CachedInfo(); info.Config.Description != "mine" {
		t.Errorf("altered: %+v", info.Config)
	}
}

// FuzzName: only names that NameOf makes are ours.
func FuzzName(f *testing.F) {
	m := snapshots.Manifest{Stream: "REGISTRY", StreamEpoch: "e", Sequence: 12, Digest: strings.Repeat("ab", 16), Time: time.Unix(1e9, 0)}
	f.Add(NameOf(m))
	f.Add("REGISTRY-")
	f.Fuzz(func(t *testing.T, name string) {
		if ownName(name, "REGISTRY", "e") && (len(name) != len(NameOf(m)) || strings.ContainsAny(name, "\n/ ")) {
			t.Errorf("%q is taken for ours", name)
		}
		if !ownName(NameOf(m), "REGISTRY", "e") || ownName(NameOf(m), "REGISTRY", "f") || ownName(NameOf(m), "OTHER", "e") {
			t.Error("a name of ours is not known")
		}
	})
}
