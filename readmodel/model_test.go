package readmodel

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

func TestMain(m *testing.M) {
	if eventstest.RaceDetector {
		_ = flag.Set("rapid.checks", "20") // a flag on the command line comes later and wins
	}
	goleak.VerifyTestMain(m)
}

// Few values, so that ids meet, names tie and searches hit.
func someName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"Łukasz", "lukasz", "ŁUKASZ", "zażółć", "Ząb", "Zab", "żaba", "źrebak", "a b", "a \t b",
			"ab", "AB", "a-b", "a.b", "ａｂ", "straße", "STRASSE", "İstanbul", "10", "9", "ć", "c", "d", `"q"`, "a\\b", "😀", "a\u00a0b"}),
		rapid.StringOfN(rapid.SampledFrom([]rune("aAąbłŁ zZ1-😀ß")), 1, 6, -1),
		someLookalike(),
	).Filter(func(s string) bool { return strings.TrimSpace(s) != "" })
}

// someLookalike are names that look like each other, more or less: the parts of a look-alike key,
// and what confuses its two case orders.
func someLookalike() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"paypal", "paypaI", "PAYPAL", "pаypal", "pay\u200bpal", "pa\u0301ypal", "ilona", "Ilona", "IlonA", "ll0na", "ｉ1ona"}),
		rapid.StringOfN(rapid.SampledFrom([]rune("aаáAΑ\u00ad\u0301IlіО0o٣mM3")), 3, 9, -1),
	)
}

func someChat() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"100", "1001", "ab", "AB", "x_y"})
}

func someReason() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "oszust", "**osz**ust", "Oszust\nnitro", "oszust\n\nnitro", "- a\n- b", "<b>x</b> y",
		"[ab](https://x.example)", "![ab](x)", "`1001`", "a  b", "ab\\\ncd"})
}

func someEntryID() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"e1", "e2", "e3", "e4", "e5", "E1", "e-1", "e_1", "e10"})
}

func someList() *rapid.Generator[events.List] {
	all := events.Lists()
	return rapid.SampledFrom(append(all[:], events.Scammers)) // which then has the most entries
}

// someTimes are seconds since 1970 in four months.
func someTimes() []int64 { return []int64{0, 1, 31*86400 - 1, 31 * 86400, 400 * 86400, 7258118400} }

func someEntry(t *rapid.T) events.Data {
	e := events.Entry{
		Revision: 1,
		List:     someList().Draw(t, "list"), EntryID: someEntryID().Draw(t, "entry"), ChatID: someChat().Draw(t, "chat"),
		Name: someName().Draw(t, "name"), Reason: someReason().Draw(t, "reason"), Verified: rapid.Bool().Draw(t, "verified"),
		ReportID: "r", ReportedAt: time.Unix(rapid.SampledFrom(someTimes()).Draw(t, "at"), 0).UTC(),
	}
	switch rapid.IntRange(0, 2).Draw(t, "proofs") {
	case 1:
		e.Proofs.ID = "p"
	case 2:
		e.Proofs.Private = true
	}
	if rapid.Bool().Draw(t, "complete") {
		e = eventstest.Complete(e)
	}
	return e
}

func someData(t *rapid.T) events.Data {
	list, id := someList().Draw(t, "list"), someEntryID().Draw(t, "id")
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1:
		return events.Delisting{Revision: 1, List: list, EntryID: id}
	case 2, 3, 4:
		return events.Views{Revision: 1, List: list, EntryID: id, Views: rapid.Int64Range(0, 4).Draw(t, "views")}
	case 5:
		return events.Donation{Revision: 1, DonationID: id, Status: "pending", Amount: fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "amount")),
			Currency: "PLN", CreatedAt: time.Unix(0, 0).UTC(), UpdatedAt: time.Unix(0, 0).UTC()}
	case 6:
		return events.DonationRemoval{Revision: 1, DonationID: id}
	default:
		return someEntry(t)
	}
}

func someListQuery(t *rapid.T) ListQuery {
	q := ListQuery{
		List: someList().Draw(t, "list"), Sort: Sort(rapid.IntRange(0, 5).Draw(t, "sort")),
		Status: Status(rapid.IntRange(0, 2).Draw(t, "status")), Proofs: Proofs(rapid.IntRange(0, 2).Draw(t, "proofs")),
		Skip: rapid.IntRange(0, 6).Draw(t, "skip"), Limit: rapid.IntRange(1, 6).Draw(t, "limit"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "by") {
	case 0:
		q.ID = someChat().Draw(t, "id")
	case 1:
		q.Search = rapid.OneOf(someName(), someChat(), rapid.SampledFrom([]string{"oszust", "o", "t n", "x y"})).Draw(t, "search")
	}
	return q
}

// subject under test: a model, the store that it would have, and the twin.
type pair struct {
	model    *Model
	twin     *twin
	renderer *Renderer
	store    map[events.Subject]State
	log      []events.Data // everything applied, in order

	blockSize, limit int // of the text index; 0: the usual ones
	old              []oldView
}

// oldView is a view with what it answered when it was the newest.
type oldView struct {
	view  *View
	query ListQuery
	want  string
}

func newPair() *pair {
	p := &pair{twin: newTwin(), renderer: NewRenderer(), store: map[events.Subject]State{}}
	p.model = p.newModel()
	return p
}

// newIndexedPair returns a pair whose model makes blocks of few rows, and often.
func newIndexedPair() *pair {
	p := newPair()
	p.blockSize, p.limit = 4, 6
	p.model = p.newModel()
	return p
}

func (p *pair) newModel() *Model {
	m := New()
	if p.blockSize > 0 {
		m.indexer.limit = p.limit
		for _, l := range m.lists {
			l.texts.size = p.blockSize
		}
	}
	return m
}

// viewOf drops the losses of Apply.
func viewOf(v *View, _ []Loss) *View { return v }

// revise draws a revision for d, which in most cases is the greatest so far.
func (p *pair) revise(t *rapid.T, d events.Data) events.Data {
	revision := int64(len(p.log) + 1)
	if rapid.IntRange(0, 3).Draw(t, "late") == 0 {
		revision = rapid.Int64Range(1, revision).Draw(t, "revision")
	}
	return events.Revised(d, revision)
}

func (p *pair) batch(t *rapid.T) {
	old := p.model.View()
	before := listAll(old)
	var records []Record
	for range rapid.IntRange(1, 12).Draw(t, "size") {
		d := p.revise(t, someData(t))
		if len(p.log) > 0 && rapid.IntRange(0, 9).Draw(t, "again") == 0 {
			d = p.log[len(p.log)-1] // a redelivery of the last event: it changes nothing
		}
		p.log = append(p.log, d)
		seq := uint64(len(p.log))
		p.twin.apply(seq, d)
		records = append(records, p.renderer.Render(seq, d))
	}
	bulk := rapid.IntRange(0, 9).Draw(t, "bulk") == 0 // as while the lag is long
	if bulk {
		p.model.BeginBulk()
	}
	_, lost := p.model.Apply(records, uint64(len(p.log)))
	if bulk {
		p.model.EndBulk()
	}
	for i := range records {
		if !slices.ContainsFunc(lost, func(l Loss) bool { return l.Record == &records[i] }) {
			p.save(records[i])
		}
	}
	for _, l := range lost {
		p.sameLoss(t, l)
	}
	if after := listAll(old); after != before {
		t.Fatalf("an old view changed:\n%s\n%s", before, after)
	}
	var want string
	for _, q := range allQueries() {
		want += p.twin.list(q)
	}
	if got := listAll(p.model.View()); got != want {
		t.Fatalf("lists:\n got %s\nwant %s", got, want)
	}
	p.sameTombstones(t, p.model)
}

// sameLoss: a record is lost to a state that is greater, and that is told as the contract says.
func (p *pair) sameLoss(t *rapid.T, l Loss) {
	d := p.log[l.Record.Sequence-1]
	switch is := p.twin.known[d.Subject()].Data; {
	case events.Compare(d, is) >= 0:
		t.Fatalf("%+v is lost to %+v", d, is)
	case l.Known < events.Revision(d) || l.Known > events.Revision(is):
		t.Fatalf("%+v is lost to revision %d of %+v", d, l.Known, is)
	case l.Conflict && l.Unheeded, l.Conflict != (l.Known == events.Revision(d)), l.Unheeded && l.Known == events.Revision(d):
		t.Fatalf("%+v is lost as %+v", d, l)
	}
}

func (p *pair) sameTombstones(t *rapid.T, m *Model) {
	got := map[events.Subject]State{}
	for i, l := range m.lists {
		n := 0
		l.entries.Scan(func(id string, e entry) bool {
			if e.row != nil && e.row.removed {
				d := events.Delisting{List: events.Lists()[i], EntryID: id, Revision: e.row.revision}
				got[d.Subject()] = State{e.sequence, d}
				n++
			}
			return true
		})
		if counted := m.View().Tombstones(events.Lists()[i]); counted != n {
			t.Fatalf("the view counts %d tombstones, want %d", counted, n)
		}
	}
	if !maps.Equal(got, p.twin.gone) {
		t.Fatalf("tombstones:\n got %v\nwant %v", got, p.twin.gone)
	}
}

// State is the state of a subject, and the stream sequence of the last message that had it.
type State struct {
	Sequence uint64
	Data     events.Data
}

// listAll is everything that the lists of a view show, in each order, and the entries of a chat id.
func listAll(v *View) string {
	var b []byte
	for _, q := range allQueries() {
		p, _ := v.List(context.Background(), q)
		b = append(b, pageJSON(p)...)
	}
	return string(b)
}

func allQueries() (qs []ListQuery) {
	for _, l := range events.Lists() {
		for s := Newest; s <= ZA; s++ {
			qs = append(qs, ListQuery{List: l, Sort: s, Limit: 60}, ListQuery{List: l, Sort: s, Limit: 60, ID: "100"})
		}
	}
	return qs
}

func (p *pair) save(r Record) { p.store[r.Subject] = State{r.Sequence, p.log[r.Sequence-1]} }

// restart is a new model out of the store.
func (p *pair) restart(t *rapid.T) { p.load(t, p.newModel()) }

// load fills m from the store, and puts it in the model's place.
func (p *pair) load(t *rapid.T, m *Model) {
	var records []Record
	for _, known := range p.store {
		records = append(records, p.renderer.Render(known.Sequence, known.Data))
	}
	m.BeginBulk()
	m.Load(records, p.model.View().Sequence())
	if got, want := m.EndBulk().Digest(), p.model.View().Digest(); got != want {
		t.Fatalf("digest of the store %s, of the model %s", got, want)
	}
	p.sameTags(t, m.View())
	p.sameTombstones(t, m)
	p.model.Close()
	p.model = m
}

// replay is a new model out of every event, in any order, some of them twice: it has the same
// content.
func (p *pair) replay(t *rapid.T) {
	m, order := New(), rapid.Permutation(append(slices.Clone(p.log), p.log[:len(p.log)/3]...)).Draw(t, "order")
	for i, d := range order {
		m.Apply([]Record{p.renderer.Render(uint64(i+1), d)}, uint64(i+1))
	}
	if got, want := m.View().Digest(), p.model.View().Digest(); got != want {
		t.Fatalf("digest of a replay %s, of the model %s", got, want)
	}
	p.sameTags(t, m.View())
}

func (p *pair) sameTags(t *rapid.T, v *View) {
	for _, l := range events.Lists() {
		for s := Newest; s <= ZA; s++ {
			q := &ListQuery{List: l, Sort: s}
			if got, want := v.ListTag(q), p.model.View().ListTag(q); got != want {
				t.Fatalf("tag of %s %d: %s and %s for one content", l, s, got, want)
			}
		}
	}
	if v.CheckTag() != p.model.View().CheckTag() {
		t.Fatal("check tags differ for one content")
	}
}

func (p *pair) askList(t *rapid.T) {
	q := someListQuery(t)
	page, err := p.model.View().List(context.Background(), q)
	require.NoError(t, err)
	if got, want := pageJSON(page), p.twin.list(q); got != want {
		t.Fatalf("%+v\n got %s\nwant %s", q, got, want)
	}
}

func (p *pair) askCheck(t *rapid.T) {
	q := CheckQuery{Search: rapid.OneOf(someName(), someChat()).Draw(t, "search")}
	if rapid.Bool().Draw(t, "byID") {
		q.ID = someChat().Draw(t, "id")
	}
	c, err := p.model.View().Check(context.Background(), q)
	require.NoError(t, err)
	if got, want := checkJSON(c), p.twin.check(q); got != want {
		t.Fatalf("%+v\n got %s\nwant %s", q, got, want)
	}
}

func (p *pair) askRest(t *rapid.T) {
	v := p.model.View()
	id := someEntryID().Draw(t, "donation")
	got, ok := v.Donation(id)
	if want, known := p.twin.donations[id]; ok != known || got != want {
		t.Fatalf("donation %s: %+v %v, want %+v %v", id, got, ok, want, known)
	}
	for _, l := range events.Lists() {
		shown := 0
		for _, e := range p.twin.entries {
			if e.List == l && (l != events.Legit || e.Verified) {
				shown++
			}
		}
		if v.NumEntries(l) != shown {
			t.Fatalf("%s shows %d entries, want %d", l, v.NumEntries(l), shown)
		}
	}
	p.askTotals(t)
	p.askEntry(t)
}

func (p *pair) askTotals(t *rapid.T) {
	q := someListQuery(t)
	page, err := p.model.View().List(context.Background(), q)
	require.NoError(t, err)
	var want Totals
	for status := range want {
		q.Status = Status(status)
		want[status] = p.twin.total(q)
	}
	if q.List == events.Legit {
		want[StatusRisk] = 0
	}
	if page.Totals != want {
		t.Fatalf("%+v: %+v, want %+v", q, page.Totals, want)
	}
}

// askEntry looks an entry up by its id.
func (p *pair) askEntry(t *rapid.T) {
	k := events.Entry{List: someList().Draw(t, "list"), EntryID: someEntryID().Draw(t, "id")}.Subject()
	e, known := p.twin.entries[k]
	row := p.model.View().Entry(k.List, k.ID)
	if shown := known && (k.List != events.Legit || e.Verified); (row != nil) != shown {
		t.Fatalf("%s: found %v, want %v", k, row != nil, shown)
	}
	if row != nil && (row.JSON() != marshal(public([]events.Entry{e})[0]) || !row.Reported().Equal(e.ReportedAt)) {
		t.Fatalf("%s: %s of %s", k, row.JSON(), row.Reported())
	}
}

// TestTwin: after any events in any batches, redelivered or not, restarted from a store or replayed in any
// order, every answer is the naive twin's.
func TestTwin(t *testing.T) {
	rounds := 1 // times -rapid.checks
	if eventstest.FullRun() {
		rounds = 4
	}
	for i := range rounds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { others(t, i); twinSteps(t) })
		})
	}
}

// others has a round draw something else than the rounds before it, which have the same seed.
func others(t *rapid.T, round int) { rapid.SliceOfN(rapid.Byte(), round, round).Draw(t, "round") }

func twinSteps(t *rapid.T) {
	p := newPair()
	t.Repeat(map[string]func(*rapid.T){
		"batch": p.batch, "list": p.askList, "list again": p.askList, "list once more": p.askList,
		"check": p.askCheck, "rest": p.askRest, "restart": p.restart, "replay": p.replay,
	})
}

// TestTwinIndexed: an exact search never lags. It is TestTwin beside a goroutine that makes blocks of the
// text index. Names change and entries go while a block stays, and while one is made; a slot gets another
// entry. What the goroutine does only by chance, batchMeanwhile does for certain.
func TestTwinIndexed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newIndexedPair()
		defer func() { p.model.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"batch": p.batch, "batch again": p.batch, "meanwhile": p.batchMeanwhile, "indexed": p.waitForIndex,
			"searches": p.askSearches, "check": p.askCheck, "restart": p.restart, "keep": p.keepView, "old": p.askOld,
		})
	})
}

// askSearches asks what many rows have, and others had until they changed.
func (p *pair) askSearches(t *rapid.T) {
	for _, l := range events.Lists() {
		for _, needle := range []string{"a", "ab", "o", "oszust", "t n", "10", "1001", "łu", "pay"} {
			q := ListQuery{List: l, Search: needle, Limit: 60}
			page, err := p.model.View().List(t.Context(), q)
			require.NoError(t, err)
			if got, want := pageJSON(page), p.twin.list(q); got != want {
				t.Fatalf("%s of %s\n got %s\nwant %s", needle, l, got, want)
			}
		}
	}
	for _, name := range []string{"pаypal", "paypaI", "ILONA", "ilóna", "llona", "maja", "łukasz", "100"} {
		c, err := p.model.View().Check(t.Context(), CheckQuery{Search: name})
		require.NoError(t, err)
		if got, want := checkJSON(c), p.twin.check(CheckQuery{Search: name}); got != want {
			t.Fatalf("check of %s\n got %s\nwant %s", name, got, want)
		}
	}
}

// waitForIndex waits until no block is due.
func (p *pair) waitForIndex(*rapid.T) { p.model.indexer.tasks.Wait() }

// batchMeanwhile applies a batch at the very time at which a block is made.
func (p *pair) batchMeanwhile(t *rapid.T) {
	m := p.model
	m.indexer.tasks.Wait()
	m.indexer.limit = 0      // a block with any change is due
	m.indexer.running = true // here, so Apply starts no goroutine
	defer func() { m.indexer.limit, m.indexer.running = p.limit, false }()

	place, source := m.beginBlock()
	if source == nil {
		return
	}
	made := source.newTextBlock(place.block)
	p.batch(t)
	m.finishBlock(place, made, source)
}

// keepView keeps the newest view with what it answers.
func (p *pair) keepView(t *rapid.T) {
	q := someListQuery(t)
	p.old = append(p.old, oldView{p.model.View(), q, p.twin.list(q)})
	p.askOld(t)
}

// askOld asks the views that were kept again.
func (p *pair) askOld(t *rapid.T) {
	for _, o := range p.old {
		page, err := o.view.List(t.Context(), o.query)
		require.NoError(t, err)
		if got := pageJSON(page); got != o.want {
			t.Fatalf("an old view, %+v\n got %s\nwant %s", o.query, got, o.want)
		}
	}
}

// TestEveryList: whatever events.Lists names is listed, counted, searched and found, and changes
// the tag of checks.
func TestEveryList(t *testing.T) {
	for _, l := range events.Lists() {
		m, r := New(), NewRenderer()
		nobody := m.View().CheckTag()
		v := viewOf(m.Apply([]Record{
			r.Render(1, events.Entry{Revision: 1, List: l, EntryID: "a", ChatID: "1", Name: "first", Verified: true, ReportID: "r"}),
			r.Render(2, events.Entry{Revision: 1, List: l, EntryID: "b", ChatID: "2", Name: "second", Verified: true, ReportID: "r"}),
			r.Render(3, events.Views{Revision: 1, List: l, EntryID: "a", Views: 1}),
		}, 3))
		if v.CheckTag() == nobody {
			t.Errorf("%s: the tag of checks is still that of nobody", l)
		}
		p, err := v.List(t.Context(), ListQuery{List: l, Sort: Popular, Limit: 1})
		if err != nil || p.Total != 2 || p.Rows[0].ID() != "a" || v.NumEntries(l) != 2 {
			t.Errorf("%s shows %+v, %v; want two entries, a first", l, p, err)
		}
		if p, err = v.List(t.Context(), ListQuery{List: l, Search: "secon", Limit: 1}); err != nil || p.Total != 1 {
			t.Errorf("%s: searched: %+v, %v", l, p, err)
		}
		for _, q := range []CheckQuery{{ID: "2"}, {Search: "second"}} {
			if c, err := v.Check(t.Context(), q); err != nil || len(c.Groups) != 1 || c.Groups[0].List != l || c.Groups[0].Rows[0].ID() != "b" {
				t.Errorf("%s: checked: %+v, %v", l, c, err)
			}
		}
	}
}

// TestRecordsStay: Apply does not change its records, which a store may be reading. So two models
// can have the same ones in different slots.
func TestRecordsStay(t *testing.T) {
	r := NewRenderer()
	other := r.Render(1, events.Entry{Revision: 1, List: events.Scammers, EntryID: "o", ChatID: "9", Name: "other", ReportID: "r"})
	rec := r.Render(2, events.Entry{Revision: 1, List: events.Scammers, EntryID: "e", ChatID: "1", Name: "name", ReportID: "r"})
	was := *rec.row
	first := viewOf(New().Apply([]Record{rec}, 2))
	second := viewOf(New().Apply([]Record{other, rec}, 2))
	if *rec.row != was {
		t.Error("Apply changed a record")
	}
	for _, v := range []*View{first, second} {
		if p, _ := v.List(t.Context(), ListQuery{List: events.Scammers, ID: "1", Limit: 1}); p.Total != 1 || p.Rows[0].ID() != "e" {
			t.Errorf("id 1 finds %+v, want entry e", p)
		}
	}
}

// TestTagsFollowContent guards the contract's ETag rule: what changes a tag, and what does not.
func TestTagsFollowContent(t *testing.T) {
	m, r := New(), NewRenderer()
	e := events.Entry{Revision: 1, List: events.Scammers, EntryID: "a", ChatID: "1", Name: "x", ReportID: "r", ReportedAt: time.Unix(0, 0)}
	tags := func() []string {
		v := m.View()
		list := func(l events.List, s Sort) string { return v.ListTag(&ListQuery{List: l, Sort: s}) }
		return []string{list("scammers", Newest), list("scammers", Popular), list("servers", AZ), v.CheckTag()}
	}
	seq := uint64(0)
	changed := func(d events.Data) (which []int) {
		before := tags()
		seq++
		m.Apply([]Record{r.Render(seq, events.Revised(d, int64(seq)))}, seq)
		for i, tag := range tags() {
			if tag != before[i] {
				which = append(which, i)
			}
		}
		return which
	}
	amended := e
	amended.Name = "y"
	for _, c := range []struct {
		what string
		d    events.Data
		want []int
	}{
		{"an entry of the list", e, []int{0, 1, 3}},
		{"the same again", e, nil},
		{"a view total", events.Views{Revision: 1, List: "scammers", EntryID: "a", Views: 1}, []int{1}},
		{"the same view total", events.Views{Revision: 1, List: "scammers", EntryID: "a", Views: 1}, nil},
		{"a donation", events.Donation{Revision: 1, DonationID: "d"}, nil},
		{"an amendment", amended, []int{0, 1, 3}},
		{"an entry of another list", events.Entry{Revision: 1, List: events.Servers, EntryID: "a", ChatID: "1", Name: "x", ReportID: "r"}, []int{2, 3}},
	} {
		if got := changed(c.d); !slices.Equal(got, c.want) {
			t.Errorf("%s changed the tags %v, want %v", c.what, got, c.want)
		}
	}
}

// TestListTag: where two states give a list one tag, they give one answer. The states differ by
// view totals, which many tags leave out.
func TestListTag(t *testing.T) {
	for round := range 10 { // such states are rare
		rapid.Check(t, func(t *rapid.T) { others(t, round); oneTagOneAnswer(t) })
	}
}

func oneTagOneAnswer(t *rapid.T) {
	m, r, q := New(), NewRenderer(), someListQuery(t)
	answer := func() (string, string) {
		page, err := m.View().List(t.Context(), q)
		require.NoError(t, err)
		return pageJSON(page), m.View().ListTag(&q)
	}
	var records []Record
	for range 8 {
		e := someEntry(t).(events.Entry)
		e.List = q.List
		records = append(records, r.Render(uint64(len(records)+1), events.Revised(e, int64(len(records)+1))))
	}
	m.Apply(records, 8)
	first, firstTag := answer()
	var views []Record
	for _, id := range rapid.SliceOfN(someEntryID(), 4, 8).Draw(t, "viewed") {
		views = append(views, r.Render(uint64(len(views)+9), events.Views{Revision: int64(len(views) + 9), List: q.List, EntryID: id, Views: rapid.Int64Range(1, 4).Draw(t, "views")}))
	}
	m.Apply(views, 16)
	if second, tag := answer(); tag == firstTag && second != first {
		t.Fatalf("%+v: one tag for\n%s and\n%s", q, first, second)
	}
}

// TestAwait: only a query that asks for a sequence waits, until it is there.
func TestAwait(t *testing.T) {
	m := New()
	got := make(chan uint64)
	for range 3 {
		go func() {
			v, err := m.Await(context.Background(), 5)
			if err != nil {
				t.Errorf("Await(5): %v", err)
			}
			got <- v.Sequence()
		}()
	}
	m.Apply(nil, 4)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.Await(ctx, 5); err != context.Canceled {
		t.Errorf("a reader that went away got %v", err)
	}
	m.Apply(nil, 7)
	for range 3 {
		if seq := <-got; seq != 7 {
			t.Errorf("waited for 5, got the view at %d", seq)
		}
	}
	// An older checkpoint changes nothing.
	if v := viewOf(m.Apply(nil, 3)); v.Sequence() != 7 {
		t.Errorf("the checkpoint went back to %d", v.Sequence())
	}
}

// TestSearchStops: a search whose reader has gone away ends without an answer.
func TestSearchStops(t *testing.T) {
	m, r := New(), NewRenderer()
	defer m.Close()
	var records []Record
	for i := range 3000 {
		records = append(records, r.Render(uint64(i+1), events.Entry{Revision: 1, List: "scammers", EntryID: fmt.Sprint(i), ChatID: "1", Name: "x"}))
	}
	v := viewOf(m.Apply(records, 3000))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := v.List(ctx, ListQuery{List: "scammers", Search: "x", Limit: 1}); err != context.Canceled {
		t.Errorf("list: %v", err)
	}
	if _, err := v.Check(ctx, CheckQuery{Search: "x"}); err != context.Canceled {
		t.Errorf("check: %v", err)
	}
}
