package snapshots

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// Promise 4, through an archive: a restored store answers as the archived one, under a data-set id
// of its own, and the store that was there before keeps another name.
func TestArchive(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 300)
	manifest, b := archiveOf(t, s)
	if !reflect.DeepEqual(manifest.Checkpoint, s.Checkpoint()) || manifest.Digest != m.Digest().String() || manifest.EntryCount() == 0 {
		t.Errorf("manifest %+v", manifest)
	}
	path := filepath.Join(t.TempDir(), "registry.db")
	for _, want := range []int{0, 1} {
		aside, err := restore(b, RestoreConfig{Path: path, Replace: want == 1})
		if err != nil || (aside != "") != (want == 1) {
			t.Fatalf("aside %q, %v", aside, err)
		}
		again, copied := mustOpen(t, path)
		if content(t, copied.View()) != content(t, m.View()) || !reflect.DeepEqual(again.Checkpoint(), s.Checkpoint()) {
			t.Error("another content was restored")
		}
		if again.current().DataSet == s.current().DataSet {
			t.Error("restored under the same data-set id")
		}
		_ = again.Close()
	}
	if found := asides(t, path); len(found) != 1 || !strings.Contains(found[0], "replaced") {
		t.Errorf("beside the store: %v", found)
	}
	_, err := restore(b, RestoreConfig{Path: path})
	if !errors.Is(err, ErrExists) {
		t.Errorf("restored over a store: %v", err)
	}
}

// An archive that is made while the store goes on saving holds one of its states (promise 4).
func TestArchiveWhileSaving(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 200)
	digests := map[uint64]string{s.Checkpoint().Sequence: m.Digest().String()}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		data := sample(400)
		for n := 0; ; n = (n + 7) % (len(data) - 7) {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			c := feed(m, data[n:n+7]...)
			digests[c.Checkpoint.Sequence] = c.Digest.String()
			if err := s.Save(c); err != nil {
				stopped <- err
				return
			}
		}
	}()
	var made []Manifest
	for range 10 {
		manifest, _ := archiveOf(t, s)
		made = append(made, manifest)
	}
	close(stop)
	require.NoError(t, <-stopped)
	for _, manifest := range made {
		if digests[manifest.Sequence] != manifest.Digest {
			t.Errorf("archive at %d has digest %s, not %s", manifest.Sequence, manifest.Digest, digests[manifest.Sequence])
		}
	}
}

// Deleted values are not in later snapshots, although they linger in the store's file.
func TestArchiveForgets(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 50)
	secret := []byte("zapomniany-po-odwolaniu")
	e := eventstest.Entries(1, 99)[0]
	e.EntryID, e.Name = "forgotten", string(secret)
	for _, d := range []events.Data{e, events.Delisting{Revision: 1, List: e.List, EntryID: e.EntryID}} {
		require.NoError(t, s.Save(feed(m, d)))
	}
	if !bytes.Contains(readFile(t, s.path), secret) {
		t.Fatal("the store's file has forgotten by itself: this test shows nothing")
	}
	_, b := archiveOf(t, s)
	if bytes.Contains(unpacked(t, b), secret) {
		t.Error("the snapshot still holds what was deleted")
	}
}

// Archiving ends with its context, and leaves nothing.
func TestArchiveCancelled(t *testing.T) {
	s, _ := filled(t, 50)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Archive(ctx, ArchiveConfig{TempDir: dir}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// An archive's rows are verified against what the events said, even if checksums and digests agree.
func TestVerifiedAgainstState(t *testing.T) {
	s, m := filled(t, 20)
	var key string
	for _, e := range sample(20) {
		if e, ok := e.(events.Entry); ok && e.List == events.Scammers {
			key = e.EntryID
		}
	}
	rewrite(t, s, "entries-scammers", key, func(value []byte) []byte {
		at := bytes.Index(value, []byte(`"reportId":"`)) + len(`"reportId":"`) // in the state, which is first
		value[at] ^= 1
		return value
	})
	if _, err := s.Archive(context.Background(), ArchiveConfig{TempDir: t.TempDir()}); err == nil {
		t.Errorf("a changed state was archived; digest %s", m.Digest())
	}
}

// rewrite changes a stored value and gives it the right checksum.
func rewrite(t *testing.T, s *Store, bucket, key string, change func([]byte) []byte) {
	t.Helper()
	err := s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		value, err := unseal(bucket, []byte(key), bytes.Clone(b.Get([]byte(key))))
		if err != nil {
			t.Fatalf("%s %s: %v", bucket, key, err)
		}
		stored := append(make([]byte, sumSize), change(value)...)
		seal(bucket, []byte(key), stored)
		return b.Put([]byte(key), stored)
	})
	require.NoError(t, err)
}
