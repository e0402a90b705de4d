package snapshots

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"example.org/registry/events"
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

// Promise 4: what is loaded is what was saved, whatever the content and the batches, also when
// the process dies instead of closing.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		s, m, err := Open(context.Background(), Config{Path: filepath.Join(dir, "registry.db")})
		if err != nil {
			r.Fatal(err)
		}
		defer s.Close()
		for range rapid.IntRange(1, 4).Draw(r, "batches") {
			c := feed(m, drawData(r)...)
			if err := s.Save(c); err != nil {
				r.Fatal(err)
			}
		}
		again, loaded, err := Open(context.Background(), Config{Path: copyOf(t, s)})
		if err != nil {
			r.Fatal(err)
		}
		defer again.Close()
		if got, want := content(t, loaded.View()), content(t, m.View()); got != want {
			r.Fatalf("loaded\n%s\nsaved\n%s", got, want)
		}
		if got, want := again.Checkpoint(), at(m.View().Sequence()); got != want {
			r.Fatalf("checkpoint %+v, saved %+v", got, want)
		}
		if again.DataSet() != s.DataSet() || len(s.DataSet()) != 32 {
			r.Fatalf("data set %q, saved %q", again.DataSet(), s.DataSet())
		}
	})
}

// drawData draws events about few subjects, so that they replace and remove each other.
func drawData(r *rapid.T) []events.Data {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d-", "_e"})
	return rapid.SliceOfN(rapid.Custom(func(r *rapid.T) events.Data {
		list, id := eventstest.List().Draw(r, "list"), id.Draw(r, "id")
		switch rapid.IntRange(0, 5).Draw(r, "kind") {
		case 0:
			return events.Delisting{List: list, EntryID: id}
		case 1:
			return events.Views{List: list, EntryID: id, Views: eventstest.AnyViews().Draw(r, "views").Views}
		case 2:
			d := eventstest.AnyDonation().Draw(r, "donation")
			d.DonationID = id
			return d
		case 3:
			return events.DonationRemoval{DonationID: id}
		}
		e := eventstest.AnyEntry().Draw(r, "entry")
		e.List, e.EntryID = list, id
		return e
	}), 1, 12).Draw(r, "data")
}

// Promise 3: a checkpoint below the saved one is refused and nothing changes.
func TestSaveGoesForward(t *testing.T) {
	s, m := mustOpen(t, filepath.Join(t.TempDir(), "registry.db"))
	if err := s.Save(feed(m, sample(5)...)); err != nil {
		t.Fatal(err)
	}
	before := s.Checkpoint()
	if err := s.Save(readmodel.Commit{Checkpoint: at(before.Sequence - 1)}); err == nil {
		t.Error("an older checkpoint was saved")
	}
	if got := s.Checkpoint(); got != before {
		t.Errorf("checkpoint %+v after the refusal, before %+v", got, before)
	}
	if err := s.Save(readmodel.Commit{Checkpoint: at(before.Sequence + 10), Digest: m.Digest()}); err != nil {
		t.Errorf("a checkpoint without records: %v", err)
	}
}

// Many records, several chunks a worker, and pages of more than one table.
func TestLoadMany(t *testing.T) {
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

// Loading ends when its context does, and nothing is set aside for that.
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
