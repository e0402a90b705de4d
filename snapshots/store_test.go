package snapshots

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// A store that is closed and opened again has the same states, position and digest.
func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 600)
	path, meta := s.path, s.Meta()
	require.NoError(t, s.Close())
	require.Error(t, s.Save(Commit{}), "after Close")

	s, again := mustOpen(t, path)
	require.Equal(t, meta, s.Meta())
	require.Equal(t, m.Digest(), again.Digest())
	require.Equal(t, meta.Sequence, again.View().Sequence())
	require.Empty(t, lacking(again))
	for _, l := range events.Lists() {
		require.Equal(t, m.View().NumEntries(l), again.View().NumEntries(l), l)
		require.Equal(t, m.View().Tombstones(l), again.View().Tombstones(l), l)
	}

	d := events.Revised(donation(0), 9_999)
	_, ok, err := s.State(events.Subject{Kind: events.KindDonation, ID: "nobody"})
	require.NoError(t, err)
	require.False(t, ok, "a donation that nobody has made")
	require.NoError(t, s.Save(feed(again, d)))
	state, ok, err := s.State(d.Subject())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, s.Meta().Sequence, state.Sequence)
	require.Contains(t, string(state.Line), `"donationId":"d0"`)
	require.NoError(t, s.Probe())
}

// In one transaction, what is lacking is written before what is saved: a state that was read again
// is not lacking. And the message of a state after the checkpoint is not known to be in the stream.
func TestLackingComesBeforeStates(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 20)
	m.Rewind(0)
	data := sample(5)
	for i, d := range data {
		data[i] = events.Revised(d, 1000)
	}
	c := feed(m, data...)
	for k := range c.States {
		c.Lacking = append(c.Lacking, k)
	}
	c.Lacking = append(c.Lacking, m.Lacking()...)
	require.NoError(t, s.Save(c))
	want := lacking(m)
	require.NotEmpty(t, want)
	_, again := mustOpen(t, copyOf(t, s))
	require.Equal(t, want, lacking(again))

	c = Commit{Meta: c.Meta}
	c.Meta.Sequence = 0 // what a projector saves while it reads the stream again
	require.NoError(t, s.Save(c))
	_, again = mustOpen(t, copyOf(t, s))
	require.Len(t, lacking(again), again.View().NumSubjects())
}

// Readers see one moment each while a store is saved.
func TestReadersBesideSaves(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 50)
	group, ctx := errgroup.WithContext(t.Context())
	ctx, done := context.WithCancel(ctx)
	group.Go(func() error {
		defer done()
		for i, e := range eventstest.Entries(100, 8) {
			if err := s.Save(feed(m, e)); err != nil {
				return fmt.Errorf("save %d: %w", i, err)
			}
		}
		return nil
	})
	for range 3 {
		group.Go(func() error {
			for ctx.Err() == nil {
				var text bytes.Buffer
				h, err := Write(context.Background(), s, &text, nil)
				if err == nil {
					_, err = Read(&text, func(uint64, events.Event) error { return nil })
				}
				if err != nil {
					return fmt.Errorf("snapshot at %d: %w", h.Sequence, err)
				}
				if err := s.Probe(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
}

// The store of a rebuild replaces another one in one step, and the old one cannot write to it.
func TestReplace(t *testing.T) {
	t.Parallel()
	old, _ := filled(t, 10)
	fresh, m := mustOpen(t, old.path+RebuildingSuffix)
	require.NoError(t, fresh.Save(feed(m, sample(30)...)))
	path := old.path
	require.NoError(t, fresh.Replace(old))
	require.Equal(t, path, fresh.path)
	require.NoError(t, old.Close())
	require.NoError(t, fresh.Save(feed(m, sample(31)...)))
	require.NoError(t, fresh.Close())
	_, again := mustOpen(t, path)
	require.Equal(t, m.Digest(), again.Digest())
	require.NoFileExists(t, path+RebuildingSuffix)
}

// Deleted text leaves the free pages of a store that is open, too, and no reader is harmed.
func TestEraseFree(t *testing.T) {
	t.Parallel()
	const secret = "Tajemnica Poliszynela"
	s, m := filled(t, 50)
	e := eventstest.Entries(1, 5)[0]
	e.Reason = strings.Repeat(secret+" ", 500)
	require.NoError(t, s.Save(feed(m, e)))
	require.NoError(t, s.Save(feed(m, delisting(e))))
	require.True(t, bytes.Contains(readFile(t, s.path), []byte(secret)), "the test needs text in free pages")

	s.erased = time.Time{}
	err := s.Each(func(Meta, int) error { return s.Probe() }, func(State) error { return nil })
	require.NoError(t, err)
	require.True(t, bytes.Contains(readFile(t, s.path), []byte(secret)), "erased beside a reader")
	require.NoError(t, s.Probe())
	require.False(t, bytes.Contains(readFile(t, s.path), []byte(secret)), "deleted text is in the file")
	require.NoError(t, s.Save(feed(m, sample(60)...)))
	_, again := mustOpen(t, copyOf(t, s))
	require.Equal(t, m.Digest(), again.Digest())
}

// Every damage is an error that matches ErrDamaged, or changes nothing that anybody reads; the file can
// then be set aside.
func TestDamage(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 400)
	before := m.Digest() // bbolt goes back to it where the newer of its two meta pages is damaged
	require.NoError(t, s.Save(feed(m, sample(20)...)))
	path := copyOf(t, s)
	whole := readFile(t, path)
	change := func(in func(tx *bolt.Tx) error) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db, err := bolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, db.Update(in))
			require.NoError(t, db.Close())
		}
	}
	rewrite := func(with func(b []byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, with(readFile(t, path)), 0o600))
		}
	}
	first := func(tx *bolt.Tx) (key, value []byte) { return tx.Bucket(statesBucket).Cursor().First() }
	put := func(tx *bolt.Tx, key, value []byte) error { return tx.Bucket(statesBucket).Put(key, value) }

	for name, damage := range map[string]func(*testing.T, string){
		"empty":           rewrite(func([]byte) []byte { return nil }),
		"text":            rewrite(func([]byte) []byte { return []byte(strings.Repeat("no store\n", 4000)) }),
		"cut to a page":   rewrite(func(b []byte) []byte { return b[:4096] }),
		"cut to half":     rewrite(func(b []byte) []byte { return b[:len(b)/2] }),
		"zeros in middle": rewrite(func(b []byte) []byte { clear(b[4*4096 : len(b)/2]); return b }),
		"another program's": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			change(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("wallet")); return err })(t, path)
		},
		"free pages beyond all files": rewrite(func(b []byte) []byte {
			const freelistNumber = 48 // in each of the two meta pages; the list has its length at 10, and its numbers from 16 on
			size := os.Getpagesize()
			for meta := 0; meta < 2*size; meta += size {
				list := b[int(binary.NativeEndian.Uint64(b[meta+freelistNumber:]))*size:]
				for i := range binary.NativeEndian.Uint16(list[10:]) {
					binary.NativeEndian.PutUint64(list[16+8*int(i):], 1<<50+uint64(i))
				}
			}
			return b
		}),
		"no meta record":       change(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Delete(metaKey) }),
		"meta that is no JSON": change(func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Put(metaKey, []byte("{")) }),
		"another digest":       change(func(tx *bolt.Tx) error { return putMeta(tx, metaAt(3)) }),
		"a state is missing":   change(func(tx *bolt.Tx) error { key, _ := first(tx); return tx.Bucket(statesBucket).Delete(key) }),
		"a state is cut":       change(func(tx *bolt.Tx) error { key, value := first(tx); return put(tx, key, value[:len(value)-1]) }),
		"a state of no bytes":  change(func(tx *bolt.Tx) error { key, _ := first(tx); return put(tx, key, nil) }),
		"a state is another's": change(func(tx *bolt.Tx) error { _, value := first(tx); return put(tx, []byte("scammers/x/e"), value) }),
		"a state that nobody saved": change(func(tx *bolt.Tx) error {
			line, err := EncodeState(donation(77))
			return errors.Join(err, put(tx, []byte("~/d77"), encodeStored(State{1, line})))
		}),
		"a name is changed": change(func(tx *bolt.Tx) error {
			key, value := first(tx)
			return put(tx, key, bytes.Replace(value, []byte(`"name":"`), []byte(`"name":"X`), 1))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			path := place(t, whole)
			damage(t, path)
			_, _, err := Open(t.Context(), path)
			require.ErrorIs(t, err, ErrDamaged)
			require.NotContains(t, err.Error(), "\n", "one line")

			aside, err := SetAside(path)
			require.NoError(t, err)
			require.Equal(t, path+".damaged", aside)
			require.NoFileExists(t, path)
			s, empty := mustOpen(t, path)
			require.Zero(t, empty.View().NumSubjects())
			require.NoError(t, s.Save(feed(empty, sample(3)...)))
		})
	}

	t.Run("random bytes", func(t *testing.T) {
		random := rand.New(rand.NewPCG(eventstest.Seed(), 2))
		found := 0
		for range 60 {
			b := bytes.Clone(whole)
			for range 1 + random.IntN(200) {
				b[random.IntN(len(b))] ^= byte(1 + random.IntN(255))
			}
			damaged, model, err := Open(t.Context(), place(t, b))
			if err != nil {
				require.ErrorIs(t, err, ErrDamaged)
				found++
				continue
			}
			require.Contains(t, []readmodel.Digest{before, m.Digest()}, model.Digest())
			require.NoError(t, damaged.Close())
		}
		require.Greater(t, found, 20, "of 60 damaged files")
	})
}

// What is no damage names the remedy, and renames nothing.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, remedy := range map[string]string{
		dir:                                  "move that directory away",
		filepath.Join(dir, "no", "registry"): "make that directory",
	} {
		_, _, err := Open(t.Context(), path)
		require.ErrorContains(t, err, remedy)
		require.NotErrorIs(t, err, ErrDamaged, remedy)
	}
	s, _ := filled(t, 3)
	_, _, err := Open(t.Context(), s.path)
	require.ErrorContains(t, err, "close the other program")
	require.NotErrorIs(t, err, ErrDamaged)

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = Open(canceled, copyOf(t, s))
	require.ErrorIs(t, err, context.Canceled)
}

func TestRemoveLeftovers(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for _, suffix := range []string{RebuildingSuffix, restoringSuffix, damagedSuffix} {
		require.NoError(t, os.WriteFile(s.path+suffix, nil, 0o600))
	}
	require.NoError(t, RemoveLeftovers(s.path))
	require.NoError(t, RemoveLeftovers(s.path))
	left, err := filepath.Glob(s.path + "*")
	require.NoError(t, err)
	require.Equal(t, []string{s.path, s.path + damagedSuffix}, left)
}
