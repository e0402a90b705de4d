package snapshots

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.org/registry/readmodel"
)

// archiveOf is the bytes of an archive of what s holds.
func archiveOf(t testing.TB, s *Store) (Manifest, []byte) {
	t.Helper()
	a, err := s.Archive(context.Background(), Work{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := io.ReadAll(a.Reader())
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != a.Size() {
		t.Errorf("archive of %d bytes says %d", len(b), a.Size())
	}
	return a.Manifest, b
}

// filled is a store of n entries and more, saved.
func filled(t testing.TB, n int) (*Store, *readmodel.Model) {
	t.Helper()
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	if err := s.Save(feed(m, sample(n)...)); err != nil {
		t.Fatal(err)
	}
	return s, m
}

// Promise 4, through an archive: what is restored answers as what was archived, under a data-set id of its
// own, and an old store keeps another name.
func TestArchive(t *testing.T) {
	s, m := filled(t, 300)
	manifest, b := archiveOf(t, s)
	if manifest.Checkpoint() != s.Checkpoint() || manifest.Digest != m.Digest().String() || manifest.Shown() == 0 {
		t.Errorf("manifest %+v", manifest)
	}
	path := filepath.Join(t.TempDir(), "registry.db")
	for _, want := range []int{0, 1} {
		got, aside, err := Restore(context.Background(), bytes.NewReader(b), Restoring{Path: path, Replace: want == 1})
		if err != nil || got.Digest != manifest.Digest || (aside != "") != (want == 1) {
			t.Fatalf("restored %+v, aside %q, %v", got, aside, err)
		}
		again, copied := mustOpen(t, path)
		if content(t, copied.View()) != content(t, m.View()) || again.Checkpoint() != s.Checkpoint() {
			t.Error("another content was restored")
		}
		if again.DataSet() == s.DataSet() {
			t.Error("restored under the same data-set id")
		}
		_ = again.Close()
	}
	if found := asides(t, path); len(found) != 1 || !strings.Contains(found[0], "replaced") {
		t.Errorf("beside the store: %v", found)
	}
	_, _, err := Restore(context.Background(), bytes.NewReader(b), Restoring{Path: path})
	if !errors.Is(err, ErrExists) {
		t.Errorf("restored over a store: %v", err)
	}
}

// An archive made while the store goes on saving is of one of its states (promise 4).
func TestArchiveWhileSaving(t *testing.T) {
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
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	for _, manifest := range made {
		if digests[manifest.Sequence] != manifest.Digest {
			t.Errorf("archive at %d has digest %s, not %s", manifest.Sequence, manifest.Digest, digests[manifest.Sequence])
		}
	}
}

// Archiving ends with its context, and leaves nothing behind.
func TestArchiveCancelled(t *testing.T) {
	s, _ := filled(t, 50)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Archive(ctx, Work{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Packing that fails or is given up midway says so, and leaves nothing behind.
func TestPackFails(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(good, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := pack(cancelled, good, Manifest{}, Work{Dir: dir}); a != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v %v", a, err)
	}
	if a, err := pack(t.Context(), good+"-missing", Manifest{}, Work{Dir: dir}); a != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v %v", a, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
