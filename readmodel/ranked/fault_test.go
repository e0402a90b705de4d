package ranked

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// some is a registry of n entries that all have the word "oszust".
func some(t testing.TB, n int) *registry {
	t.Helper()
	r := newRegistry(t, t.TempDir())
	for i := range n {
		r.apply(entry(events.Lists()[i%2], fmt.Sprint("e", i), fmt.Sprint("nick", i), fmt.Sprint(900000+i), fmt.Sprintf("oszust numer%d z miasta%d", i, i%7), i%3 > 0))
	}
	return r
}

// finds holds the index against what it must find.
func (r *registry) finds(n int) {
	r.t.Helper()
	if p := r.search(readmodel.RankedQuery{Words: "oszustem"}); p.Total != n {
		r.t.Fatalf("%d found, want %d", p.Total, n)
	}
	if p := r.search(readmodel.RankedQuery{Words: "nick7"}); p.Total != 1 || p.Hits[0].Row.ID() != "e7" {
		r.t.Fatalf("nick7: %+v", p)
	}
}

// TestReopens: an index that fits, or lacks some changes, is used and not rebuilt, and what has
// gone goes.
func TestReopens(t *testing.T) {
	t.Parallel()
	r := some(t, 50)
	r.start()
	r.finds(50)
	r.stop()
	r.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "e0"}, entry(events.Servers, "neu", "nick7b", "1", "oszust", true))
	for range 2 {
		r.start()
		r.finds(50)
		r.stop()
		if r.engine.Renewed() != 0 {
			t.Errorf("rebuilt %d times", r.engine.Renewed())
		}
	}
}

// TestAnother: an index of another stream, data set or version, or of a later state, is rebuilt.
func TestAnother(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *registry){
		"epoch":    func(r *registry) { r.id.StreamEpoch = "other" },
		"data set": func(r *registry) { r.id.DataSet = "other" },
		"later": func(r *registry) {
			of := some(t, 20)
			r.model, r.seq = of.model, of.seq
		},
		"other content": func(r *registry) {
			of := newRegistry(t, "")
			of.apply(entry(events.Scammers, "e7", "nick7", "1", "oszust", true))
			of.model.Apply(nil, r.seq)
			r.model = of.model
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := some(t, 40)
			r.start()
			r.finds(40)
			r.stop()
			change(r)
			r.t = t
			r.start()
			defer r.stop()
			n := 0
			r.model.View().ShownRows(func(*readmodel.Row) bool { n++; return true })
			r.finds(n)
			if r.engine.Renewed() != 1 {
				t.Errorf("made anew %d times: %s", r.engine.Renewed(), r.engine.Problem())
			}
			eventstest.Until(t, func() bool { return r.engine.Problem() == "" })
		})
	}
}

// TestDamage: a file of the index that is gone, cut or empty costs the index, and no hit.
func TestDamage(t *testing.T) {
	t.Parallel()
	cuts := 2
	if eventstest.FullRun() {
		cuts = 40
	}
	whole := some(t, 300)
	whole.start()
	whole.finds(300)
	whole.stop()
	random := rand.New(rand.NewPCG(7, 7))
	files, err := filepath.Glob(filepath.Join(filesOf(whole.dir), "*.*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for i := range 2 + cuts {
			r := &registry{t: t, model: whole.model, renderer: whole.renderer, seq: whole.seq, dir: t.TempDir(), id: whole.id, retry: time.Millisecond, pause: time.Millisecond}
			require.NoError(t, os.CopyFS(r.dir, os.DirFS(whole.dir)))
			damaged := filepath.Join(filesOf(r.dir), filepath.Base(file))
			if i == 0 {
				err = os.Remove(damaged)
			} else {
				err = os.Truncate(damaged, min(1, int64(i-1))*random.Int64N(int64(len(content)))) // at first to nothing
			}
			require.NoError(t, err)
			r.start()
			r.finds(300)
			r.stop()
		}
	}
}

// isOpening reports whether nothing has reached the disk since the index was opened.
func (r *registry) isOpening() bool { return (&store{dir: filesOf(r.dir)}).isOpening() }

// TestDiedWhileOpening: a process that ended before bleve had written anything may have been killed
// by the files. The next one removes them and rebuilds the index, once; where nothing went
// wrong the index stays.
func TestDiedWhileOpening(t *testing.T) {
	t.Parallel()
	r := some(t, 40)
	r.retry = time.Millisecond
	for i, want := range []uint64{0, 1, 0, 0} {
		if i == 1 {
			require.NoError(t, os.WriteFile(filepath.Join(filesOf(r.dir), opening), nil, 0o600))
		}
		r.start()
		r.finds(40)
		if i < 3 {
			eventstest.Until(t, func() bool { return !r.isOpening() })
		} // else it is closed before
		r.stop()
		if n := r.engine.Renewed(); n != want || r.isOpening() {
			t.Errorf("start %d: made anew %d times, want %d", i, n, want)
		}
	}
}

// damagedDir is the environment variable by which TestDeadlyDamage runs itself in a process that
// may die.
const damagedDir = "REGISTRY_TEST_DAMAGED"

// TestDeadlyDamage: whatever is wrong with bleve's bbolt file, the process dies of it once at most.
// The next one rebuilds the index.
func TestDeadlyDamage(t *testing.T) {
	if dir := os.Getenv(damagedDir); dir != "" {
		r := some(t, 300)
		r.dir, r.retry = dir, time.Millisecond
		r.start()
		r.finds(300)
		eventstest.Until(t, func() bool { return !r.isOpening() })
		r.stop()
		return
	}
	t.Parallel()
	whole := some(t, 300)
	whole.start()
	whole.finds(300)
	whole.stop()
	bolt, err := os.ReadFile(filepath.Join(filesOf(whole.dir), "root.bolt"))
	require.NoError(t, err)
	page, died, step := os.Getpagesize(), 0, 2
	if eventstest.RaceDetector {
		step = 6
	}
	for pages := 1; pages*page < len(bolt); pages += step {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(whole.dir)))
		require.NoError(t, os.WriteFile(filepath.Join(filesOf(dir), "root.bolt"), bolt[:pages*page], 0o600))
		for attempt := range 2 {
			child := exec.Command(os.Args[0], "-test.run=^TestDeadlyDamage$")
			child.Env = append(os.Environ(), damagedDir+"="+dir)
			output, err := child.CombinedOutput()
			if err == nil {
				break
			}
			if died++; attempt == 1 {
				t.Errorf("%d pages: it died again: %s", pages, output)
			}
		}
	}
	t.Logf("died %d times", died)
}

// TestSharedSequence: rows that share a sequence, which no stream makes, are told apart by their
// documents.
func TestSharedSequence(t *testing.T) {
	t.Parallel()
	r := some(t, 20)
	r.seq++
	var records []readmodel.Record
	for _, id := range []string{"a", "b", "c"} {
		records = append(records, r.renderer.Render(r.seq, entry(events.Scammers, id, "nick", "1", "oszust", true)))
	}
	r.model.Apply(records, r.seq)
	r.start()
	r.finds(23)
	r.stop()
	r.start()
	defer r.stop()
	r.finds(23)
	if n := r.engine.Renewed(); n != 0 {
		t.Errorf("made anew: %s", r.engine.Problem())
	}
}

// TestEndsInSpiteOfDamage: an indexer ends, and so can the process, where damage has ended bleve's
// persister inside a transaction: the free list says that it goes on for more pages than there are.
func TestEndsInSpiteOfDamage(t *testing.T) {
	t.Parallel()
	r := some(t, 300)
	r.start()
	r.finds(300)
	r.stop()
	name := filepath.Join(filesOf(r.dir), "root.bolt")
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	for meta := range 2 {
		page := os.Getpagesize() * int(binary.NativeEndian.Uint64(content[meta*os.Getpagesize()+48:]))
		content[page+13] ^= 1 // of the number of pages that follow
	}
	require.NoError(t, os.WriteFile(name, content, 0o600))
	r.start()
	r.finds(300)
	ended := make(chan struct{})
	go func() { r.stop(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}

// TestHangs: a batch, or a merge, that does not come back is given up, with its goroutine, and the
// index rebuilt.
func TestHangs(t *testing.T) {
	for _, point := range []string{"before-batch", "merged"} {
		t.Run(filepath.Base(point), func(t *testing.T) {
			t.Parallel()
			r := some(t, 40)
			r.retry = time.Millisecond
			r.hangs = 200 * time.Millisecond // bleve gathers what it writes for half as long
			if point == "before-batch" {
				r.hangs = time.Second
			}
			release := make(chan struct{})
			var hung atomic.Bool
			r.at = func(at string) error {
				if at == point && hung.CompareAndSwap(false, true) {
					<-release
				}
				return nil
			}
			r.start()
			n := 40
			eventstest.Until(t, func() bool { // each batch is a segment, so that bleve merges sooner or later
				r.apply(entry(events.Scammers, fmt.Sprint("m", n), "nick", "1", "oszust", true))
				n++
				time.Sleep(5 * time.Millisecond)
				return hung.Load()
			})
			eventstest.Until(t, func() bool { return r.engine.Renewed() > 0 })
			if !strings.Contains(r.engine.Problem(), "no progress") && r.engine.Sequence() == 0 {
				t.Errorf("trouble %q", r.engine.Problem())
			}
			r.finds(n)
			close(release)
			r.stop()
		})
	}
}

// TestFails: an error of a batch, or one that bleve's goroutines report, costs the index and
// nothing else.
func TestFails(t *testing.T) {
	t.Parallel()
	r := some(t, 40)
	r.retry = time.Millisecond
	var failed atomic.Bool
	r.at = func(at string) error {
		if at == "after-batch" && failed.CompareAndSwap(false, true) {
			return errors.New("no space left")
		}
		return nil
	}
	r.start()
	defer r.stop()
	eventstest.Until(t, func() bool { return r.engine.Renewed() == 1 })
	r.finds(40)
	r.engine.published.by.report(errors.New("a merge failed"))
	eventstest.Until(t, func() bool { return r.engine.Renewed() == 2 })
	r.finds(40)
}

// TestUnwritable: where the directory cannot be made there is no index, and the reason is said.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	r := some(t, 3)
	r.dir = filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(r.dir, nil, 0o600))
	r.start()
	defer r.stop()
	eventstest.Until(t, func() bool { return strings.Contains(r.engine.Problem(), "not a directory") })
	if a := r.engine.Acquire(); a != nil {
		t.Error("there is an index")
	}
}

// TestOlderView: an index answers only views of its model that are not older, and leaves out what
// has changed since.
func TestOlderView(t *testing.T) {
	t.Parallel()
	r := some(t, 20)
	before := r.model.View()
	r.apply(entry(events.Scammers, "e0", "nick0", "1", "uczciwy", true),
		entry(events.Scammers, "f1", "nick", "1", "paczka, kurier", true), entry(events.Scammers, "f2", "nick", "1", "paczka, kurier", true))
	r.start()
	defer r.stop()
	a := r.current()
	defer a.Release()
	q := readmodel.RankedQuery{Words: "oszust", Limit: 60}
	if _, err := a.Search(context.Background(), before, q); !errors.Is(err, readmodel.ErrNoRanking) {
		t.Errorf("an older view: %v", err)
	}
	if _, err := a.Search(context.Background(), some(t, 30).model.View(), q); !errors.Is(err, readmodel.ErrNoRanking) {
		t.Errorf("another model: %v", err)
	}
	r.apply(events.Delisting{Revision: 1, List: events.Servers, EntryID: "e1"}, entry(events.Scammers, "e2", "nick2", "2", "uczciwa", true),
		entry(events.Scammers, "e4", "nick4", "4", "nadal oszust", true))
	p, err := a.Search(context.Background(), r.model.View(), q)
	if err != nil || p.Total != 17 || len(p.Hits) != 17 { // all but e0, e1 and e2
		t.Errorf("%d found, %d shown: %v", p.Total, len(p.Hits), err)
	}
	r.apply(entry(events.Scammers, "f1", "nick", "1", "paczki kuriera", true), entry(events.Scammers, "f2", "nick", "1", "paczki", true))
	p, err = a.Search(context.Background(), r.model.View(), readmodel.RankedQuery{Words: "kurier paczka telefon", Limit: 60})
	if err != nil || !slices.Equal(ids(p), []string{"scammers/f1"}) || !p.Relaxed { // f2 lacks two by now
		t.Errorf("all but one: %q: %v", ids(p), err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.Search(ctx, r.model.View(), q); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader who has left: %v", err)
	}
}

// TestBadInput: questions that nobody should ask are answered, or find nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	r := some(t, 100)
	r.start()
	defer r.stop()
	for name, words := range badInput() {
		p := r.search(readmodel.RankedQuery{Words: words, Limit: 60})
		if p.Total > 0 && name != "common" {
			t.Errorf("%s: %d found", name, p.Total)
		}
	}
}
