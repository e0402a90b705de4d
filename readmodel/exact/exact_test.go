package exact

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/exact/textindex"
	"example.org/registry/readmodel/indexing"
)

func TestMain(m *testing.M) {
	if eventstest.RaceDetector {
		_ = flag.Set("rapid.checks", "20") // a flag on the command line comes later and wins
	}
	goleak.VerifyTestMain(m)
}

// registry is a model that tests change, and a builder of its index that follows when told to.
type registry struct {
	t        rapid.TB
	model    *readmodel.Model
	renderer *readmodel.Renderer
	seq      uint64
	builder  *builder
	work     *indexing.Work
}

func newRegistry(t rapid.TB, dir string, tune tuning) *registry {
	m := readmodel.New()
	return &registry{
		t: t, model: m, renderer: readmodel.NewRenderer(), work: indexing.NewWork(idle()),
		builder: newBuilder(filepath.Join(dir, "index"), m, tune),
	}
}

func idle() *indexing.Pacer { return &indexing.Pacer{Busy: func() bool { return false }} }

func (r *registry) apply(data ...events.Data) *readmodel.View {
	var records []readmodel.Record
	for _, d := range data {
		r.seq++
		records = append(records, r.renderer.Render(r.seq, events.Revised(d, int64(r.seq))))
	}
	v, _ := r.model.Apply(records, r.seq)
	return v
}

// follow is a step of the builder.
func (r *registry) follow(v *readmodel.View) indexing.State {
	r.t.Helper()
	state, err := r.builder.Follow(context.Background(), r.work, v)
	require.NoError(r.t, err)
	return state
}

func (r *registry) indexAll() {
	r.t.Helper()
	for r.follow(r.model.View()) == indexing.Working {
	}
}

// holds compares what the published index says of a search with a look at every row: what it is
// sure of matches, what matches is possible at least, but for rows that have changed since.
func (r *registry) holds(v *readmodel.View, list int, needle string) {
	r.t.Helper()
	for _, text := range []readmodel.TextOf{readmodel.TextOfAll, readmodel.TextOfNames, readmodel.TextOfChatIDs} {
		q := readmodel.TextQuery{List: list, Text: text, Needle: needle}
		x := r.builder.index
		sequence, ok := x.Coverage(v)
		changed, logged := v.ChangedSince(sequence)
		if !ok || !logged {
			continue // then searches do without it
		}
		sure, possible := map[uint32]bool{}, map[uint32]bool{}
		_ = x.Candidates(context.Background(), v, q, func(first uint32, s, m *readmodel.Slots) {
			s.Each(func(slot uint16) bool { sure[first+uint32(slot)] = true; return true })
			m.Each(func(slot uint16) bool { possible[first+uint32(slot)] = true; return true })
		})
		matches := map[uint32]bool{}
		v.Rows(func(row *readmodel.Row) bool {
			names, reason := row.Folded()
			if text == readmodel.TextOfChatIDs {
				_, names, _ = strings.Cut(names, "\n")
			}
			matches[row.Ref().Slot()] = row.Ref().List() == list && (strings.Contains(names, needle) ||
				text == readmodel.TextOfAll && strings.Contains(reason, needle)) || row.Ref().List() != list && matches[row.Ref().Slot()]
			return true
		})
		for _, ref := range changed {
			if ref.List() == list {
				delete(sure, ref.Slot())
				delete(matches, ref.Slot())
			}
		}
		for slot := range sure {
			if row := v.Row(readmodel.NewRowRef(list, slot)); row != nil && !matches[slot] {
				r.t.Fatalf("%q at %d: slot %d is sure and does not contain it", needle, v.Sequence(), slot)
			}
		}
		for slot, is := range matches {
			if is && !sure[slot] && !possible[slot] {
				r.t.Fatalf("%q at %d: slot %d is missing", needle, v.Sequence(), slot)
			}
		}
	}
}

// numbered is an entry of a list that spans blocks.
func numbered(n, version int) events.Entry {
	return events.Entry{
		Revision: 1,
		List:     events.Scammers, EntryID: fmt.Sprintf("e%06d", n), ChatID: fmt.Sprint(1_000_000 + n),
		Name: fmt.Sprintf("ktoś%d", n%97), Reason: fmt.Sprintf("wersja %d oszust", version), ReportID: "r",
	}
}

func of(list events.List, e events.Entry) events.Entry {
	e.List = list
	return e
}

// TestBlocks: a list of several blocks, changed all over while it is indexed, old views included,
// is indexed right.
func TestBlocks(t *testing.T) {
	t.Parallel()
	const n = 2*readmodel.BlockLen + 700
	r := newRegistry(t, t.TempDir(), tuning{maxPending: 64})
	r.model.BeginBulk()
	for i := range n {
		r.apply(numbered(i, 1))
	}
	r.model.EndBulk()
	views := []*readmodel.View{r.model.View()}
	for round := 2; round < 8; round++ {
		v := r.model.View()
		var data []events.Data
		for i := round; i < n; i += 97 {
			data = append(data, numbered(i, round))
		}
		data = append(data, events.Delisting{Revision: 1, List: events.Scammers, EntryID: fmt.Sprintf("e%06d", round*3001)})
		views = append(views, r.apply(data...))
		for range round % 4 { // blocks of the first are out of date when they are made
			r.follow(v)
			v = r.model.View()
		}
		for _, v := range views[max(0, len(views)-3):] {
			for _, needle := range []string{"oszust", "wersja 1 ", fmt.Sprintf("ja %d o", round), "a 1", fmt.Sprintf("a %d", round), "ktoś96", "1016", "ś9", "7"} {
				r.holds(v, 0, needle)
			}
		}
	}
	if parts := r.builder.index.lists[0]; parts[1].block == nil || parts[0].block == nil {
		t.Errorf("not every block was made: %+v", parts)
	}
}

// TestVocabularyRenewed: words of texts that are gone do not stay forever. Once the vocabulary has
// doubled, every block is built with a new one, and the index is right all the time.
func TestVocabularyRenewed(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir(), tuning{minRenewal: 1})
	b, entries := r.builder, 300
	if eventstest.RaceDetector {
		entries = 100
	}
	change := func(list events.List, version int) {
		var data []events.Data
		for i := range entries {
			e := of(list, numbered(i, version))
			for word := range 30 {
				e.Reason += fmt.Sprintf(" słowo%d%d%d", version, i, word)
			}
			data = append(data, e)
		}
		r.apply(data...)
	}
	change(events.Servers, 1)
	change(events.Scammers, 1)
	r.indexAll()
	first, renewed := b.vocabulary, 0
	for version := 2; version < 12 && renewed < 2; version++ {
		last := b.vocabulary
		change(events.Scammers, version)
		for more, i := true, 0; more || i < 3; i++ { // when nothing has changed any more, blocks are built at once
			more = r.follow(r.model.View()) == indexing.Working
			for _, needle := range []string{fmt.Sprintf("wo%d99", version), "słowo1999", fmt.Sprintf("9 słowo%d5", version)} {
				r.holds(r.model.View(), 0, needle)
				r.holds(r.model.View(), 1, needle)
			}
		}
		if b.vocabulary != last {
			renewed++
		}
	}
	if renewed < 2 || b.vocabulary == first {
		t.Fatalf("%d renewals, %d bytes", renewed, b.vocabulary.Bytes())
	}
	if list, i, need := b.firstOutdated(); need != none {
		t.Errorf("list %d, part %d has an old vocabulary", list, i)
	}
}

// TestVocabularyForgets: a word of an entry that is gone leaves the heap once the vocabulary is a day
// old (deploy/erasing.md).
func TestVocabularyForgets(t *testing.T) {
	const word = "kanarekwindeksie"
	for _, after := range []time.Duration{time.Hour, 1} {
		t.Run(after.String(), func(t *testing.T) {
			r := newRegistry(t, t.TempDir(), tuning{renewAfter: after})
			canary := numbered(1, 1)
			canary.EntryID, canary.Reason = "canary", word
			r.apply(canary)
			for i := range 100 {
				r.apply(numbered(i, 1))
			}
			r.indexAll()
			if !eventstest.InHeap(t, word) {
				t.Fatal("the word is not in the heap: the test looks in the wrong place")
			}
			r.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "canary"})
			for i := range 100 {
				e := numbered(i, 2)
				e.Reason = strings.Repeat("dłużej ", 100) // over what buffers still have
				r.apply(e)
			}
			for range 5 {
				r.indexAll()
			}
			switch {
			case after == time.Hour && !eventstest.InHeap(t, word):
				t.Error("the word has left the heap by itself: there is nothing to do")
			case after != time.Hour && !eventstest.LeavesHeap(t, word):
				t.Error("the heap still has the word")
			}
			runtime.KeepAlive(r)
		})
	}
}

// TestViewBeforeIndex: an entry that was gone before the index began is not missed in a view that
// still shows it.
func TestViewBeforeIndex(t *testing.T) {
	r := newRegistry(t, t.TempDir(), tuning{maxPending: 1})
	r.model.BeginBulk()
	r.apply(numbered(1, 1))
	old := r.model.EndBulk()
	r.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: numbered(1, 1).EntryID})
	r.indexAll()
	if _, ok := r.builder.index.Coverage(old); ok {
		t.Error("the index says that it covers a view from before it began")
	}
}

// TestHostile: searches made to be expensive are answered right.
func TestHostile(t *testing.T) {
	r := newRegistry(t, t.TempDir(), tuning{maxPending: 1})
	for i := range 500 {
		r.apply(of(events.Lists()[i%3], numbered(i, i%9)))
	}
	r.indexAll()
	for _, needle := range []string{strings.Repeat("a", 100), strings.Repeat("ka", 50), " ", "o", strings.Repeat("oszust ", 14), `.*[a-z]+(x|y)?$^\`,
		`name:"x" or *:* ~2 ?`, strings.Repeat("konto nitro", 9), strings.Repeat("\u0301", 100), strings.Repeat("😀", 100)} {
		for list := range events.NumLists {
			r.holds(r.model.View(), list, needle)
		}
	}
}

// twins are two models of the same events; one has an index.
type twins struct {
	*registry
	plain *readmodel.Model // without an index: see TestTwin of readmodel
	views [][2]*readmodel.View
}

func (p *twins) batch(t *rapid.T) {
	var records []readmodel.Record
	for range rapid.IntRange(1, 12).Draw(t, "size") {
		p.seq++
		e := eventstest.Entries(1, uint64(rapid.IntRange(0, 3).Draw(t, "seed")))[0]
		e.List = rapid.SampledFrom(lists()).Draw(t, "list")
		e.EntryID = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "id")
		e.Name = rapid.SampledFrom([]string{"ktoś", "Nikt ważny", "oszust 7", "ОСТ", "x"}).Draw(t, "name")
		e.Reason = strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"oszust", "konto", "**x**", "y z", "oszukał mnie", "ż"}), 0, 4).Draw(t, "reason"), " ")
		var d events.Data = e
		if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
			d = events.Delisting{Revision: 1, List: e.List, EntryID: e.EntryID}
		}
		records = append(records, p.renderer.Render(p.seq, events.Revised(d, int64(p.seq))))
	}
	v, _ := p.model.Apply(records, p.seq)
	plain, _ := p.plain.Apply(records, p.seq)
	p.views = append(p.views, [2]*readmodel.View{v, plain})
}

func lists() []events.List { l := events.Lists(); return l[:] }

func (p *twins) index(t *rapid.T) {
	p.builder.tuning.maxPending = rapid.IntRange(1, 3).Draw(t, "slack")
	for more := true; more && rapid.IntRange(0, 3).Draw(t, "stop") > 0; {
		for range 2 { // the second time nothing has changed, so that blocks are made
			more = p.follow(p.model.View()) == indexing.Working
		}
	}
}

// lose forgets the index, as a restart does.
func (p *twins) lose(*rapid.T) {
	p.model.UseTextIndex(nil)
	p.builder = newBuilder(p.builder.path, p.model, tuning{})
}

// fail is an index that cannot be written for once.
func (p *twins) fail(*rapid.T) {
	good := p.builder.path
	p.builder.path, p.builder.dir = "/dev/null/index", ""
	_, _ = p.builder.Follow(context.Background(), p.work, p.model.View())
	p.builder.path, p.builder.dir = good, ""
}

// damage makes every block unreadable.
func (p *twins) damage(*rapid.T) {
	bad := p.builder.index
	for list, parts := range bad.lists {
		bad.lists[list] = slices.Clone(parts)
		for i := range parts {
			if parts[i].block != nil {
				bad.lists[list][i].block = new(textindex.Block) // whose every Find fails
			}
		}
	}
	p.model.UseTextIndex(&bad)
}

func entries(rows []*readmodel.Row) (all []string) {
	for _, r := range rows {
		all = append(all, r.JSON())
	}
	return all
}

// ask compares the answers of a view, the newest or an older one.
func (p *twins) ask(t *rapid.T) {
	if len(p.views) == 0 {
		return
	}
	v := p.views[max(0, len(p.views)-1-rapid.SampledFrom([]int{0, 0, 0, 1, 5}).Draw(t, "age"))]
	list := rapid.SampledFrom(lists()).Draw(t, "list")
	needle := rapid.SampledFrom([]string{"oszust", "o", "kon", "x y", "t k", "ż", "nikt", "ktoś", "7", "oszust konto", "ал"}).Draw(t, "needle")
	q := readmodel.ListQuery{List: list, Search: needle, Limit: 60}
	var answers [2]string
	for i := range v {
		page, err := v[i].List(context.Background(), q)
		check, _ := v[i].Check(context.Background(), readmodel.CheckQuery{Search: needle})
		require.NoError(t, err)
		answers[i] = fmt.Sprint(entries(page.Rows), page.Total, page.HasMore, entries(check.Imitates))
		for _, g := range slices.Concat(check.Groups, check.Similar) {
			answers[i] += fmt.Sprint(" ", g.List, entries(g.Rows))
		}
	}
	if answers[0] != answers[1] {
		t.Fatalf("%+v at %d\n  with %s\nwithout %s", q, v[0].Sequence(), answers[0], answers[1])
	}
	i, _ := list.Index()
	p.holds(p.model.View(), i, needle)
}

// TestTwin guards promise 6: the index may lag, be gone, damaged or back; an answer, to a new view
// or an old one, is that of a model without one.
func TestTwin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		p := &twins{registry: newRegistry(t, dir, tuning{}), plain: readmodel.New()}
		t.Repeat(map[string]func(*rapid.T){
			"batch": p.batch, "batch again": p.batch, "index": p.index, "index again": p.index, "lose": p.lose, "fail": p.fail,
			"damage": p.damage, "ask": p.ask, "ask again": p.ask, "ask once more": p.ask,
		})
	})
}

// run starts an engine, which the test's end stops.
func run(t *testing.T, x *Engine, m *readmodel.Model) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { x.Run(ctx, m) })
	t.Cleanup(func() { cancel(); done.Wait() })
}

// TestEngineFollows: an engine beside a writer and readers; every answer is right while it trails,
// and it catches up.
func TestEngineFollows(t *testing.T) {
	r := newRegistry(t, t.TempDir(), tuning{})
	x := &Engine{Dir: r.builder.path, Pacer: idle(), tuning: tuning{maxPending: 7, pause: time.Millisecond}}
	run(t, x, r.model)
	for seq := 1; seq <= 2000; seq++ {
		name := fmt.Sprintf("nowy %d", seq)
		v := r.apply(events.Entry{Revision: 1, List: events.Scammers, EntryID: fmt.Sprint(seq % 300), ChatID: "1", Name: name, ReportID: "r"})
		if p, err := v.List(t.Context(), readmodel.ListQuery{List: events.Scammers, Search: name, Limit: 60}); err != nil || p.Total != 1 {
			t.Fatalf("the entry set at %d is found %d times (%v), the index being at %d", seq, p.Total, err, x.Sequence())
		}
	}
	eventstest.Until(t, func() bool { return x.Sequence() == 2000 })
	if x.Problem() != "" {
		t.Error(x.Problem())
	}
	if p, _ := r.model.View().List(t.Context(), readmodel.ListQuery{List: events.Scammers, Search: "nowy", Limit: 1}); p.Total != 300 {
		t.Errorf("%d entries, want 300", p.Total)
	}
}

// TestEngineFails: an index that cannot be written is a sentence, and searches go on; once it can,
// it is.
func TestEngineFails(t *testing.T) {
	place := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(place, nil, 0o600))
	r := newRegistry(t, place, tuning{})
	for i := range 9 {
		r.apply(events.Entry{Revision: 1, List: events.Legit, EntryID: fmt.Sprint(i), ChatID: "1", Name: fmt.Sprint("ktoś", i), Verified: true, ReportID: "r"})
	}
	x := &Engine{Dir: r.builder.path, Pacer: idle(), tuning: tuning{maxPending: 1, pause: time.Millisecond, retry: 10 * time.Millisecond}}
	run(t, x, r.model)
	eventstest.Until(t, func() bool {
		return strings.Contains(x.Problem(), "The text index cannot be written, so searches look")
	})
	ask := func(needle string) {
		t.Helper()
		if p, err := r.model.View().List(t.Context(), readmodel.ListQuery{List: events.Legit, Search: needle, Limit: 1}); err != nil || p.Total != 9 {
			t.Errorf("%d found, %v", p.Total, err)
		}
	}
	if ask("toś"); x.Sequence() != 0 {
		t.Errorf("the index is at %d", x.Sequence())
	}
	require.NoError(t, os.Remove(place))
	eventstest.Until(t, func() bool { return x.Sequence() == 9 && x.Problem() == "" })
	ask("kto")
}
