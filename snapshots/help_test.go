package snapshots

import (
	"bytes"
	"context"
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
	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// TestMain is also the child process that some tests kill or limit.
func TestMain(m *testing.M) {
	if job := os.Getenv("SNAPSHOTS_CHILD"); job != "" {
		os.Exit(child(job, os.Getenv("SNAPSHOTS_PATH")))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("go.etcd.io/bbolt.(*DB).Close")) // of a damaged file: see closeWithin
}

// child does a job in a child process and returns its exit status.
func child(job, path string) int {
	switch job {
	case "restore":
		return restoreForever(path)
	case "begin":
		return beginFull(path)
	case "open":
		return openAll(path)
	case "die loading":
		return dieLoading(path)
	}
	s, m, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	defer s.Close()
	switch job {
	case "commit":
		return commitOnce(s, m)
	case "full":
		return saveUntilFull(s, m)
	}
	return 2
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
	s, m, err := Open(context.Background(), Config{Path: path})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, m
}

// filled is a store of n entries and more, saved.
func filled(t testing.TB, n int) (*Store, *readmodel.Model) {
	t.Helper()
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	require.NoError(t, s.Save(feed(m, sample(n)...)))
	return s, m
}

// archiveOf is the bytes of an archive of what s holds.
func archiveOf(t testing.TB, s *Store) (Manifest, []byte) {
	t.Helper()
	a, err := s.Archive(context.Background(), ArchiveConfig{TempDir: t.TempDir()})
	require.NoError(t, err)
	defer a.Close()
	b, err := io.ReadAll(a.Reader())
	require.NoError(t, err)
	if int64(len(b)) != a.Size() {
		t.Errorf("archive of %d bytes says %d", len(b), a.Size())
	}
	return a.Manifest, b
}

// restore is Restore of the bytes of an archive, which may be no archive.
func restore(archive []byte, cfg RestoreConfig) (aside string, err error) {
	r, err := NewReader(bytes.NewReader(archive))
	if err != nil {
		return "", err
	}
	return Restore(context.Background(), r, cfg)
}

// unpacked is what the frame of an archive holds.
func unpacked(t testing.TB, archive []byte) []byte {
	t.Helper()
	r, err := zstd.NewReader(bytes.NewReader(archive), zstd.WithDecoderConcurrency(1))
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return b
}

// packed is the opposite of unpacked.
func packed(t testing.TB, content []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(packWindow))
	require.NoError(t, err)
	return w.EncodeAll(content, nil)
}

// feed renders and applies data as the messages after the model's checkpoint, and returns the
// commit that a projector would save.
func feed(m *readmodel.Model, data ...events.Data) readmodel.Commit {
	seq := m.View().Sequence()
	renderer := readmodel.NewRenderer()
	latest := map[events.Subject]readmodel.Record{}
	var records []readmodel.Record
	for _, d := range data {
		seq++
		r := renderer.Render(seq, events.Revised(d, int64(seq)))
		latest[r.Subject] = r
		records = append(records, r)
	}
	m.Apply(records, seq)
	c := readmodel.Commit{Checkpoint: at(seq), Digest: m.Digest()}
	for _, r := range latest {
		c.Records = append(c.Records, r)
	}
	return c
}

func at(seq uint64) readmodel.Checkpoint {
	created := time.Date(2026, 11, 21, 8, 0, 0, 123, time.UTC)
	return readmodel.Checkpoint{
		Sequence:       seq,
		StreamIdentity: readmodel.StreamIdentity{Stream: "REGISTRY", StreamEpoch: "epoch-1", StreamCreated: created},
		Positions:      []readmodel.Position{{Sequence: seq, Time: created.Add(time.Duration(seq) * time.Second)}},
		Histories:      []string{"epoch-1"},
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
			data = append(data, events.Delisting{Revision: 1, List: e.List, EntryID: e.EntryID})
		}
		if i%5 == 0 {
			data = append(data, donation(i))
		}
	}
	return append(data, events.Views{Revision: 1, List: events.Legit, EntryID: "nobody", Views: 12},
		events.DonationRemoval{Revision: 1, DonationID: donation(5).DonationID})
}

func donation(i int) events.Donation {
	return events.Donation{
		Revision:   1,
		DonationID: fmt.Sprint("d", i), Status: events.DonationPending, Amount: "1.50", Currency: "PLN",
		CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start(), RequiredConfirmations: int64(i),
	}
}

// content is everything that a reader can see of v, rendered.
func content(t testing.TB, v *readmodel.View) string {
	t.Helper()
	var b strings.Builder
	for _, l := range events.Lists() {
		page, err := v.List(context.Background(), readmodel.ListQuery{List: l, Sort: readmodel.Popular, Limit: 1 << 20})
		require.NoError(t, err)
		fmt.Fprint(&b, page.Total, page.HasMore)
		for _, r := range page.Rows {
			b.WriteString(r.JSON())
		}
		fmt.Fprint(&b, v.ListTag(&readmodel.ListQuery{List: l, Sort: readmodel.Popular}))
	}
	fmt.Fprint(&b, v.Digest(), v.CheckTag())
	for _, l := range events.Lists() {
		fmt.Fprint(&b, " ", v.Tombstones(l))
	}
	return b.String()
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

// asides lists the files whose names begin with path and a dot.
func asides(t testing.TB, path string) []string {
	t.Helper()
	found, err := filepath.Glob(path + ".*")
	require.NoError(t, err)
	return found
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(eventstest.Seed(), 1)) }

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, b, 0o600))
}

func lstat(t testing.TB, path string) os.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info
}

// fileMeta reads the meta record of a file that is not open.
func fileMeta(path string) (meta, error) {
	db, err := openToRead(path)
	if err != nil {
		return meta{}, err
	}
	defer db.Close()
	return metaOf(db)
}
