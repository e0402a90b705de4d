package snapshots

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel"
)

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

// intactOrAside opens b and requires that it is either loaded as it was saved or set aside whole; and
// that the store works afterwards. It says whether it was set aside.
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

// Every cut of the file, and foreign content, is noticed; reading it never ends the process.
func TestDamagedShapes(t *testing.T) {
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

// One bad meta page is what a crash can leave: bbolt goes back to the other one. Either that older state
// is whole, or it is set aside.
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

// A flipped bit is noticed, or is where nothing is.
func TestFlippedBits(t *testing.T) {
	file, want := saved(t)
	flips, noticed := 200, 0
	if testing.Short() {
		flips = 50
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

// What the meta record can say that makes a store useless here.
func TestOtherMeta(t *testing.T) {
	changes := map[string]func(*meta){
		"format":             func(m *meta) { m.Format++ },
		"projection version": func(m *meta) { m.Projection++ },
		"digest":             func(m *meta) { m.Digest = readmodel.Digest{1}.String() },
		"count":              func(m *meta) { m.Counts["donations"]++ },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
			if err := s.Save(feed(m, sample(20)...)); err != nil {
				t.Fatal(err)
			}
			other := s.saved
			change(&other)
			if err := s.db.Update(func(tx *bolt.Tx) error { return other.write(tx, s.sum) }); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(copyOf(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if !intactOrAside(t, b, content(t, m.View())) {
				t.Error("not noticed")
			}
		})
	}
}

// A record under another key, in another table, missing or added is noticed.
func TestMisplacedRecord(t *testing.T) {
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
			s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
			if err := s.Save(feed(m, sample(20)...)); err != nil {
				t.Fatal(err)
			}
			if err := s.db.Update(change); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(copyOf(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if !intactOrAside(t, b, content(t, m.View())) {
				t.Error("not noticed")
			}
		})
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
