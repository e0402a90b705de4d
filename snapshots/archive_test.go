package snapshots

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/registry/events"
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

// Export gives a content with the same digest, in the same order every time.
func TestExport(t *testing.T) {
	s, m := filled(t, 200)
	var first, second bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &second} {
		began := false
		err := s.Export(context.Background(), to, Work{Dir: t.TempDir()}, func() { began = true })
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

// An export that the disk contradicts writes nothing.
func TestExportOfDamaged(t *testing.T) {
	s, _ := filled(t, 50)
	rewrite(t, s, "donations", "d0", func(value []byte) []byte { return bytes.Replace(value, []byte("1.50"), []byte("2.50"), 1) })
	var out bytes.Buffer
	if err := s.Export(context.Background(), &out, Work{Dir: t.TempDir()}, nil); err == nil || out.Len() > 0 {
		t.Errorf("%d bytes of a damaged store, %v", out.Len(), err)
	}
}

// A restore that is killed at any moment leaves the old store or the new one.
func TestRestoreKilled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "registry.db")
	digests := map[string]bool{}
	for i, n := range []int{150, 250} {
		s, m := filled(t, n)
		_, b := archiveOf(t, s)
		writeFile(t, fmt.Sprint(path, ".archive", i), b)
		digests[m.Digest().String()] = true
		if i == 0 {
			if _, _, err := Restore(context.Background(), bytes.NewReader(b), Restoring{Path: path}); err != nil {
				t.Fatal(err)
			}
		}
	}
	rng := newRand(t)
	for range 12 {
		cmd := childCommand(t, "restore", path)
		killSoon(t, cmd, time.Duration(rng.IntN(60_000))*time.Microsecond)
		found, err := fileMeta(path)
		if err != nil || !digests[found.Digest] {
			t.Fatalf("after a kill: %+v, %v", found, err)
		}
		if _, err := proveFile(context.Background(), path, found, Work{}); err != nil {
			t.Fatal(err)
		}
	}
}

// What is there keeps its name until the new one has it, also when the new one never gets it.
func TestMoveIntoFails(t *testing.T) {
	s, _ := filled(t, 5)
	_ = s.Close()
	if _, err := moveInto(s.path+".nothing", s.path); err == nil {
		t.Fatal("moved nothing")
	}
	if _, err := fileMeta(s.path); err != nil || len(asides(t, s.path)) > 0 {
		t.Errorf("%v; beside it %v", err, asides(t, s.path))
	}
}

// killSoon lets the child say that it has begun, and kills it after so long.
func killSoon(t *testing.T, cmd *exec.Cmd, after time.Duration) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	<-time.After(after) // the moment of the kill is the point; nothing is waited for
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed: an error by design
}

// restoreForEver restores one archive after the other over the store at path.
func restoreForEver(path string) int {
	fmt.Println("begun")
	for n := 0; ; n++ {
		b, err := os.ReadFile(fmt.Sprint(path, ".archive", n%2))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		_, aside, err := Restore(context.Background(), bytes.NewReader(b), Restoring{Path: path, Replace: true})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		os.Remove(aside)
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
