package readmodel

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel/textindex"
)

// process is a model of numbered entries, by number and version; it loads them in no order.
type process map[int]int

func (p process) load(m *Model) {
	r := NewRenderer()
	m.BeginBulk()
	for n, version := range p {
		m.Apply([]Record{r.Render(uint64(n+1), numbered(n, version))}, 1_000_000)
	}
	m.EndBulk()
}

// TestSavedIndex: a process goes on with the index that the last one saved. It indexes only what has changed since, whatever order the
// rows are loaded in, and every answer is that of a look at every row: rows that changed before and after the index was saved, of
// both sizes of block, gone ones, and new ones in their slots.
func TestSavedIndex(t *testing.T) {
	t.Parallel()
	const n = 2*textindex.BlockLen + 100
	dir := filepath.Join(t.TempDir(), "index")
	m, rows, r := New(), process{}, NewRenderer()
	for i := range n {
		rows[i] = 1
	}
	rows.load(m)
	b := &indexBuilder{indexer: &Indexer{Dir: dir}, model: m}
	b.indexAll(t)
	seq := uint64(2_000_000)
	change := func(version, first, every, last int) {
		var records []Record
		for i := first; i < last; i += every {
			seq++
			rows[i] = version
			records = append(records, r.Render(seq, numbered(i, version)))
		}
		m.Apply(records, seq)
	}
	gone := func(i int) {
		seq++
		delete(rows, i)
		m.Apply([]Record{r.Render(seq, events.Delisting{List: events.Scammers, EntryID: numbered(i, 1).EntryID})}, seq)
	}
	change(2, 0, 100, textindex.BlockLen)
	b.follow(m.View())
	b.indexAll(t)
	change(3, 5, 1000, n)
	gone(50)
	b.follow(m.View())
	if b.unsaved < 3 || b.index.lists[0][0].small == nil || b.index.lists[0][0].pending == 0 {
		t.Fatalf("%d blocks; not every kind of row is there", b.unsaved)
	}
	if err := b.save(true); err != nil {
		t.Fatal(err)
	}
	change(4, 7, 1000, n)
	change(2, n, 1, n+40)
	gone(60)
	for _, restart := range []string{"first", "second"} {
		m = New()
		b = newResumed(t, m, dir, func() {
			rows.load(m)
			change(5, 9, 2000, n) // before the index begins: a row that it has changes in its slot
		})
		check := func() {
			for _, needle := range []string{"oszust", "wersja 1 ", "ja 2 o", "wersja 3", "wersja 4", "wersja 5", "a 4", "ktoś60", "1000050", "ś5", "7"} {
				sameAsScan(t, m.View(), textQuery{0, wholeText, needle})
				sameAsScan(t, m.View(), textQuery{0, nameAndIDs, needle})
			}
		}
		check()
		b.indexAll(t)
		if check(); b.indexed > 500 {
			t.Errorf("%s: %d rows were indexed", restart, b.indexed)
		}
		if slots := len(m.View().lists[0].rows.chunks) * chunkLen; slots > 4*textindex.BlockLen {
			t.Errorf("%s: %d slots for %d rows", restart, slots, len(rows))
		}
		b.unsaved++
		if err := b.save(true); err != nil {
			t.Fatal(err)
		}
		// A slot that was kept in vain is somebody else's.
		m.Apply([]Record{r.Render(seq+1, numbered(n+1000, 9))}, seq+1)
		if free := m.lists[0].slots.free; m.lists[0].kept != nil || restart == "first" && len(free) < 30 {
			t.Errorf("%s: %d slots are free", restart, len(free))
		}
	}
}

// TestSavedIndexRefused: what cannot be used is said once, and the index is made anew.
func TestSavedIndexRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	m, rows := New(), process{}
	for i := range 100 {
		rows[i] = 1
	}
	rows.load(m)
	b := &indexBuilder{indexer: &Indexer{Dir: dir}, model: m}
	b.indexAll(t)
	if err := b.save(true); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "saved")
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// Damage after the labels is found once the model has been loaded.
	content[len(content)-1] ^= 1
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSavedIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	m = New()
	m.KeepSlots(s)
	rows.load(m)
	var log strings.Builder
	b = (&Indexer{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))}).begin(m)
	if b.begun || strings.Count(log.String(), "cannot be used; making it anew") != 1 {
		t.Errorf("a damaged index was used: %s", log.String())
	}
	b.indexAll(t)
	sameAsScan(t, m.View(), textQuery{0, wholeText, "oszust"})
	if b.indexed != len(rows) {
		t.Errorf("%d rows indexed", b.indexed)
	}

	vocabulary := b.vocabulary
	b.vocabulary = textindex.NewVocabulary()
	if blocks := b.savedBlocks(); len(blocks) > 0 {
		t.Errorf("%d blocks of an earlier vocabulary would be saved with the new one", len(blocks))
	}
	b.vocabulary = vocabulary

	sparse := savedPart{number: 9, digests: make([]byte, 16*textindex.BlockLen)}
	for _, bad := range [][]byte{{}, {0}, {events.NumLists, 0, 0, 0, 0}, {0, 0xff, 0, 0, 0}, {0, 0, 0, 0, 0, 1}, sparse.label()} {
		d, err := textindex.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Save(textsVersion(), b.vocabulary, []textindex.SavedBlock{{Label: bad, Block: b.index.lists[0][0].large}}); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenSavedIndex(dir); err == nil {
			t.Errorf("label %.8v was read", bad)
		}
	}
}

// TestIndexerSaves: an Indexer saves when a quarter is new, and what is new at its end; the next one begins with that.
func TestIndexerSaves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	m, r, seq := New(), NewRenderer(), uint64(0)
	apply := func(n int) {
		for range n {
			seq++
			m.Apply([]Record{r.Render(seq, numbered(int(seq), 1))}, seq)
		}
	}
	apply(100)
	ctx, cancel := context.WithCancel(t.Context())
	x, ended := &Indexer{Dir: dir}, make(chan struct{})
	go func() { defer close(ended); x.Run(ctx, m) }()
	await := func(what func() bool) {
		deadline, stop := context.WithTimeout(ctx, 30*time.Second)
		defer stop()
		for !what() && deadline.Err() == nil {
			wait(deadline, time.Millisecond)
		}
	}
	await(func() bool { return x.SavedSequence() == 100 })
	apply(100)
	await(func() bool { return m.IndexSequence() == 200 })
	if saved := x.SavedSequence(); saved != 100 || m.IndexSequence() != 200 {
		t.Errorf("saved at %d, indexed up to %d", saved, m.IndexSequence())
	}
	cancel()
	<-ended
	s, err := OpenSavedIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// The last rows may be in a small block, or in none yet.
	if len(s.parts) != 1 || len(s.parts[0].digests) <= 100*16 {
		t.Errorf("saved: %d parts, %d bytes of digests", len(s.parts), len(s.parts[0].digests))
	}
}
