package snapshots

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// Whatever happens to an archive's bytes, what comes out is the same content or nothing, and the store that
// is there stays as it is.
func TestMutatedArchives(t *testing.T) {
	s, m := filled(t, 60)
	_, good := archiveOf(t, s)
	live, _ := filled(t, 5)
	before, as := readFile(t, live.path), lstat(t, live.path)
	rng := newRand(t)
	refused := 0
	for range 500 {
		bad := mutate(rng, good)
		cfg := Restoring{Path: live.path, Replace: true, Workers: 1}
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
			t.Fatalf("refused (%v), and left behind", err)
		}
	}
	if !bytes.Equal(readFile(t, live.path), before) {
		t.Error("the store is another")
	}
	if refused < 490 {
		t.Errorf("%d of 500 refused: are these mutations?", refused)
	}
}

// lie makes an archive that says of b, or of what b holds, what change makes of it; its checksum is right.
func lie(t *testing.T, b []byte, change func(m *Manifest, packed []byte) []byte) []byte {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(b))
	m, err := ReadManifest(r)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	packed = change(&m, packed)
	head, err := m.header()
	if err != nil {
		t.Fatal(err)
	}
	return append(head, packed...)
}

// A manifest that lies is found out before anything is used.
func TestLyingArchives(t *testing.T) {
	s, _ := filled(t, 60)
	_, good := archiveOf(t, s)
	keep := func(change func(*Manifest)) func(*Manifest, []byte) []byte {
		return func(m *Manifest, packed []byte) []byte { change(m); return packed }
	}
	for name, c := range map[string]struct {
		change func(*Manifest, []byte) []byte
		want   string
	}{
		"size less":       {keep(func(m *Manifest) { m.Size -= 4096 }), "not the"},
		"size more":       {keep(func(m *Manifest) { m.Size += 4096 }), "not the"},
		"10 GiB":          {keep(func(m *Manifest) { m.Size = 10 << 30 }), "cannot hold"},
		"2 EiB":           {keep(func(m *Manifest) { m.Size = 1 << 61 }), "no such size"},
		"more than disk":  {keep(func(m *Manifest) { m.Size, m.Packed = 1<<40, 1<<39 }), "no space"},
		"packed less":     {keep(func(m *Manifest) { m.Packed-- }), ""},
		"packed more":     {keep(func(m *Manifest) { m.Packed++ }), "cut short"},
		"checksum":        {keep(func(m *Manifest) { m.SHA256 = strings.Repeat("0", 64) }), "checksum"},
		"digest":          {keep(func(m *Manifest) { m.Digest = strings.Repeat("0", 32) }), "not that of the file"},
		"sequence":        {keep(func(m *Manifest) { m.Sequence++ }), "not that of the file"},
		"epoch":           {keep(func(m *Manifest) { m.StreamEpoch = "other" }), "not that of the file"},
		"message":         {keep(func(m *Manifest) { m.MessageID = "other" }), "not that of the file"},
		"counts":          {keep(func(m *Manifest) { m.Records["donations"]++ }), "not that of the file"},
		"entries":         {keep(func(m *Manifest) { m.Entries["legit"]-- }), "not that of the file"},
		"newer format":    {keep(func(m *Manifest) { m.Format++ }), "format 2"},
		"projection":      {keep(func(m *Manifest) { m.Projection++ }), "projection version"},
		"store format":    {keep(func(m *Manifest) { m.Store++ }), "format 2"},
		"unknown table":   {keep(func(m *Manifest) { m.Records["x"] = 1 }), "no such records"},
		"garbage behind":  {func(_ *Manifest, p []byte) []byte { return append(p, "more"...) }, "follows"},
		"another file":    {func(_ *Manifest, _ []byte) []byte { return nil }, "not the"},
		"bomb, small lie": {bomb(1<<20, false), "not the 1048576"},
		"bomb, true size": {bomb(8<<20, true), ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "registry.db")
			_, _, err := Restore(context.Background(), bytes.NewReader(lie(t, good, c.change)), Restoring{Path: path})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v, want %q", err, c.want)
			}
			if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// zeros is a stream that is not held in memory.
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

// bomb holds zeros: 256 MiB where it lies, else as many as it says.
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

// The rows of a store are proved against what the events said, also those whose checksums and digests add up.
func TestProvedAgainstState(t *testing.T) {
	s, m := filled(t, 20)
	var key string
	for _, e := range sample(20) {
		if e, ok := e.(events.Entry); ok && e.List == events.Scammers {
			key = e.EntryID
		}
	}
	rewrite(t, s, "entries-scammers", key, func(value []byte) []byte {
		return bytes.Replace(value, []byte(`"verified":`), []byte(`"verifieD":`), 1)
	})
	if _, err := s.Archive(context.Background(), Work{Dir: t.TempDir()}); err == nil {
		t.Errorf("a changed state was archived; digest %s", m.Digest())
	}
}

// FuzzManifest: any beginning is a manifest or not; one that is says the same when it is written again.
func FuzzManifest(f *testing.F) {
	m := Manifest{Format: archiveFormat, Stream: "REGISTRY", StreamEpoch: "e", Sequence: 7, Store: format,
		Projection: readmodel.ProjectionVersion, DataSet: strings.Repeat("a", 32), Digest: strings.Repeat("b", 32),
		Size: 1 << 15, Packed: 100, SHA256: strings.Repeat("c", 64), Records: map[string]int{"donations": 1}}
	head, err := m.header()
	if err != nil {
		f.Fatal(err)
	}
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
