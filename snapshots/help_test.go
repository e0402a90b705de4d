package snapshots

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
)

// TestMain is also the child process that some tests kill or limit.
func TestMain(m *testing.M) {
	if job := os.Getenv("SNAPSHOTS_CHILD"); job != "" {
		os.Exit(child(job, os.Getenv("SNAPSHOTS_PATH")))
	}
	goleak.VerifyTestMain(m, eventstest.Leaks()...)
}

// child does a job in a child process and returns its exit status.
func child(job, path string) int {
	// strace counts calls by thread: on one thread, the nth call of a kind is the same each time, also
	// among the calls that open the file.
	runtime.LockOSThread()

	s, m, err := Open(context.Background(), path)
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	defer s.Close()
	if job == "full" {
		return saveUntilFull(s, m)
	}
	return commitOnce(s, m)
}

func childCommand(t *testing.T, job, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SNAPSHOTS_CHILD="+job, "SNAPSHOTS_PATH="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// mustOpen opens the store at path and closes it at the test's end.
func mustOpen(t testing.TB, path string) (*Store, *readmodel.Model) {
	t.Helper()
	s, m, err := Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, m
}

// newStore is an empty store.
func newStore(t testing.TB) (*Store, *readmodel.Model) {
	t.Helper()
	return mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
}

// filled is a store of n entries and more, saved.
func filled(t testing.TB, n int) (*Store, *readmodel.Model) {
	t.Helper()
	s, m := newStore(t)
	require.NoError(t, s.Save(feed(m, sample(n)...)))
	return s, m
}

// feed applies data as the messages after the model's checkpoint, and returns the commit that a
// projector would save.
func feed(m *readmodel.Model, data ...events.Data) Commit {
	sequence := m.View().Sequence()
	renderer := readmodel.NewRenderer()
	c := Commit{States: map[events.Subject]State{}}
	var records []readmodel.Record
	for _, d := range data {
		sequence++
		d = events.Revised(d, max(events.Revision(d), int64(sequence)))
		line, err := EncodeState(d)
		if err != nil {
			panic(err)
		}
		records = append(records, renderer.Render(sequence, d))
		c.States[d.Subject()] = State{sequence, line}
	}
	m.Apply(records, sequence)
	c.Meta = metaAt(sequence)
	c.Meta.Digest = m.Digest().String()
	return c
}

func metaAt(sequence uint64) Meta {
	return Meta{
		Identity: stream.Identity{Stream: events.DefaultStream, Epoch: "epoch-1", Follows: []string{"epoch-0"}},
		Sequence: sequence,
		Marks:    []Mark{{sequence, eventstest.Start().Add(time.Duration(sequence) * time.Second)}},
		Complete: true,
	}
}

// sample has data of every kind, views of unlisted entries and removals among them.
func sample(n int) []events.Data {
	var data []events.Data
	for i, e := range eventstest.Entries(n, 7) {
		data = append(data, e)
		switch {
		case i%3 == 0:
			data = append(data, events.Views{Revision: 1, List: e.List, EntryID: e.EntryID, Views: int64(i)})
		case i%11 == 0:
			data = append(data, delisting(e))
		}
		if i%5 == 0 {
			data = append(data, donation(i))
		}
	}
	return append(data, events.Views{Revision: 1, List: events.Legit, EntryID: "nobody", Views: 12},
		events.DonationRemoval{Revision: 1, DonationID: donation(5).DonationID})
}

func delisting(e events.Entry) events.Delisting {
	return events.Delisting{Revision: 1, List: e.List, EntryID: e.EntryID}
}

func donation(i int) events.Donation {
	return events.Donation{
		Revision: 1, DonationID: fmt.Sprint("d", i), Status: events.DonationPending, Amount: "1.50", Currency: "PLN",
		CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start(), RequiredConfirmations: int64(i),
	}
}

// written returns a snapshot of the store.
func written(t testing.TB, s *Store) []byte {
	t.Helper()
	var text bytes.Buffer
	_, err := Write(t.Context(), s, &text, nil)
	require.NoError(t, err)
	return text.Bytes()
}

// lacking returns the model's lacking subjects in order.
func lacking(m *readmodel.Model) []string {
	var names []string
	for _, k := range m.Lacking() {
		names = append(names, k.String())
	}
	slices.Sort(names)
	return names
}

// copyOf copies the file that a running store has open: what kill -9 would leave. Only the pages in
// use are copied.
func copyOf(t testing.TB, s *Store) string {
	t.Helper()
	var size int64
	require.NoError(t, s.db.View(func(tx *bolt.Tx) error { size = tx.Size(); return nil }))
	in, err := os.Open(s.path)
	require.NoError(t, err)
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, size))
	require.NoError(t, err)
	return place(t, b)
}

// place writes b as a store's file in a directory of its own.
func place(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registry.db")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}
