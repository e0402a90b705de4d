package readmodel

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
		ix, err := gramindex.Create(filepath.Join(p.t.TempDir(), "index"))
		if err != nil {
			t.Fatal(err)
		}
		p.feed = &feed{index: ix, model: p.model, batch: rapid.IntRange(1, 5).Draw(t, "batch")}
	}
	if err := p.feed.follow(context.Background(), p.model.View()); err != nil {
		t.Fatal(err)
	}
}

func (p *indexedPair) lose(*rapid.T) { p.close() }

func (p *indexedPair) close() {
	p.model.accelerator.replace(nil)
	if p.feed != nil {
		if err := p.feed.index.Close(); err != nil {
			p.t.Error(err)
		}
		p.feed = nil
	}
}

func (p *indexedPair) restart(t *rapid.T) {
	p.close()
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

// TestTwinIndexed guards promise 6: the index may be behind, gone or back, and results remembered
// or forgotten; an answer, to a new view or an old one, is the naive twin's.
func TestTwinIndexed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &indexedPair{pair: newPair(), t: t}
		defer func() { p.close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"batch": p.batch, "batch again": p.batch, "index": p.index, "index again": p.index, "lose": p.lose,
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
	x := &Indexer{Dir: filepath.Join(t.TempDir(), "index"), Batch: 7, Pause: time.Millisecond}
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

// TestIndexerFails: a directory that cannot be made is a sentence and a log line; searches go on.
func TestIndexerFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	ctx, cancel := context.WithCancel(context.Background())
	x := &Indexer{Dir: filepath.Join(file, "index"), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	m := New()
	var done sync.WaitGroup
	done.Go(func() { x.Run(ctx, m) })
	for x.Trouble() == "" && !t.Failed() {
		wait(ctx, time.Millisecond)
	}
	cancel()
	done.Wait()
	if !strings.Contains(log.String(), "text index failed") || m.IndexSequence() != 0 {
		t.Errorf("%q, index at %d", log.String(), m.IndexSequence())
	}
}

// TestChangeLog: what is further back than the log is said to be.
func TestChangeLog(t *testing.T) {
	l := changeLog{floor: 10}
	for seq := uint64(11); seq <= 10+5*maxChanges; seq++ {
		l.add(seq, 1, uint32(seq))
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
