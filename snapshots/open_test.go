package snapshots

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// A new store is empty and says so.
func TestOpenNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	s, m := mustOpen(t, path)
	require.Zero(t, s.Checkpoint(), "checkpoint of a new store")
	if v := m.View(); v.Sequence() != 0 || v.Digest() != (readmodel.Digest{}) {
		t.Errorf("view of a new store: sequence %d, digest %s", v.Sequence(), v.Digest())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the file: %v, %v", info.Mode(), err)
	}
	if a := asides(t, path); len(a) != 0 {
		t.Errorf("left beside a new store: %v", a)
	}
}

// Loading ends with its context, and nothing is set aside.
func TestOpenCancelled(t *testing.T) {
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	require.NoError(t, s.Save(feed(m, sample(50)...)))
	path := copyOf(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Open(ctx, Config{Path: path}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open with an ended context: %v", err)
	}
	if a := asides(t, path); len(a) != 0 {
		t.Errorf("set aside: %v", a)
	}
}

// Many records, several batches a worker, and pages of more than one table.
func TestLoadMany(t *testing.T) {
	t.Parallel()
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	require.NoError(t, s.Save(feed(m, sample(3000)...)))
	_, loaded := mustOpen(t, copyOf(t, s))
	if content(t, loaded.View()) != content(t, m.View()) {
		t.Error("loaded content differs from the saved one")
	}
}

// However far a load has come when it is canceled, it ends.
func TestLoadCancelled(t *testing.T) {
	t.Parallel()
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	require.NoError(t, s.Save(feed(m, sample(6000)...)))
	for _, at := range []int{1, 3, 9} {
		ctx, cancel := context.WithCancel(t.Context())
		l, batches := &loader{workers: 2}, 0
		err := s.db.View(func(tx *bolt.Tx) error {
			_, err := l.read(ctx, walk(tx), func(*batch) error {
				if batches++; batches == at {
					cancel()
				}
				return nil
			})
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at batch %d: %v", at, err)
		}
		cancel()
	}
}

// A store of another render version is rendered again, once.
func TestRerender(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	s, m := mustOpen(t, path)
	s.saved.Render++
	require.NoError(t, s.Save(feed(m, sample(50)...)))
	require.NoError(t, s.Close())
	again, loaded := mustOpen(t, path)
	if content(t, loaded.View()) != content(t, m.View()) {
		t.Error("content differs after rendering again")
	}
	if again.saved.Render != readmodel.RenderVersion {
		t.Errorf("render version is still %d", again.saved.Render)
	}
	_, third := mustOpen(t, copyOf(t, again))
	if content(t, third.View()) != content(t, m.View()) {
		t.Error("content differs when loaded after rendering again")
	}
	if a := asides(t, path); len(a) != 0 {
		t.Errorf("set aside: %v", a)
	}
}

// saved makes a store of some hundred records and returns its bytes and what readers see of it.
func saved(t *testing.T) (file []byte, want string) {
	t.Helper()
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	data := sample(80)
	for half := range 2 {
		part := data[half*len(data)/2 : (half+1)*len(data)/2]
		require.NoError(t, s.Save(feed(m, part...)))
	}
	file, err := os.ReadFile(copyOf(t, s))
	require.NoError(t, err)
	return file, content(t, m.View())
}

// intactOrAside opens b, which must be loaded as it was saved or set aside whole, after one restart
// at most; the store must work afterwards. It reports whether b was noticed: set aside, or a reason
// to die.
func intactOrAside(t *testing.T, b []byte, want string) bool {
	t.Helper()
	return allIntactOrAside(t, [][]byte{b}, want)[0]
}

// allIntactOrAside is intactOrAside for each of files.
func allIntactOrAside(t *testing.T, files [][]byte, want string) (noticed []bool) {
	t.Helper()
	dir := t.TempDir()
	for i, b := range files {
		path := filepath.Join(dir, fmt.Sprintf("%06d", i), "registry.db")
		require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
		writeFile(t, path, b)
	}
	died := openInChild(t, dir)
	for _, mark := range marks(dir) { // of a death
		at := filepath.Dir(mark)
		died[at] = true
		require.NoError(t, os.Remove(filepath.Join(at, "opened")))
	}
	if again := openInChild(t, dir); len(again) > 0 {
		t.Fatalf("another death at %v", again)
	}
	for i, b := range files {
		path := filepath.Join(dir, fmt.Sprintf("%06d", i), "registry.db")
		noticed = append(noticed, isIntactOrAside(t, path, b, want) || died[filepath.Dir(path)])
	}
	return noticed
}

// marks lists the marks of loads in the directories of dir.
func marks(dir string) []string {
	found, _ := filepath.Glob(filepath.Join(dir, "*", "registry.db"+loadingSuffix))
	return found
}

// openInChild opens the store in each directory of dir, in a child process, and in another one
// after each at which that dies.
func openInChild(t *testing.T, dir string) (died map[string]bool) {
	t.Helper()
	died = map[string]bool{}
	for {
		cmd := childCommand(t, "open", dir)
		cmd.Stderr = nil // what the runtime says of a fault
		out, err := cmd.Output()
		if len(out) > 0 {
			t.Fatalf("%s", out)
		}
		if err == nil {
			return died
		}
		at := ""
		for _, m := range marks(dir) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(m), "opened")); err != nil {
				at = filepath.Dir(m)
			}
		}
		if at == "" {
			t.Fatalf("the child died, and no mark is left: %v", err)
		}
		died[at] = true
		writeFile(t, filepath.Join(at, "opened"), nil)
	}
}

// openAll is the child: it opens and closes the store in each directory of dir that it has not come
// to.
func openAll(dir string) int {
	paths, _ := filepath.Glob(filepath.Join(dir, "*", "registry.db"))
	for _, path := range paths {
		opened := filepath.Join(filepath.Dir(path), "opened")
		if _, err := os.Stat(opened); err == nil {
			continue
		}
		log, err := os.Create(filepath.Join(filepath.Dir(path), "log"))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		s, _, err := Open(context.Background(), Config{Path: path, Logger: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		if err := errors.Join(s.Close(), log.Close(), os.WriteFile(opened, nil, 0o600)); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	return 0
}

// isIntactOrAside looks at the store at path, which was b and has been opened since, and reports
// whether b was set aside.
func isIntactOrAside(t *testing.T, path string, b []byte, want string) bool {
	t.Helper()
	log := readFile(t, filepath.Join(filepath.Dir(path), "log"))
	aside := asides(t, path)
	s, m, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer s.Close()
	switch {
	case len(aside) == 0:
		if content(t, m.View()) != want {
			t.Fatal("a damaged store was loaded, and what it says is not what was saved")
		}
		staysIntactOrAside(t, s, m)
	case len(aside) > 1:
		t.Fatalf("beside the store: %v", aside)
	default:
		if got := readFile(t, aside[0]); !bytes.Equal(got, b) {
			t.Fatal("the file set aside is not the damaged one")
		}
		if m.View().Sequence() != 0 || s.Checkpoint().Sequence != 0 {
			t.Fatal("the store that replaces a damaged one is not empty")
		}
		if n := bytes.Count(log, []byte("store set aside")); n != 1 || !bytes.Contains(log, []byte("reason=")) {
			t.Fatalf("log lines about it: %d\n%s", n, log)
		}
		if err := s.Save(feed(m, sample(3)...)); err != nil {
			t.Fatalf("Save into the store that replaces a damaged one: %v", err)
		}
	}
	return len(aside) == 1
}

// staysIntactOrAside saves into a store whose damage Open has not noticed. What a damaged free list
// lets it overwrite is noticed then, or when the file is opened again.
func staysIntactOrAside(t *testing.T, s *Store, m *readmodel.Model) {
	t.Helper()
	for range 3 {
		if s.Save(feed(m, sample(40)...)) != nil {
			return
		}
	}
	path := copyOf(t, s)
	store, again, err := Open(context.Background(), Config{Path: path})
	if err == nil {
		defer store.Close()
	}
	if err != nil || len(asides(t, path)) == 0 && content(t, again.View()) != content(t, m.View()) {
		t.Fatalf("what was saved into a damaged store is not what it says: %v", err)
	}
}

// Open notices every cut of the file and foreign content; reading them never ends the process.
func TestDamagedShapes(t *testing.T) {
	t.Parallel()
	file, want := saved(t)
	page := os.Getpagesize()
	zero := func(from, to int) []byte {
		b := bytes.Clone(file)
		clear(b[from:to])
		return b
	}
	shapes := map[string][]byte{
		"empty":             {},
		"one byte":          file[:1],
		"one page":          file[:page],
		"meta pages only":   file[:2*page],
		"half":              file[:len(file)/2],
		"odd length":        file[:len(file)-777],
		"last page missing": file[:len(file)-page],
		"both metas zero":   zero(0, 2*page),
		"all zero":          zero(0, len(file)),
		"text":              []byte(strings.Repeat("to nie jest baza\n", 4000)),
		"short text":        []byte("hello"),
	}
	for name, b := range shapes {
		t.Run(name, func(t *testing.T) {
			if !intactOrAside(t, b, want) {
				t.Error("not noticed")
			}
		})
	}
}

// A crash can leave one bad meta page. bbolt then uses the other: that older state is whole, or set
// aside.
func TestOneMetaPage(t *testing.T) {
	file, _ := saved(t)
	page := os.Getpagesize()
	for n := range 2 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := bytes.Clone(file)
			clear(b[n*page : (n+1)*page])
			s, m := mustOpen(t, place(t, b))
			if got := m.View().Sequence(); got != s.Checkpoint().Sequence {
				t.Errorf("view at %d, checkpoint %d", got, s.Checkpoint().Sequence)
			}
		})
	}
}

func TestZeroedPages(t *testing.T) {
	t.Parallel()
	file, want := saved(t)
	page := os.Getpagesize()
	var zeroed [][]byte
	for from := 2 * page; from+page <= len(file); from += page {
		b := bytes.Clone(file)
		clear(b[from : from+page])
		zeroed = append(zeroed, b)
	}
	if !slices.Contains(allIntactOrAside(t, zeroed, want), true) {
		t.Error("no zeroed page was noticed")
	}
}

// A reference that leads out of the file, or a page that goes on forever, is damage.
func TestReferencesBeyond(t *testing.T) {
	t.Parallel()
	file, want := saved(t)
	page := os.Getpagesize()
	kinds := map[uint16]string{1: "branch", 2: "leaf", 16: "free list"}
	var flipped [][]byte
	var names []string
	for at := 2 * page; at < len(file); at += page {
		kind := kinds[binary.NativeEndian.Uint16(file[at+8:])]
		if kind == "leaf" && at/page%4 != 0 && !eventstest.FullRun() {
			continue // most pages are leaves
		}
		if kind == "free list" {
			continue // a Save may then overwrite a page in use, and walk in circles until memory runs out
		}
		for what, field := range map[string]struct{ at, add int }{
			"position": {16, 0}, "first of the element": {16, 3}, "size": {20, 3}, "page or size": {24, 3}, "size of a value": {28, 3}, "pages": {12, 2},
		} {
			b := bytes.Clone(file)
			b[at+field.at+field.add] ^= 2
			flipped, names = append(flipped, b), append(names, kind+", "+what)
		}
	}
	tried := map[string]int{}
	for i, noticed := range allIntactOrAside(t, flipped, want) {
		if noticed {
			tried[names[i]]++
		}
	}
	for _, must := range []string{"branch, page or size", "leaf, size", "leaf, size of a value"} {
		if tried[must] == 0 {
			t.Errorf("never noticed: %s; noticed: %v", must, tried)
		}
	}
}

// Open notices a flipped bit, unless it is in unused bytes.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	file, want := saved(t)
	flips, noticed := 50, 0
	var flipped [][]byte
	if eventstest.FullRun() {
		flips = 200
	}
	r := rand.New(rand.NewPCG(3, 14))
	for range flips {
		bit := r.IntN(8 * len(file))
		b := bytes.Clone(file)
		b[bit/8] ^= 1 << (bit % 8)
		flipped = append(flipped, b)
	}
	for _, is := range allIntactOrAside(t, flipped, want) {
		if is {
			noticed++
		}
	}
	t.Logf("%d of %d flips noticed, the others were in unused bytes", noticed, flips)
	if noticed == 0 {
		t.Error("no flip was noticed")
	}
}

// Open refuses a store whose meta record has another version, or does not agree with the records.
func TestOtherMeta(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*meta){
		"format":             func(m *meta) { m.Format++ },
		"projection version": func(m *meta) { m.Projection++ },
		"digest":             func(m *meta) { m.Digest = readmodel.Digest{1}.String() },
		"count":              func(m *meta) { m.Counts["donations"]++ },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			requireAside(t, func(s *Store, tx *bolt.Tx) error {
				other := s.saved
				change(&other)
				return other.write(tx)
			})
		})
	}
}

// requireAside makes a change to a store that is sound otherwise. Open must set the store aside.
func requireAside(t *testing.T, change func(*Store, *bolt.Tx) error) {
	t.Helper()
	s, m := filled(t, 20)
	require.NoError(t, s.db.Update(func(tx *bolt.Tx) error { return change(s, tx) }))
	if !intactOrAside(t, readFile(t, copyOf(t, s)), content(t, m.View())) {
		t.Error("not noticed")
	}
}

// Open notices a record that is under another key, in another table, missing or added.
func TestMisplacedRecord(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*bolt.Tx) error{
		"removed": func(tx *bolt.Tx) error { return tx.Bucket([]byte("donations")).Delete([]byte("d0")) },
		"renamed": func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte("donations"))
			return b.Put([]byte("d1"), bytes.Clone(b.Get([]byte("d0"))))
		},
		"moved": func(tx *bolt.Tx) error {
			k, v := tx.Bucket([]byte("entries-scammers")).Cursor().First()
			return tx.Bucket([]byte("entries-servers")).Put(bytes.Clone(k), bytes.Clone(v))
		},
		"short":         func(tx *bolt.Tx) error { return tx.Bucket([]byte("donations")).Put([]byte("d0"), []byte{1}) },
		"table missing": func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("views-legit")) },
		"meta missing":  func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(metaBucket)) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			requireAside(t, func(_ *Store, tx *bolt.Tx) error { return change(tx) })
		})
	}
}

// What is said of a damaged store names no donation: it is logged (events/CONTRACT.md#rejection).
func TestDamageNamesNoDonation(t *testing.T) {
	t.Parallel()
	const name = "donations"
	secret := donation(1)
	secret.DonationID = "kanarek"
	id := secret.DonationID
	for what, damage := range map[string]func(t *testing.T, s *Store){
		"state": func(t *testing.T, s *Store) {
			rewrite(t, s, name, id, func(v []byte) []byte { return bytes.Replace(v, []byte(`"status":`), []byte(`"statuS":`), 1) })
		},
		"value": func(t *testing.T, s *Store) { rewrite(t, s, name, id, func([]byte) []byte { return nil }) },
		"other": func(t *testing.T, s *Store) {
			rewrite(t, s, name, id, func(v []byte) []byte { return bytes.Replace(v, []byte(id), []byte(id+"x"), 1) })
		},
		"checksum": func(t *testing.T, s *Store) {
			require.NoError(t, s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte(name)).Put([]byte(id), []byte("damaged")) }))
		},
	} {
		s, m := filled(t, 20)
		require.NoError(t, s.Save(feed(m, secret)))
		damage(t, s)
		path := copyOf(t, s)
		var log bytes.Buffer
		_, archived := s.Archive(t.Context(), ArchiveConfig{TempDir: t.TempDir()})
		store, _, err := Open(t.Context(), Config{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(what, err)
		}
		_ = store.Close()
		for _, text := range []string{log.String(), fmt.Sprint(archived)} {
			if !strings.Contains(text, name) || strings.Contains(text, id) || strings.Contains(text, hex.EncodeToString([]byte(id))) {
				t.Errorf("%s: %s", what, text)
			}
		}
	}
}

// Two damaged stores within one second get two names.
func TestAsideNeverOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	for n := 1; n <= 3; n++ {
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "damaged %d", n), 0o600))
		s, _ := mustOpen(t, path)
		require.NoError(t, s.Close())
		if a := asides(t, path); len(a) != n {
			t.Fatalf("after %d damaged stores: %v", n, a)
		}
	}
}

// An entry that has a tombstone too is damage.
func TestEntryWithTombstone(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 40)
	err := s.db.Update(func(tx *bolt.Tx) error {
		list := string(events.Servers)
		key, _ := tx.Bucket([]byte(entriesPrefix + list)).Cursor().First()
		stones := tx.Bucket([]byte("tombstones-" + list))
		stored := readmodel.NewRenderer().Render(1, events.Delisting{List: events.Servers, EntryID: string(key), Revision: 1}).
			AppendValue(make([]byte, sumSize))
		seal("tombstones-"+list, key, stored)
		m, err := readMeta(tx)
		if err != nil {
			return err
		}
		m.Counts["tombstones-"+list]++
		return errors.Join(stones.Put(key, stored), m.write(tx))
	})
	require.NoError(t, err)
	path := copyOf(t, s)
	_, m := mustOpen(t, path)
	if a := asides(t, path); len(a) != 1 || m.View().Sequence() != 0 {
		t.Errorf("beside the store: %v", a)
	}
}

// A process that is killed while it loads the store leaves a mark. The next one does not load that
// store: it sets it aside, and the second time in place of the first.
func TestKilledWhileLoading(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 20)
	path := copyOf(t, s)
	good := readFile(t, path)
	for range 2 {
		writeFile(t, path, good)
		if out, err := childCommand(t, "die loading", path).Output(); err == nil || len(out) > 0 {
			t.Fatalf("not killed: %v %s", err, out)
		}
		again, loaded := mustOpen(t, path)
		if loaded.View().Sequence() != 0 || again.Checkpoint().Sequence != 0 {
			t.Error("the store was loaded again")
		}
		require.NoError(t, again.Close())
		if a := asides(t, path); len(a) != 1 || !bytes.Equal(readFile(t, a[0]), good) {
			t.Errorf("beside the store: %v", a)
		}
	}
	// Restored over it, or found after it was removed: the mark says nothing about that one.
	_, archive := archiveOf(t, s)
	for name, bring := range map[string]func(){
		"restored": func() {
			_, err := restore(archive, RestoreConfig{Path: path, Replace: true})
			require.NoError(t, err)
		},
		"made by an earlier start": func() {
			_ = os.Remove(path)
			again, _ := mustOpen(t, path)
			_ = again.Close()
			writeFile(t, path, good)
		},
	} {
		writeMarker(path + loadingSuffix)
		bring()
		again, loaded := mustOpen(t, path)
		if content(t, loaded.View()) != content(t, m.View()) || isThere(path+loadingSuffix) {
			t.Errorf("%s: not loaded", name)
		}
		_ = again.Close()
	}
}

// dieLoading opens a store with a log that kills the process before the load ends.
func dieLoading(path string) int {
	_, _, err := Open(context.Background(), Config{Path: path, Logger: slog.New(killing{slog.DiscardHandler})})
	fmt.Println("not killed:", err)
	return 1
}

type killing struct{ slog.Handler }

func (killing) Enabled(context.Context, slog.Level) bool { return true }

func (killing) Handle(context.Context, slog.Record) error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		return err
	}
	select {} // until the signal comes
}

// A load that its caller ends leaves no mark.
func TestMarkAfterCancelled(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 20)
	path := copyOf(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Open(ctx, Config{Path: path}); !errors.Is(err, context.Canceled) || len(asides(t, path)) > 0 {
		t.Errorf("%v, beside the store: %v", err, asides(t, path))
	}
}

// Where there is no store, or none that loads, Open loads the one that Restore brings. Where that
// does not load either, or brings none, Open makes an empty one.
func TestRestoreInPlace(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 20)
	good := readFile(t, copyOf(t, s))
	damaged := good[:len(good)/2]
	failed := errors.New("interrupted")
	for name, c := range map[string]struct {
		file, restored []byte // nil: none
		err            error
		asides         int
		want           *readmodel.Model
	}{
		"no store":               {nil, good, nil, 0, m},
		"damaged":                {damaged, good, nil, 1, m},
		"damaged twice":          {damaged, damaged, nil, 2, nil},
		"damaged, none restored": {damaged, nil, nil, 1, nil},
		"good":                   {good, damaged, failed, 0, m},
		"error":                  {damaged, nil, failed, 1, nil},
	} {
		path := filepath.Join(t.TempDir(), "registry.db")
		if c.file != nil {
			writeFile(t, path, c.file)
		}
		s, loaded, err := Open(t.Context(), Config{Path: path, Restore: func(context.Context) error {
			if c.restored != nil {
				writeFile(t, path, c.restored)
			}
			return c.err
		}})
		if n := len(asides(t, path)); n != c.asides {
			t.Errorf("%s: %d stores set aside, want %d", name, n, c.asides)
		}
		if name == "error" {
			if !errors.Is(err, failed) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(name, err)
		}
		want := content(t, readmodel.New().View())
		if c.want != nil {
			want = content(t, c.want.View())
		}
		if content(t, loaded.View()) != want {
			t.Errorf("%s: another content", name)
		}
		if err := errors.Join(s.Save(feed(loaded, sample(3)...)), s.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Save that meets damaged pages says so, and a replacement takes the store's place.
func TestSaveIntoDamage(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 300)
	file := readFile(t, s.path)
	clear(file[2*os.Getpagesize():])
	f, err := os.OpenFile(s.path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(file, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for range 2 {
		if err := s.Save(feed(m, sample(40)...)); !errors.Is(err, ErrDamaged) {
			t.Errorf("Save into damaged pages: %v", err)
		}
	}
	path := s.path
	next, err := NewReplacement(Config{Path: path})
	require.NoError(t, err)
	loaded := readmodel.New()
	require.NoError(t, next.Save(feed(loaded, sample(300)...)))
	_, err = next.Replace(s)
	require.NoError(t, err)
	_ = s.Close() // damaged
	require.NoError(t, next.Close())
	_, again := mustOpen(t, path)
	if content(t, again.View()) != content(t, loaded.View()) {
		t.Error("another content")
	}
}
