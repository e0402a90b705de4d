package snapshots

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// A note outlives the process, whichever program made the store, and is no part of the content.
func TestNotes(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 20)
	if v, err := s.Note("status"); v != nil || err != nil {
		t.Errorf("a store without notes has %q, %v", v, err)
	}
	manifest, _ := archiveOf(t, s)
	for _, want := range []string{"one", "two"} {
		if err := s.SaveNote("status", []byte(want)); err != nil {
			t.Fatal(err)
		}
		if err := s.Save(feed(m, donation(900))); err != nil {
			t.Fatal(err)
		}
	}
	again, loaded := mustOpen(t, copyOf(t, s))
	if v, err := again.Note("status"); string(v) != "two" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := again.Note("other"); v != nil || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if loaded.Digest() != m.Digest() {
		t.Error("the content has changed")
	}
	after, packed := archiveOf(t, again)
	if after.Format != manifest.Format || after.Store != manifest.Store {
		t.Errorf("another format: %+v", after)
	}
	path := filepath.Join(t.TempDir(), "restored.db")
	if _, _, err := Restore(t.Context(), bytes.NewReader(packed), RestoreConfig{Path: path}); err != nil {
		t.Fatal(err)
	}
	restored, _ := mustOpen(t, path)
	if v, err := restored.Note("status"); v != nil || err != nil {
		t.Errorf("an archive has %q, %v", v, err)
	}
	fresh, err := NewReplacement(Config{Path: filepath.Join(t.TempDir(), "registry.db")})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := fresh.Note("status"); v != nil || err != nil {
		t.Errorf("a rebuilt store has %q, %v", v, err)
	}
	if err := fresh.Discard(); err != nil {
		t.Fatal(err)
	}
	if err := fresh.SaveNote("status", nil); !errors.Is(err, errClosed) {
		t.Errorf("a closed store: %v", err)
	}
}

// A damaged note is no note. The store stays in use.
func TestDamagedNote(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 3)
	if err := s.SaveNote("status", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(notesBucket)).Put([]byte("status"), []byte("xxxxone"))
	}); err != nil {
		t.Fatal(err)
	}
	again, loaded := mustOpen(t, copyOf(t, s))
	if v, err := again.Note("status"); v != nil || !errors.Is(err, errChecksum) {
		t.Errorf("%q, %v", v, err)
	}
	if loaded.Digest() != m.Digest() {
		t.Error("the content is lost")
	}
	if err := again.SaveNote("status", []byte("three")); err != nil {
		t.Error(err)
	}
	if v, err := again.Note("status"); string(v) != "three" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}

// After a note that could not be written, the store opens its file again, and goes on.
func TestNoteThatFails(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 3)
	if err := s.db.Close(); err != nil { // so that the next transaction fails
		t.Fatal(err)
	}
	if err := s.SaveNote("status", []byte("one")); err == nil || s.Probe() != nil {
		t.Errorf("%v; then %v", err, s.Probe())
	}
	if err := s.SaveNote("status", []byte("two")); err != nil {
		t.Error(err)
	}
	if err := s.Save(feed(m, donation(901))); err != nil {
		t.Error(err)
	}
	if v, err := s.Note("status"); string(v) != "two" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}
