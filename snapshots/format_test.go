package snapshots

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"example.org/registry/readmodel"
)

// A store and an archive that an earlier program wrote still open, and answer as a replay does.
// Each is as written on 2026-11-22, from sample(12) and a checkpoint that was unconfirmed, which a
// store keeps and a manifest does not: store format 2, archive format 1, projection 1, render 3. A
// new format gets a directory of its own; never write these again.
func TestGoldenFiles(t *testing.T) {
	const projection, digest = 1, "a25f75d2bb8b421b5e0ac6c2720fac21"
	twin := readmodel.New()
	want := feed(twin, sample(12)...).Checkpoint
	want.Unconfirmed = true
	if got := twin.Digest().String(); got != digest {
		t.Fatalf("sample(12) has digest %s, not %s: change the test, not the files", got, digest)
	}
	dir := t.TempDir()
	check := func(name string) {
		t.Helper()
		s, m := mustOpen(t, filepath.Join(dir, name))
		if readmodel.ProjectionVersion != projection {
			if len(asides(t, s.path)) != 1 {
				t.Errorf("%s: projection %d, and not set aside", name, projection)
			}
			return
		}
		if s.Checkpoint() != want {
			t.Errorf("%s: checkpoint %+v, want %+v", name, s.Checkpoint(), want)
		}
		if !slices.Equal(m.Tombstones(), twin.Tombstones()) {
			t.Errorf("%s: tombstones %v, want %v", name, m.Tombstones(), twin.Tombstones())
		}
		if content(t, m.View()) != content(t, twin.View()) {
			t.Errorf("%s: another content", name)
		}
		if err := s.Probe(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	writeFile(t, filepath.Join(dir, "registry.db"), unpackedGolden(t))
	check("registry.db")

	archive := readFile(t, "testdata/v2/registry.snapshot")
	_, _, err := Restore(t.Context(), bytes.NewReader(archive), RestoreConfig{Path: filepath.Join(dir, "restored.db")})
	if readmodel.ProjectionVersion != projection {
		if err == nil || !strings.Contains(err.Error(), "registry recover") {
			t.Errorf("an archive of another projection version is restored: %v", err)
		}
		// What it holds is not lost.
		path := filepath.Join(dir, "unpacked.db")
		if _, err := Unpack(t.Context(), bytes.NewReader(archive), path); err != nil {
			t.Fatal(err)
		}
		var events bytes.Buffer
		done, err := ExportFile(t.Context(), path, &events, Since{})
		if v := twin.View(); err != nil || done.Entries != v.Total() || done.Tombstones != len(twin.Tombstones()) {
			t.Errorf("exported %+v, %v", done, err)
		}
		return
	}
	require.NoError(t, err)
	check("restored.db")
}

// unpackedGolden is the store that is kept in testdata.
func unpackedGolden(t *testing.T) []byte {
	t.Helper()
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	require.NoError(t, err)
	defer r.Close()
	db, err := r.DecodeAll(readFile(t, "testdata/v2/registry.db.zst"), nil)
	require.NoError(t, err)
	return db
}

// FuzzStored: only what was sealed under the same bucket and key opens, and it opens as it was.
func FuzzStored(f *testing.F) {
	f.Add("donations", []byte("d1"), []byte("value"), []byte("value"))
	f.Add("", []byte{}, []byte{}, []byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, bucket string, key, value, other []byte) {
		stored := append(make([]byte, sumSize), value...)
		seal(bucket, key, stored)
		if got, err := unseal(bucket, key, stored); err != nil || !bytes.Equal(got, value) {
			t.Errorf("sealed %q, opened %q, %v", value, got, err)
		}
		if got, err := unseal(bucket, key, other); err == nil && checksum(bucket, key, got) != checksum(bucket, key, other[sumSize:]) {
			t.Errorf("%q opened", other)
		}
		if len(stored) == len(other) && bytes.Equal(stored[:sumSize], other[:sumSize]) && differInOneByte(stored, other) {
			if _, err := unseal(bucket, key, other); err == nil {
				t.Errorf("%q opened in the place of %q", other, stored)
			}
		}
	})
}

func differInOneByte(a, b []byte) bool {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n == 1
}

// FuzzMeta: any meta record is usable or not, and one that is usable survives a round trip.
func FuzzMeta(f *testing.F) {
	good, err := json.Marshal(newMeta())
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"format":1,"counts":null}`))
	f.Fuzz(func(t *testing.T, record []byte) {
		var m, again meta
		if json.Unmarshal(record, &m) != nil || m.usable() != nil {
			return
		}
		out, err := json.Marshal(m)
		if err != nil {
			return // a time that JSON cannot hold was not written by this program
		}
		if err := json.Unmarshal(out, &again); err != nil || !again.same(m) {
			t.Errorf("%s became %+v, %v", record, again, err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(twice, out) {
			t.Errorf("%s became %s, then %s, %v", record, out, twice, err)
		}
	})
}
