package snapshots

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// From an archive whose bytes have changed a restore makes the same content or nothing, and then
// the store that is there stays as it is.
func TestMutatedArchives(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 60)
	_, good := archiveOf(t, s)
	live, _ := filled(t, 5)
	before, as := readFile(t, live.path), lstat(t, live.path)
	rng := newRand()
	refused := 0
	mutations := 100
	if eventstest.FullRun() {
		mutations = 500
	}
	for range mutations {
		bad := mutate(rng, good)
		_, err := restore(bad, RestoreConfig{Path: live.path, Replace: true})
		if err == nil {
			found, err := fileMeta(live.path)
			if err != nil || found.Digest != m.Digest().String() {
				t.Fatalf("restored %+v, %v", found, err)
			}
			writeFile(t, live.path, before)
			as = lstat(t, live.path)
			continue
		}
		refused++
		if is := lstat(t, live.path); !os.SameFile(is, as) || !is.ModTime().Equal(as.ModTime()) {
			t.Fatalf("refused (%v), and yet the store is another", err)
		}
		if _, err := os.Lstat(live.path + ".restoring"); err == nil {
			t.Fatalf("refused (%v), and left", err)
		}
	}
	if !bytes.Equal(readFile(t, live.path), before) {
		t.Error("the store is another")
	}
	if refused < mutations*98/100 {
		t.Errorf("%d of %d refused: are these mutations?", refused, mutations)
	}
}

// mutate returns a copy of good with something wrong: bits flipped, bytes lost, doubled, swapped or
// added.
func mutate(rng *rand.Rand, good []byte) []byte {
	b := bytes.Clone(good)
	at := rng.IntN(len(b))
	if rng.IntN(3) == 0 {
		at = rng.IntN(min(len(b), 64)) // the header of the frame
	}
	switch rng.IntN(6) {
	case 0:
		b[at] ^= 1 << rng.IntN(8)
	case 1:
		return b[:at]
	case 2:
		return append(b, good[:1+at]...)
	case 3:
		clear(b[at:min(len(b), at+1+rng.IntN(64))])
	case 4:
		return append(b[:at], good[min(len(b), at+1+rng.IntN(4096)):]...)
	case 5:
		b[at] = byte(rng.Uint32())
	}
	return b
}

// Nothing of an archive is used that is another one than its manifest says, or is not made as the
// writer makes it.
func TestLyingArchives(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 60)
	_, archive := archiveOf(t, s)
	good := unpacked(t, archive)
	header, records := splitHeader(t, good)
	says := func(change func(*Manifest)) []byte {
		m, err := ParseManifest(header)
		require.NoError(t, err)
		change(&m)
		head, err := m.header()
		require.NoError(t, err)
		return packed(t, append(head, records...))
	}
	with := func(records ...[]byte) []byte {
		return packed(t, slices.Concat([]byte(archiveMagic), header, slices.Concat(records...)))
	}
	first := recordLen(records)
	second := first + recordLen(records[first:])
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"size less":        {says(func(m *Manifest) { m.Size-- }), "more records than the manifest says"},
		"negative size":    {says(func(m *Manifest) { m.Size = -1 }), "invalid size"},
		"2 EiB":            {says(func(m *Manifest) { m.Size = 1 << 61 }), "invalid size"},
		"more than disk":   {says(func(m *Manifest) { m.Size = 1 << 40 }), "no space"},
		"digest":           {says(func(m *Manifest) { m.Digest = strings.Repeat("0", 32) }), "does not match the end"},
		"fewer records":    {says(func(m *Manifest) { m.Records["donations"]-- }), "donations: more records"},
		"more records":     {says(func(m *Manifest) { m.Records["donations"]++ }), "does not match the end"},
		"of another table": {says(func(m *Manifest) { m.Records["donations"]++; m.Records["tombstones-legit"]-- }), "tombstones-legit: more records"},
		"entries":          {says(func(m *Manifest) { m.Entries["legit"]-- }), "the listed entries differ"},
		"newer format":     {says(func(m *Manifest) { m.Format++ }), "format 4"},
		"projection":       {says(func(m *Manifest) { m.Projection++ }), "projection version"},
		"unknown table":    {says(func(m *Manifest) { m.Records["x"] = 1 }), "unknown table"},
		"two digests":      {lieTwice(t, header, records), "digest of the records is"},
		"list and removal": {with(records[:first], tombstoneOf(records), records[first:]), "is in the list too"},
		"older projection": {says(func(m *Manifest) { m.Projection-- }), "registry recover publishes"},
		"swapped":          {with(records[first:second], records[:first], records[second:]), "keys out of order"},
		"twice":            {with(records[:first], records), "keys out of order"},
		"one missing":      {with(records[first:]), "the listed entries differ"},
		"no end":           {with(records[:second]), "cut short"},
		"nothing":          {packed(t, nil), "not a snapshot"},
		"no header":        {packed(t, good[:30]), "cut short"},
		"an endless line":  {packed(t, append([]byte(archiveMagic), make([]byte, 1<<20)...)), "buffer full"},
		"garbage inside":   {with(records, []byte("more")), "data after the end"},
		"garbage after":    {append(bytes.Clone(archive), "more"...), "data after the end"},
		"no such table":    {with([]byte{200, 1, 1, 'a', 'b'}), "unknown table"},
		"a long key":       {with([]byte{1, 0xff, 0xff, 3, 1}), "a record of 65535 bytes"},
		"a long value":     {with(binary.AppendUvarint([]byte{1, 1}, 1<<62)), "more than 4194304"},
		"a length of 2^70": {with([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}), "overflow"},
		"a bomb":           {with([]byte{1, 1}, binary.AppendUvarint(nil, maxStored), make([]byte, 16<<20)), "more records than the manifest says"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "registry.db")
			_, err := restore(c.archive, RestoreConfig{Path: path})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v, want %q", err, c.want)
			}
			if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	if _, err := restore(with(records), RestoreConfig{Path: filepath.Join(t.TempDir(), "registry.db")}); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}

// tombstoneOf returns a record like the first one of records, an entry, in the table of tombstones.
func tombstoneOf(records []byte) []byte {
	stone := bytes.Clone(records[:recordLen(records)])
	stone[0] += 2
	return stone
}

// lieTwice makes an archive with another digest in its header and at its end.
func lieTwice(t *testing.T, header, records []byte) []byte {
	m, err := ParseManifest(header)
	require.NoError(t, err)
	other := strings.Repeat("0", len(m.Digest))
	replace := func(b []byte) []byte { return bytes.Replace(b, []byte(m.Digest), []byte(other), 1) }
	return packed(t, slices.Concat([]byte(archiveMagic), replace(header), replace(records)))
}

// splitHeader returns the line of the manifest, and what follows it.
func splitHeader(t testing.TB, unpacked []byte) (manifest, records []byte) {
	t.Helper()
	rest, ok := bytes.CutPrefix(unpacked, []byte(archiveMagic))
	end := bytes.IndexByte(rest, '\n') + 1
	if !ok || end == 0 {
		t.Fatal("not an archive")
	}
	return rest[:end:end], rest[end:]
}

// recordLen is the length of the first record.
func recordLen(b []byte) int {
	key, n := binary.Uvarint(b[1:])
	stored, m := binary.Uvarint(b[1+n:])
	return 1 + n + m + int(key+stored)
}

// FuzzReader: of any bytes in the frame of an archive, and of any bytes at all, a reader passes on
// what the manifest says, or returns an error.
func FuzzReader(f *testing.F) {
	s, m := mustOpen(f, filepath.Join(f.TempDir(), "registry.db"))
	require.NoError(f, s.Save(feed(m, sample(12)...)))
	_, archive := archiveOf(f, s)
	good := unpacked(f, archive)
	f.Add(good, true)
	f.Add(archive, false)
	f.Add(good[:len(good)/2], true)
	head, err := (Manifest{Format: archiveFormat, Projection: 1, Digest: readmodel.Digest{}.String(), Checkpoint: at(1)}).header()
	require.NoError(f, err)
	f.Add(append(append(head, 0, 0), readmodel.Digest{}.String()...), true)
	f.Fuzz(func(t *testing.T, b []byte, inFrame bool) {
		if inFrame {
			b = packed(t, b)
		}
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		n, listed := 0, 0
		err = r.EachState(context.Background(), func(s readmodel.State) {
			n++
			if e, ok := s.Data.(events.Entry); ok && (e.Verified || !e.List.Trusted()) {
				listed++
			}
		})
		if err == nil && (n != r.Manifest.RecordCount() || listed != r.Manifest.EntryCount()) {
			t.Errorf("%d states and %d entries, and the manifest says %d and %d", n, listed, r.Manifest.RecordCount(), r.Manifest.EntryCount())
		}
	})
}

// A restore that is killed at any moment leaves the old store or the new one.
func TestRestoreKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "registry.db")
	digests := map[string]bool{}
	for i, n := range []int{150, 250} {
		s, m := filled(t, n)
		_, b := archiveOf(t, s)
		writeFile(t, fmt.Sprint(path, ".archive", i), b)
		digests[m.Digest().String()] = true
		if i == 0 {
			_, err := restore(b, RestoreConfig{Path: path})
			require.NoError(t, err)
		}
	}
	rng := newRand()
	for range 12 {
		cmd := childCommand(t, "restore", path)
		killSoon(t, cmd, time.Duration(rng.IntN(60_000))*time.Microsecond)
		found, err := fileMeta(path)
		if err != nil || !digests[found.Digest] {
			t.Fatalf("after a kill: %+v, %v", found, err)
		}
		again, m := mustOpen(t, path)
		if len(asides(t, path+".damaged")) > 0 || m.Digest().String() != found.Digest {
			t.Fatal("the store does not load")
		}
		_ = again.Close()
	}
}

// killSoon waits until the child says that it has begun, and kills it after so long.
func killSoon(t *testing.T, cmd *exec.Cmd, after time.Duration) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	lines.Scan()
	<-time.After(after) // the moment of the kill is the point; nothing is waited for
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed: an error by design
}

// restoreForever restores one archive after the other over the store at path.
func restoreForever(path string) int {
	fmt.Println("begun")
	for n := 0; ; n++ {
		b, err := os.ReadFile(fmt.Sprint(path, ".archive", n%2))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		aside, err := restore(b, RestoreConfig{Path: path, Replace: true})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		os.Remove(aside)
	}
}

// A store keeps its name if the new one cannot be installed.
func TestInstallFails(t *testing.T) {
	s, _ := filled(t, 5)
	_ = s.Close()
	if _, err := install(s.path+".nothing", s.path); err == nil {
		t.Fatal("moved nothing")
	}
	if _, err := fileMeta(s.path); err != nil || len(asides(t, s.path)) > 0 {
		t.Errorf("%v; beside it %v", err, asides(t, s.path))
	}
}
