package snapshots

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// mustOpen opens the store at path and closes it at the test's end.
func mustOpen(t testing.TB, path string) (*Store, *readmodel.Model) {
	t.Helper()
	s, m, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, m
}

// feed renders and applies data as the messages after the model's checkpoint, and returns the
// commit that a projector would save.
func feed(m *readmodel.Model, data ...events.Data) readmodel.Commit {
	seq := m.View().Sequence()
	renderer := readmodel.NewRenderer()
	latest := map[readmodel.Key]readmodel.Record{}
	var records []readmodel.Record
	for _, d := range data {
		seq++
		r := renderer.Render(seq, d)
		latest[r.Key] = r
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
		Sequence:    seq,
		Stream:      readmodel.StreamIdentity{Name: "REGISTRY", Epoch: "epoch-1", Created: created},
		MessageID:   fmt.Sprint("id-", seq),
		MessageTime: created.Add(time.Duration(seq) * time.Second),
	}
}

// sample is some of every kind, views of unlisted entries and removals included.
func sample(n int) []events.Data {
	var data []events.Data
	for i, e := range eventstest.Entries(n, 7) {
		data = append(data, e)
		switch {
		case i%3 == 0:
			data = append(data, events.Views{List: e.List, EntryID: e.EntryID, Views: int64(i)})
		case i%11 == 0:
			data = append(data, events.Delisting{List: e.List, EntryID: e.EntryID})
		}
		if i%5 == 0 {
			data = append(data, donation(i))
		}
	}
	return append(data, events.Views{List: events.Legit, EntryID: "nobody", Views: 12},
		events.DonationRemoval{DonationID: donation(5).DonationID})
}

func donation(i int) events.Donation {
	return events.Donation{
		DonationID: fmt.Sprint("d", i), Status: events.DonationPending, Amount: "1.50", Currency: "PLN",
		CreatedAt: eventstest.Start(), UpdatedAt: eventstest.Start(), RequiredConfirmations: int64(i),
	}
}

// content is everything a reader can see of v, rendered.
func content(t testing.TB, v *readmodel.View) string {
	t.Helper()
	var b strings.Builder
	for _, l := range events.Lists() {
		page, err := v.List(context.Background(), readmodel.ListQuery{List: l, Sort: readmodel.Popular, Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(page.AppendJSON(nil))
		fmt.Fprint(&b, v.ListTag(l, readmodel.Popular))
	}
	fmt.Fprint(&b, v.Digest(), v.CheckTag())
	return b.String()
}

// copyOf copies the file that a running store has open: what kill -9 would leave. Only the pages
// in use are copied.
func copyOf(t testing.TB, s *Store) string {
	t.Helper()
	var size int64
	if err := s.db.View(func(tx *bolt.Tx) error { size = tx.Size(); return nil }); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, size))
	if err != nil {
		t.Fatal(err)
	}
	return place(t, b)
}

// place writes b as a store's file in a directory of its own.
func place(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registry.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// asides lists what lies beside path under a longer name.
func asides(t testing.TB, path string) []string {
	t.Helper()
	found, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}
