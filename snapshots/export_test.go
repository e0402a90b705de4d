package snapshots

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"example.org/registry/events"
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
	twin, renderer := readmodel.New(), readmodel.NewRenderer()
	for i, d := range slices.Backward(a) { // in any order
		twin.Apply([]readmodel.Record{renderer.Render(uint64(len(a)-i), d)}, uint64(len(a)-i))
	}
	if twin.Digest() != m.Digest() {
		t.Errorf("digest of the export is %s, not %s", twin.Digest(), m.Digest())
	}
	if got, want := len(twin.Tombstones()), len(m.Tombstones()); got != want || want == 0 {
		t.Errorf("%d tombstones exported, want %d", got, want)
	}
	for i := range a {
		if a[i] != b[i] || ids[i] != others[i] || ids[i] != events.StateID(a[i]) {
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
