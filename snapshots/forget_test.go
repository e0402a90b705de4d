package snapshots

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// What was deleted is not in a snapshot that is made afterwards, though it lingers in the store's file.
func TestArchiveForgets(t *testing.T) {
	s, m := filled(t, 50)
	secret := []byte("zapomniany-po-odwolaniu")
	e := eventstest.Entries(1, 99)[0]
	e.EntryID, e.Name = "forgotten", string(secret)
	for _, d := range []events.Data{e, events.Delisting{List: e.List, EntryID: e.EntryID}} {
		if err := s.Save(feed(m, d)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Contains(readFile(t, s.path), secret) {
		t.Fatal("the store's file has forgotten by itself: this test shows nothing")
	}
	_, b := archiveOf(t, s)
	path := filepath.Join(t.TempDir(), "unpacked.db")
	if _, err := Unpack(context.Background(), bytes.NewReader(b), path, Work{Dir: t.TempDir()}, nil); err != nil {
		t.Fatal(err)
	}
	unpacked, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(unpacked, secret) {
		t.Error("the snapshot still holds what was deleted")
	}
}
