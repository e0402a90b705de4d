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
	"example.org/registry/readmodel/gramindex"
)

// indexedPair is a pair whose model has an index that follows when told to, and so is behind most
// of the time.
type indexedPair struct {
	*pair
	t    *testing.T
	feed *feed
	old  []func(t *rapid.T) // questions to older views with the answers they had
}

func (p *indexedPair) index(t *rapid.T) {
	if p.feed == nil {
		x := &Indexer{Dir: filepath.Join(p.t.TempDir(), "index"), Slack: rapid.IntRange(1, 3).Draw(t, "slack")}
		p.feed = &feed{indexer: x, model: p.model}
	}
	p.feed.failed = time.Time{} // try again
	for more := true; more && rapid.IntRange(0, 3).Draw(t, "stop") > 0; {
		for range 2 { // the second time nothing has changed, so that small blocks are made
			var err error
			if more, err = p.feed.step(context.Background(), p.model.View()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// lose forgets the index, as a restart does.
func (p *indexedPair) lose(*rapid.T) {
	p.model.accelerator.index.Store(nil)
	p.feed = nil
}

// fail is an index that cannot be written for once.
func (p *indexedPair) fail(t *rapid.T) {
	if p.feed == nil {
		return
	}
	p.feed.failed, p.feed.dir = time.Time{}, ""
	good := p.feed.indexer.Dir
	p.feed.indexer.Dir = "/dev/null/index"
	_, _ = p.feed.step(context.Background(), p.model.View())
	p.feed.indexer.Dir = good
}

// damage makes a block unreadable.
func (p *indexedPair) damage(*rapid.T) {
	x := p.model.accelerator.index.Load()
	if x == nil {
		return
	}
	bad := *x
	for list, parts := range bad.lists {
		bad.lists[list] = slices.Clone(parts)
		for i := range parts {
			if parts[i].block != nil {
				bad.lists[list][i].block = new(gramindex.Block) // of which every Find fails
			}
		}
	}
	p.model.accelerator.index.Store(&bad)
}

func (p *indexedPair) restart(t *rapid.T) {
	p.lose(t)
	p.pair.restart(t)
}

// keep asks the view of now and remembers to ask it again later.
func (p *indexedPair) keep(t *rapid.T) {
	v, q := p.model.View(), someListQuery(t)
	want := p.twin.list(q)
	ask := func(t *rapid.T) {
		_, _ = p.model.View().List(context.Background(), q) // what is remembered is newer than v
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
			p.model.accelerator.remembered.InvalidateAll()
		}
		ask(t)
	}
}

// TestTwinIndexed guards promise 6: the index may be behind, gone, damaged or back, and results remembered
// or forgotten; an answer, to a new view or an old one, is the naive twin's.
func TestTwinIndexed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &indexedPair{pair: newPair(), t: t}
		rt.Repeat(map[string]func(*rapid.T){
			"batch": p.batch, "batch again": p.batch, "index": p.index, "index again": p.index, "lose": p.lose, "fail": p.fail, "damage": p.damage,
			"list": p.askList, "list again": p.askList, "check": p.askCheck, "restart": p.restart,
			"keep": p.keep, "keep again": p.keep, "old": p.askOld, "old again": p.askOld,
		})
	})
}

// TestIndexerFollows: a real Indexer beside a writer and readers; every answer is right while it
// trails, and it catches up.
func TestIndexerFollows(t *testing.T) {
	m, r := New(), NewRenderer()
	ctx, cancel := context.WithCancel(context.Background())
	x := &Indexer{Dir: filepath.Join(t.TempDir(), "index"), Slack: 7, Pause: time.Millisecond}
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
	x := &Indexer{Dir: filepath.Join(place, "index"), Slack: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	m, r := New(), NewRenderer()
	for seq := uint64(1); seq <= 9; seq++ {
		m.Apply([]Record{r.Render(seq, events.Entry{List: events.Legit, EntryID: fmt.Sprint(seq), ChatID: "1", Name: "ktoś", Verified: true, ReportID: "r"})}, seq)
	}
	f := &feed{indexer: x, model: m}
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
		m.accelerator.remembered.InvalidateAll()
	}
	ask()
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	f.failed = time.Now().Add(-2 * afterFailure)
	for more := true; more; {
		var err error
		if more, err = f.step(context.Background(), m.View()); err != nil {
			t.Fatal(err)
		}
	}
	if x.Trouble() != "" || m.IndexSequence() != 9 || m.accelerator.index.Load().lists[2][0].block == nil {
		t.Errorf("%q, index at %d", x.Trouble(), m.IndexSequence())
	}
	ask()
}

// TestIndexerHangs: a disk that does not answer is a sentence.
func TestIndexerHangs(t *testing.T) {
	var x Indexer
	x.writing.Store(new(time.Now().Add(-tooLong / 2)))
	if s := x.Trouble(); s != "" {
		t.Error(s)
	}
	x.writing.Store(new(time.Now().Add(-2 * tooLong)))
	if s := x.Trouble(); !strings.Contains(s, "has been writing for 20s") {
		t.Error(s)
	}
}

// TestChangeLog: what is further back than the log is said to be.
func TestChangeLog(t *testing.T) {
	l := changeLog{floor: 10}
	for seq := uint64(11); seq <= 10+5*maxChanges; seq++ {
		l.add(seq, 1, &change{row: &Row{slot: uint32(seq)}})
	}
	last := uint64(10 + 5*maxChanges)
	for _, back := range []uint64{0, 1, maxChanges} {
		got, ok := l.since(last - back)
		if !ok || uint64(len(got)) != back || back > 0 && (got[0].sequence != last-back+1 || got[0].list() != 1 || got[0].slot() != uint32(last-back+1)) {
			t.Errorf("%d back: %d changes, %v", back, len(got), ok)
		}
	}
	if _, ok := l.since(last - 2*maxChanges - 1); ok {
		t.Error("more was promised than is kept")
	}
}
