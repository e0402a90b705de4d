package snapshots

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// An export has content with the same digest, in the same order every time.
func TestExport(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 200)
	var first, second bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &second} {
		began := false
		err := s.Export(context.Background(), to, ArchiveConfig{TempDir: t.TempDir()}, func() { began = true })
		if err != nil || !began {
			t.Fatal(err, began)
		}
	}
	a, ids := decodeLines(t, first.Bytes())
	b, others := decodeLines(t, second.Bytes())
	if len(a) == 0 || len(a) != len(b) {
		t.Fatalf("%d and %d events", len(a), len(b))
	}
	twin := readmodel.New()
	feed(twin, a...)
	if twin.Digest() != m.Digest() {
		t.Errorf("digest of the export is %s, not %s", twin.Digest(), m.Digest())
	}
	if got, want := len(twin.Tombstones()), len(m.Tombstones()); got != want || want == 0 {
		t.Errorf("%d tombstones exported, want %d", got, want)
	}
	for i := range a {
		if a[i] != b[i] || ids[i] == others[i] {
			t.Fatalf("event %d: %v %s, then %v %s", i, a[i], ids[i], b[i], others[i])
		}
	}
}

func decodeLines(t *testing.T, b []byte) (data []events.Data, ids []string) {
	t.Helper()
	for line := range bytes.Lines(b) {
		e, err := events.Decode(bytes.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		data, ids = append(data, e.Data), append(ids, e.ID)
	}
	return data, ids
}

// An export of a damaged store writes nothing.
func TestExportOfDamaged(t *testing.T) {
	s, _ := filled(t, 50)
	rewrite(t, s, "donations", "d0", func(value []byte) []byte { return bytes.Replace(value, []byte("1.50"), []byte("2.50"), 1) })
	var out bytes.Buffer
	if err := s.Export(context.Background(), &out, ArchiveConfig{TempDir: t.TempDir()}, nil); err == nil || out.Len() > 0 {
		t.Errorf("%d bytes of a damaged store, %v", out.Len(), err)
	}
}

// What has happened since the archive was made takes the place of what the archive says, and tombstones
// keep their times.
func TestExportSince(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 100)
	stones := m.Tombstones()
	_, archive := archiveOf(t, s)
	listed := eventstest.Entries(100, 7)[:40]
	var since Since
	left := map[events.Subject]bool{}
	for i, e := range listed {
		if _, ok := m.Listed(e.Subject()); ok && i%2 == 0 {
			since.Delisted = append(since.Delisted, readmodel.Tombstone{List: e.List, EntryID: e.EntryID, Sequence: 1 << 40, Time: at(9999).MessageTime.Truncate(time.Millisecond)})
			left[e.Subject()] = true
		}
	}
	came := stones[0].Subject() // back on its list since
	since.Delisted = append(since.Delisted, readmodel.Tombstone{List: events.Legit, EntryID: "came-and-went"})
	since.Listed = func(k events.Subject) bool { return k == came }
	var out bytes.Buffer
	done, err := Export(t.Context(), reading(t, archive), &out, since)
	require.NoError(t, err)
	times := map[events.Subject]time.Time{}
	for line := range bytes.Lines(out.Bytes()) {
		e, err := events.Decode(bytes.TrimSpace(line))
		require.NoError(t, err)
		switch d := e.Data.(type) {
		case events.Entry:
			if left[d.Subject()] {
				t.Errorf("%s is exported, and was delisted since", d.EntryID)
			}
		case events.Delisting:
			times[d.Subject()] = e.Time
		}
	}
	if done.LeftOut != len(left) || done.Entries != bytes.Count(out.Bytes(), []byte(`"registry.entry.listed"`)) || done.Tombstones != len(times) {
		t.Errorf("%+v, with %d left out and %d tombstones", done, len(left), len(times))
	}
	if len(times) != len(stones)-1+len(left)+1 {
		t.Errorf("%d tombstones, want %d", len(times), len(stones)+len(left))
	}
	for _, stone := range append(stones[1:], since.Delisted...) {
		if got := times[stone.Subject()]; !got.Equal(stone.Time) {
			t.Errorf("%s: delisted %v, want %v", stone.EntryID, got, stone.Time)
		}
	}
	read, err := Withdrawn(t.Context(), reading(t, archive))
	hidden := len(read)
	read = slices.DeleteFunc(read, func(t readmodel.Tombstone) bool { return t.Hidden })
	if hidden -= len(read); hidden == 0 {
		t.Error("no trusted person who is not verified")
	}
	if err != nil || !slices.Equal(read, stones) {
		t.Errorf("tombstones of the archive %v, %v", read, err)
	}
}
