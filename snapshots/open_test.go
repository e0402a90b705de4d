package snapshots

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// A new store is empty and says so.
func TestOpenNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	s, m := mustOpen(t, path)
	if got := s.Checkpoint(); got != (readmodel.Checkpoint{}) {
		t.Errorf("checkpoint of a new store: %+v", got)
	}
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
	if err := s.Save(feed(m, sample(50)...)); err != nil {
		t.Fatal(err)
	}
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

// Many records, several chunks a worker, and pages of more than one table.
func TestLoadMany(t *testing.T) {
	t.Parallel()
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	if err := s.Save(feed(m, sample(3000)...)); err != nil {
		t.Fatal(err)
	}
	_, loaded := mustOpen(t, copyOf(t, s))
	if content(t, loaded.View()) != content(t, m.View()) {
		t.Error("loaded content differs from the saved one")
	}
}

// A store of another render version is rendered again, once.
func TestRerender(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	s, m := mustOpen(t, path)
	s.saved.Render++
	if err := s.Save(feed(m, sample(50)...)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
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
		if err := s.Save(feed(m, part...)); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(copyOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return file, content(t, m.View())
}

// intactOrAside opens b, which must be loaded as it was saved or set aside whole; the store must work
// afterwards. It reports whether b was set aside.
func intactOrAside(t *testing.T, b []byte, want string) bool {
	t.Helper()
	path := place(t, b)
	var log bytes.Buffer
	s, m, err := Open(context.Background(), Config{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer s.Close()
	aside := asides(t, path)
	switch {
	case len(aside) == 0:
		if content(t, m.View()) != want {
			t.Fatal("a damaged store was loaded, and what it says is not what was saved")
		}
	case len(aside) > 1:
		t.Fatalf("beside the store: %v", aside)
	default:
		if got, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("the file set aside is not the damaged one (%v)", err)
		}
		if m.View().Sequence() != 0 || s.Checkpoint().Sequence != 0 {
			t.Fatal("the store that replaces a damaged one is not empty")
		}
		if n := strings.Count(log.String(), "store set aside"); n != 1 || !strings.Contains(log.String(), "reason=") {
			t.Fatalf("log lines about it: %d\n%s", n, log.String())
		}
		if err := s.Save(feed(m, sample(3)...)); err != nil {
			t.Fatalf("Save into the store that replaces a damaged one: %v", err)
		}
	}
	return len(aside) == 1
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
	noticed := 0
	for from := 2 * page; from+page <= len(file); from += page {
		b := bytes.Clone(file)
		clear(b[from : from+page])
		if intactOrAside(t, b, want) {
			noticed++
		}
	}
	if noticed == 0 {
		t.Error("no zeroed page was noticed")
	}
}

// A page that only bbolt's check would read, beyond the end of the file, costs the store and not the process.
func TestPageBeyondTheEnd(t *testing.T) {
	t.Parallel()
	for what, inMeta := range map[string]bool{"table": false, "meta": true} {
		const name = "of-somebody-else"
		s, _ := filled(t, 20)
		err := s.db.Update(func(tx *bolt.Tx) error {
			create := tx.CreateBucket
			if inMeta {
				create = tx.Bucket([]byte(metaBucket)).CreateBucket
			}
			b, err := create([]byte(name))
			for n := range 500 { // more than fits into the page of the table's name
				err = errors.Join(err, b.Put(fmt.Appendf(nil, "key %d", n), []byte("value")))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		path := copyOf(t, s)
		file := readFile(t, path)
		beyond := binary.LittleEndian.AppendUint64(nil, uint64(len(file)/os.Getpagesize()+10))
		for at := 0; ; at += len(name) { // where its pages begin follows the name
			found := bytes.Index(file[at:], []byte(name))
			if found < 0 {
				break
			}
			at += found
			copy(file[at+len(name):], beyond)
		}
		writeFile(t, path, file)
		_, m := mustOpen(t, path)
		if a := asides(t, path); len(a) != 1 || m.View().Sequence() != 0 {
			t.Errorf("%s: beside the store: %v", what, a)
		}
	}
}

// A reference that leads out of the file, or a page that goes on for ever, is damage. Any of them would end the process, or
// keep it busy, in bbolt's own check.
func TestReferencesBeyond(t *testing.T) {
	t.Parallel()
	file, want := saved(t)
	page := os.Getpagesize()
	kinds := map[uint16]string{1: "branch", 2: "leaf", 16: "free list"}
	tried := map[string]int{}
	for at := 2 * page; at < len(file); at += page {
		kind := kinds[binary.NativeEndian.Uint16(file[at+8:])]
		for what, field := range map[string]struct{ at, add int }{
			"position": {16, 0}, "first of the element": {16, 3}, "size": {20, 3}, "page or size": {24, 3}, "size of a value": {28, 3}, "pages": {12, 2},
		} {
			b := bytes.Clone(file)
			b[at+field.at+field.add] ^= 2
			if intactOrAside(t, b, want) {
				tried[kind+", "+what]++
			}
		}
	}
	for _, must := range []string{"branch, first of the element", "branch, size", "branch, page or size", "leaf, size of a value", "leaf, pages", "free list, pages"} {
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
	if eventstest.Full() {
		flips = 200
	}
	r := rand.New(rand.NewPCG(3, 14))
	for range flips {
		bit := r.IntN(8 * len(file))
		b := bytes.Clone(file)
		b[bit/8] ^= 1 << (bit % 8)
		if intactOrAside(t, b, want) {
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
	if err := s.db.Update(func(tx *bolt.Tx) error { return change(s, tx) }); err != nil {
		t.Fatal(err)
	}
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
			if err := s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte(name)).Put([]byte(id), []byte("damaged")) }); err != nil {
				t.Fatal(err)
			}
		},
	} {
		s, m := filled(t, 20)
		if err := s.Save(feed(m, secret)); err != nil {
			t.Fatal(err)
		}
		damage(t, s)
		path := copyOf(t, s)
		var log bytes.Buffer
		_, exported := ExportFile(t.Context(), path, io.Discard, Since{})
		store, _, err := Open(t.Context(), Config{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(what, err)
		}
		_ = store.Close()
		for _, text := range []string{log.String(), fmt.Sprint(exported)} {
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
		if err := os.WriteFile(path, fmt.Appendf(nil, "damaged %d", n), 0o600); err != nil {
			t.Fatal(err)
		}
		s, _ := mustOpen(t, path)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if a := asides(t, path); len(a) != n {
			t.Fatalf("after %d damaged stores: %v", n, a)
		}
	}
}
