package snapshots

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// left is the store of s as a process leaves it that dies n times in a row while it opens it.
func left(t *testing.T, s *Store, n int) (path string) {
	t.Helper()
	path = copyOf(t, s)
	newStore(path, nil).mark(n)
	return path
}

// A process that was killed while it opened a good store costs a copy of it: content and notes are
// as before.
func TestKilledWhileOpening(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 300)
	if err := s.SaveNote("status", []byte("a note")); err != nil {
		t.Fatal(err)
	}
	path := left(t, s, 1)
	var log bytes.Buffer
	again, loaded, err := Open(t.Context(), Config{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if content(t, loaded.View()) != content(t, m.View()) || again.Checkpoint() != s.Checkpoint() || again.DataSet() != s.DataSet() {
		t.Error("the copy is not the store")
	}
	if note, err := again.Note("status"); err != nil || string(note) != "a note" {
		t.Errorf("note %q, %v", note, err)
	}
	if a := asides(t, path); len(a) != 0 || strings.Count(log.String(), "copied into a new file") != 1 {
		t.Errorf("beside the store: %v; log: %s", a, log.String())
	}
	if err := again.Save(feed(loaded, sample(3)...)); err != nil {
		t.Error(err)
	}
}

// One that dies while it copies too has the file set aside by the next: restarts have an end.
func TestKilledTwiceWhileOpening(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 20)
	path := left(t, s, 2)
	_, m := mustOpen(t, path)
	if a := asides(t, path); len(a) != 1 || m.View().Sequence() != 0 {
		t.Errorf("beside the store: %v", a)
	}
}

// A mark says nothing about a file that has taken the place of the one it is about.
func TestMarkOfAnotherFile(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 20)
	path := left(t, s, 2)
	writeFile(t, path, append(readFile(t, path), make([]byte, os.Getpagesize())...))
	_, loaded := mustOpen(t, path)
	if a := asides(t, path); len(a) != 0 || content(t, loaded.View()) != content(t, m.View()) {
		t.Errorf("beside the store: %v", a)
	}
}

// An opening that its caller ends leaves what was known of the file: nothing, or that a process
// died.
func TestMarkAfterCancelled(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 20)
	for died := range 2 {
		path := left(t, s, died)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := Open(ctx, Config{Path: path}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if got := newStore(path, nil).died(); got != died {
			t.Errorf("%d deaths, then %d", died, got)
		}
	}
}

// Damage to the pages that no record is in is found after the start: nothing is saved into the file
// any more, and the next start sets it aside.
func TestDamageFoundLater(t *testing.T) {
	t.Parallel()
	file, want := saved(t)
	for at := 2 * os.Getpagesize(); at < len(file); at += os.Getpagesize() {
		if binary.NativeEndian.Uint16(file[at+8:]) == 16 {
			binary.NativeEndian.PutUint16(file[at+10:], 0) // an empty free list
		}
	}
	path := place(t, file)
	var log bytes.Buffer
	s, m, err := Open(t.Context(), Config{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil || content(t, m.View()) != want {
		t.Fatalf("the records are good: %v", err)
	}
	saved, note := s.Save(feed(m, sample(3)...)), s.SaveNote("status", nil)
	if saved == nil || note == nil || s.Probe() == nil {
		t.Errorf("Save: %v; SaveNote: %v; Probe: %v", saved, note, s.Probe())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "page structure") || !bytes.Equal(readFile(t, path), file) {
		t.Errorf("the file has changed; log: %s", log.String())
	}
	if s.Damage() == nil {
		t.Error("no damage is known")
	}
	log.Reset()
	s, m, err = Open(t.Context(), Config{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if a := asides(t, path); len(a) != 1 || m.View().Sequence() != 0 || s.Damage() != nil {
		t.Errorf("beside the store: %v; damage %v", a, s.Damage())
	}
	if !strings.Contains(log.String(), "reason=\"its page structure is damaged") {
		t.Errorf("log: %s", log.String())
	}
}

// The mark goes when the file has been loaded: a kill after that costs nothing.
func TestMarkAfterLoading(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 20)
	for died := range 2 {
		path := left(t, s, died)
		again, _ := mustOpen(t, path)
		if got := newStore(path, nil).died(); got != 0 {
			t.Errorf("%d deaths, then %d, with the store open", died, got)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}
