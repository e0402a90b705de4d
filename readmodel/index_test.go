package readmodel

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/readmodel/textindex"
)

// numbered is an entry of a list that spans blocks.
func numbered(n, version int) events.Entry {
	return events.Entry{
		List: events.Scammers, EntryID: fmt.Sprintf("e%06d", n), ChatID: fmt.Sprint(1_000_000 + n),
		Name: fmt.Sprintf("ktoś%d", n%97), Reason: fmt.Sprintf("wersja %d oszust", version), ReportID: "r",
	}
}

// TestIndexedBlocks: a list of several blocks, changed all over while it is indexed, old views
// included: every answer is that of a look at every row.
func TestIndexedBlocks(t *testing.T) {
	t.Parallel()
	const n = 2*textindex.BlockLen + 700
	m, r, seq := New(), NewRenderer(), uint64(0)
	m.BeginBulk()
	for i := range n {
		seq++
		m.Apply([]Record{r.Render(seq, numbered(i, 1))}, seq)
	}
	m.EndBulk()
	f := &indexBuilder{indexer: &Indexer{Dir: filepath.Join(t.TempDir(), "index"), maxPending: 64}, model: m}
	views := []*View{m.View()}
	for round := 2; round < 8; round++ {
		v := m.View()
		var records []Record
		for i := round; i < n; i += 97 {
			seq++
			records = append(records, r.Render(seq, numbered(i, round)))
		}
		seq++
		records = append(records, r.Render(seq, events.Delisting{List: events.Scammers, EntryID: fmt.Sprintf("e%06d", round*3001)}))
		views = append(views, m.Apply(records, seq))
		for range round % 4 { // blocks of the first are out of date when they are made; from the second on some are small
			if _, err := f.step(context.Background(), v); err != nil {
				t.Fatal(err)
			}
			v = m.View()
		}
		for _, v := range views[max(0, len(views)-3):] {
			for _, needle := range []string{"oszust", "wersja 1 ", fmt.Sprintf("ja %d o", round), "a 1", fmt.Sprintf("a %d", round), "ktoś96", "1016", "ś9", "7"} {
				sameAsScan(t, v, textQuery{0, wholeText, needle})
				sameAsScan(t, v, textQuery{0, nameAndIDs, needle})
			}
		}
	}
	if parts := f.index.lists[0]; parts[1].large == nil || parts[0].small == nil {
		t.Errorf("not every kind of block was made: %+v", parts)
	}
}

// TestVocabularyRenewed: words of texts that are gone do not stay for ever. Once the vocabulary has doubled, every block is
// built with a new one, and answers are right all the time.
func TestVocabularyRenewed(t *testing.T) {
	t.Parallel()
	m, r, seq := New(), NewRenderer(), uint64(0)
	change := func(list events.List, version int) {
		var records []Record
		for i := range 300 {
			e := numbered(i, version)
			e.List = list
			for word := range 30 {
				e.Reason += fmt.Sprintf(" słowo%d%d%d", version, i, word)
			}
			seq++
			records = append(records, r.Render(seq, e))
		}
		m.Apply(records, seq)
	}
	change(events.Servers, 1)
	change(events.Scammers, 1)
	f := &indexBuilder{indexer: &Indexer{Dir: filepath.Join(t.TempDir(), "index"), minRenewal: 1}, model: m}
	f.indexAll(t)
	first, renewed := f.vocabulary, 0
	for version := 2; version < 12 && renewed < 2; version++ {
		last := f.vocabulary
		change(events.Scammers, version)
		for more, i := true, 0; more || i < 3; i++ { // when nothing has changed any more, blocks are built at once
			var err error
			if more, err = f.step(context.Background(), m.View()); err != nil {
				t.Fatal(err)
			}
			for _, needle := range []string{fmt.Sprintf("wo%d99", version), "słowo1999", fmt.Sprintf("9 słowo%d5", version)} {
				sameAsScan(t, m.View(), textQuery{0, wholeText, needle})
				sameAsScan(t, m.View(), textQuery{1, wholeText, needle})
			}
		}
		if f.vocabulary != last {
			renewed++
		}
	}
	if renewed < 2 || f.vocabulary == first {
		t.Fatalf("%d renewals, %d bytes", renewed, f.vocabulary.Bytes())
	}
	for list := range f.index.lists {
		for i := range f.index.lists[list] {
			if f.outdated(list, i) {
				t.Errorf("list %d, part %d has an old vocabulary", list, i)
			}
		}
	}
}

// TestViewBeforeIndex: an entry that was gone before the index began is found in a view that still shows it.
func TestViewBeforeIndex(t *testing.T) {
	m, r := New(), NewRenderer()
	m.BeginBulk()
	m.Apply([]Record{r.Render(1, numbered(1, 1))}, 1)
	old := m.EndBulk()
	m.Apply([]Record{r.Render(2, events.Delisting{List: events.Scammers, EntryID: numbered(1, 1).EntryID})}, 2)
	f := &indexBuilder{indexer: &Indexer{Dir: filepath.Join(t.TempDir(), "index"), maxPending: 1}, model: m}
	f.indexAll(t)
	sameAsScan(t, old, textQuery{0, wholeText, "oszust"})
}

// TestSmallBlocksMeanwhile: while a large block is being made, one part's changes do not wait for it; and both are
// right afterwards.
func TestSmallBlocksMeanwhile(t *testing.T) {
	m, r, seq := New(), NewRenderer(), uint64(0)
	change := func(list events.List, n, version int) {
		var records []Record
		for i := range n {
			e := numbered(i, version)
			e.List = list
			seq++
			records = append(records, r.Render(seq, e))
		}
		m.Apply(records, seq)
	}
	change(events.Scammers, 2*restEvery, 1)
	change(events.Legit, 200, 1)
	f := &indexBuilder{indexer: &Indexer{Dir: filepath.Join(t.TempDir(), "index")}, model: m}
	f.indexAll(t)
	change(events.Scammers, 2*restEvery-1, 2) // so many that a small block will not do
	change(events.Legit, 40, 2)
	f.follow(m.View())
	f.follow(m.View()) // nothing more: what is needed is needed now
	scammers, legit := listIndex(events.Scammers), listIndex(events.Legit)
	if err := f.build(t.Context(), f.view, scammers, 0); err != nil {
		t.Fatal(err)
	}
	f.publish()
	if small := f.states[legit][0].small; small != 40 {
		t.Errorf("the small block has %d slots, want 40", small)
	}
	if p := f.index.lists[scammers][0]; p.pending != 0 || p.small != nil {
		t.Errorf("the large block lacks %d slots", p.pending)
	}
	for _, needle := range []string{"wersja 1", "wersja 2", "ktoś7", "1000039", "1000040"} {
		sameAsScan(t, m.View(), textQuery{scammers, wholeText, needle})
		sameAsScan(t, m.View(), textQuery{legit, wholeText, needle})
	}
}

// indexedPair is a pair whose model has an index that follows when told to, and so lags most
// of the time.
type indexedPair struct {
	*pair
	t       *testing.T
	builder *indexBuilder
	old     []func(t *rapid.T) // questions to older views with the answers they had
}

func (p *indexedPair) index(t *rapid.T) {
	if p.builder == nil {
		x := &Indexer{Dir: filepath.Join(p.t.TempDir(), "index"), maxPending: rapid.IntRange(1, 3).Draw(t, "slack")}
		p.builder = &indexBuilder{indexer: x, model: p.model}
	}
	p.builder.failed = time.Time{} // try again
	for more := true; more && rapid.IntRange(0, 3).Draw(t, "stop") > 0; {
		for range 2 { // the second time nothing has changed, so that small blocks are made
			var err error
			if more, err = p.builder.step(context.Background(), p.model.View()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// lose forgets the index, as a restart does.
func (p *indexedPair) lose(*rapid.T) {
	p.model.text.index.Store(nil)
	p.builder = nil
}

// fail is an index that cannot be written for once.
func (p *indexedPair) fail(t *rapid.T) {
	if p.builder == nil {
		return
	}
	p.builder.failed, p.builder.dir = time.Time{}, ""
	good := p.builder.indexer.Dir
	p.builder.indexer.Dir = "/dev/null/index"
	_, _ = p.builder.step(context.Background(), p.model.View())
	p.builder.indexer.Dir = good
}

// damage makes a block unreadable.
func (p *indexedPair) damage(*rapid.T) {
	x := p.model.text.index.Load()
	if x == nil {
		return
	}
	bad := *(*x).(*indexSnapshot)
	for list, parts := range bad.lists {
		bad.lists[list] = slices.Clone(parts)
		for i := range parts {
			if parts[i].large != nil {
				bad.lists[list][i].large = new(textindex.Block) // whose every Find fails
			}
		}
	}
	var index textIndex = &bad
	p.model.text.index.Store(&index)
}

func (p *indexedPair) restart(t *rapid.T) {
	p.lose(t)
	p.load(t, New())
}

// resume is a new process that goes on with the index that the last one saved, before some of what has changed since.
func (p *indexedPair) resume(t *rapid.T) {
	p.index(t)
	if b := p.builder; b.view == nil || b.vocabulary == nil || b.dir == "" {
		return
	}
	p.builder.unsaved++
	if err := p.builder.save(true); err != nil {
		t.Fatal(err)
	}
	dir := p.builder.indexer.Dir
	p.lose(t)
	for range rapid.IntRange(0, 2).Draw(t, "batches since") {
		p.batch(t)
	}
	m := New()
	if p.builder = newResumed(t, m, dir, func() { p.load(t, m) }); !p.builder.begun {
		t.Fatal("the saved index was not used")
	}
	p.builder.indexer.maxPending = rapid.IntRange(1, 3).Draw(t, "slack")
	for range 4 {
		p.askList(t)
	}
}

// newResumed is a builder that goes on with the index in dir, for a model that load fills.
func newResumed(t interface{ Fatal(...any) }, m *Model, dir string, load func()) *indexBuilder {
	s, err := OpenSavedIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m.KeepSlots(s)
	load()
	b := (&Indexer{Dir: dir}).begin(m)
	b.publish()
	return b
}

// keep asks the newest view, and has askOld ask it again later.
func (p *indexedPair) keep(t *rapid.T) {
	v, q := p.model.View(), someListQuery(t)
	want := p.twin.list(q)
	ask := func(t *rapid.T) {
		_, _ = p.model.View().List(context.Background(), q) // what is cached is newer than v
		page, _ := v.List(context.Background(), q)
		if got := string(page.AppendJSON(nil)); got != want {
			t.Fatalf("an old view, %+v\n got %s\nwant %s", q, got, want)
		}
	}
	ask(t)
	p.old = append(p.old, ask)
}

func (p *indexedPair) askOld(t *rapid.T) {
	for _, ask := range p.old {
		if rapid.Bool().Draw(t, "forget") {
			p.model.text.cache.InvalidateAll()
		}
		ask(t)
	}
}

// TestTwinIndexed guards promise 6: the index may lag, be gone, damaged or back, and results be cached
// or forgotten; an answer, to a new view or an old one, is the naive twin's.
func TestTwinIndexed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := &indexedPair{pair: newPair(), t: t}
		rt.Repeat(map[string]func(*rapid.T){
			"batch": p.batch, "batch again": p.batch, "index": p.index, "index again": p.index, "lose": p.lose, "fail": p.fail, "damage": p.damage,
			"list": p.askList, "list again": p.askList, "check": p.askCheck, "restart": p.restart, "resume": p.resume, "resume again": p.resume,
			"keep": p.keep, "keep again": p.keep, "old": p.askOld, "old again": p.askOld,
		})
	})
}

// TestIndexerFollows: a real Indexer beside a writer and readers; every answer is right while it
// trails, and it catches up.
func TestIndexerFollows(t *testing.T) {
	m, r := New(), NewRenderer()
	ctx, cancel := context.WithCancel(context.Background())
	x := &Indexer{Dir: filepath.Join(t.TempDir(), "index"), maxPending: 7, pause: time.Millisecond}
	var done sync.WaitGroup
	done.Go(func() { x.Run(ctx, m) })
	defer done.Wait()
	defer cancel()
	for seq := uint64(1); seq <= 2000; seq++ {
		e := events.Entry{List: events.Scammers, EntryID: fmt.Sprint(seq % 300), ChatID: "1", Name: fmt.Sprintf("nowy %d", seq), ReportID: "r"}
		v := m.Apply([]Record{r.Render(seq, e)}, seq)
		if p, err := v.List(ctx, ListQuery{List: events.Scammers, Search: fmt.Sprintf("nowy %d", seq), Limit: 60}); err != nil || p.Total != 1 {
			t.Fatalf("the entry set at %d is found %d times (%v), the index being at %d", seq, p.Total, err, m.IndexSequence())
		}
	}
	deadline, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	for m.IndexSequence() < 2000 && deadline.Err() == nil {
		wait(deadline, time.Millisecond)
	}
	if m.IndexSequence() != 2000 || x.Trouble() != "" {
		t.Errorf("the index is at %d: %s", m.IndexSequence(), x.Trouble())
	}
	if p, _ := m.View().List(ctx, ListQuery{List: events.Scammers, Search: "nowy", Limit: 1}); p.Total != 300 {
		t.Errorf("%d entries, want 300", p.Total)
	}
}

// TestIndexerFails: an index that cannot be written is a sentence and a log line, and searches go on;
// once it can, it is.
func TestIndexerFails(t *testing.T) {
	place := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(place, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	x := &Indexer{Dir: filepath.Join(place, "index"), maxPending: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	m, r := New(), NewRenderer()
	for seq := uint64(1); seq <= 9; seq++ {
		m.Apply([]Record{r.Render(seq, events.Entry{List: events.Legit, EntryID: fmt.Sprint(seq), ChatID: "1", Name: "ktoś", Verified: true, ReportID: "r"})}, seq)
	}
	f := &indexBuilder{indexer: x, model: m}
	for range 2 { // the second time it does not try
		_, err := f.step(context.Background(), m.View())
		if err != nil {
			x.failed(err)
		}
	}
	if n := strings.Count(log.String(), "text index cannot be written"); n != 1 || x.Trouble() == "" || m.IndexSequence() != 0 {
		t.Errorf("%q, %q, index at %d", log.String(), x.Trouble(), m.IndexSequence())
	}
	ask := func() {
		if p, err := m.View().List(context.Background(), ListQuery{List: events.Legit, Search: "toś", Limit: 1}); err != nil || p.Total != 9 {
			t.Errorf("%d found, %v", p.Total, err)
		}
		m.text.cache.InvalidateAll()
	}
	ask()
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	f.failed = time.Now().Add(-2 * retryAfter)
	for more := true; more; {
		var err error
		if more, err = f.step(context.Background(), m.View()); err != nil {
			t.Fatal(err)
		}
	}
	if x.Trouble() != "" || m.IndexSequence() != 9 || f.index.lists[listIndex(events.Legit)][0].large == nil {
		t.Errorf("%q, index at %d", x.Trouble(), m.IndexSequence())
	}
	ask()
}

// TestIndexerHangs: a disk that does not answer is a sentence.
func TestIndexerHangs(t *testing.T) {
	var x Indexer
	x.writing.Store(new(time.Now().Add(-hangsAfter / 2)))
	if s := x.Trouble(); s != "" {
		t.Error(s)
	}
	x.writing.Store(new(time.Now().Add(-2 * hangsAfter)))
	if s := x.Trouble(); !strings.Contains(s, "has been writing for 20s") {
		t.Error(s)
	}
}
