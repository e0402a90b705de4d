package snapshots

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

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
		cfg := RestoreConfig{Path: live.path, Replace: true}
		_, _, err := Restore(context.Background(), bytes.NewReader(bad), cfg)
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
		at = rng.IntN(min(len(b), 900)) // the header
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

// A restore uses nothing of an archive whose manifest lies.
func TestLyingArchives(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 60)
	_, good := archiveOf(t, s)
	keep := func(change func(*Manifest)) func(*Manifest, []byte) []byte {
		return func(m *Manifest, packed []byte) []byte { change(m); return packed }
	}
	for name, c := range map[string]struct {
		change func(*Manifest, []byte) []byte
		want   string
	}{
		"size less":       {keep(func(m *Manifest) { m.Size -= 4096 }), "does not hold the"},
		"size more":       {keep(func(m *Manifest) { m.Size += 4096 }), "does not hold the"},
		"10 GiB":          {keep(func(m *Manifest) { m.Size = 10 << 30 }), "cannot hold"},
		"2 EiB":           {keep(func(m *Manifest) { m.Size = 1 << 61 }), "invalid size"},
		"more than disk":  {keep(func(m *Manifest) { m.Size, m.Packed = 1<<40, 1<<39 }), "no space"},
		"packed less":     {keep(func(m *Manifest) { m.Packed-- }), ""},
		"packed more":     {keep(func(m *Manifest) { m.Packed++ }), "cut short"},
		"checksum":        {keep(func(m *Manifest) { m.SHA256 = strings.Repeat("0", 64) }), "checksum"},
		"digest":          {keep(func(m *Manifest) { m.Digest = strings.Repeat("0", 32) }), "does not match the file"},
		"sequence":        {keep(func(m *Manifest) { m.Sequence++ }), "does not match the file"},
		"epoch":           {keep(func(m *Manifest) { m.StreamEpoch = "other" }), "does not match the file"},
		"message":         {keep(func(m *Manifest) { m.MessageID = "other" }), "does not match the file"},
		"counts":          {keep(func(m *Manifest) { m.Records["donations"]++ }), "does not match the file"},
		"entries":         {keep(func(m *Manifest) { m.Entries["legit"]-- }), "does not match the file"},
		"newer format":    {keep(func(m *Manifest) { m.Format++ }), "format 2"},
		"projection":      {keep(func(m *Manifest) { m.Projection++ }), "projection version"},
		"store format":    {keep(func(m *Manifest) { m.Store++ }), "format 3"},
		"unknown table":   {keep(func(m *Manifest) { m.Records["x"] = 1 }), "unknown table"},
		"garbage after":   {func(_ *Manifest, p []byte) []byte { return append(p, "more"...) }, "data after the end"},
		"another file":    {func(_ *Manifest, _ []byte) []byte { return nil }, "does not hold the"},
		"bomb, small lie": {bomb(1<<20, false), "does not hold the 1048576"},
		"bomb, true size": {bomb(8<<20, true), ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "registry.db")
			_, _, err := Restore(context.Background(), bytes.NewReader(lie(t, good, c.change)), RestoreConfig{Path: path})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v, want %q", err, c.want)
			}
			if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// lie changes the manifest or the packed file of the archive b, under a manifest checksum that is
// right.
func lie(t *testing.T, b []byte, change func(m *Manifest, packed []byte) []byte) []byte {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(b))
	m, err := ReadManifest(r)
	require.NoError(t, err)
	packed, err := io.ReadAll(r)
	require.NoError(t, err)
	packed = change(&m, packed)
	head, err := m.header()
	require.NoError(t, err)
	return append(head, packed...)
}

// bomb packs zeros: as many as it says if it is honest, else 256 MiB.
func bomb(says int64, honest bool) func(*Manifest, []byte) []byte {
	return func(m *Manifest, _ []byte) []byte {
		holds := int64(256 << 20)
		if honest {
			holds = says
		}
		m.Size = says
		packed, sum := packZeros(holds)
		m.Packed, m.SHA256 = int64(len(packed)), sum
		return packed
	}
}

func packZeros(n int64) (packed []byte, sum string) {
	var out bytes.Buffer
	h := sha256.New()
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(packWindow))
	if err != nil {
		panic(err)
	}
	if _, err := io.Copy(io.MultiWriter(w, h), &zeros{n}); err != nil {
		panic(err)
	}
	_ = w.Close() // into memory
	return out.Bytes(), hex.EncodeToString(h.Sum(nil))
}

// zeros reads as so many zero bytes.
type zeros struct{ left int64 }

func (z *zeros) Read(b []byte) (int, error) {
	if z.left <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), z.left)
	clear(b[:n])
	z.left -= n
	return int(n), nil
}

// FuzzManifest: a manifest that can be read says the same when it has been written again.
func FuzzManifest(f *testing.F) {
	m := Manifest{Format: archiveFormat, Store: format, Checkpoint: readmodel.Checkpoint{
		StreamIdentity: readmodel.StreamIdentity{Stream: "REGISTRY", StreamEpoch: "e"}, Sequence: 7},
		Projection: readmodel.ProjectionVersion, DataSet: strings.Repeat("a", 32), Digest: strings.Repeat("b", 32),
		Size: 1 << 15, Packed: 100, SHA256: strings.Repeat("c", 64), Records: map[string]int{"donations": 1}}
	head, err := m.header()
	require.NoError(f, err)
	f.Add(head)
	f.Add([]byte("registry-snapshot 1 \n{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if line, ok := bytes.CutPrefix(b, []byte("{")); ok { // the manifest alone, whatever its checksum
			b = b[:len(b):len(b)]
			if m, err := ParseManifest(append([]byte("{"), line...)); err == nil {
				if head, err := m.header(); err == nil {
					b = head
				}
			}
		}
		m, err := ReadManifest(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		head, err := m.header()
		if err != nil {
			return
		}
		again, err := ReadManifest(bufio.NewReader(bytes.NewReader(head)))
		x, _ := json.Marshal(m)
		y, _ := json.Marshal(again)
		if err != nil || !bytes.Equal(x, y) {
			t.Errorf("%s became %s, %v", x, y, err)
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
			if _, _, err := Restore(context.Background(), bytes.NewReader(b), RestoreConfig{Path: path}); err != nil {
				t.Fatal(err)
			}
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
		if _, err := verifyFile(context.Background(), path, found, ArchiveConfig{}); err != nil {
			t.Fatal(err)
		}
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
		_, aside, err := Restore(context.Background(), bytes.NewReader(b), RestoreConfig{Path: path, Replace: true})
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
