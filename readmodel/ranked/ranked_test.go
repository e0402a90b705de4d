package ranked

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/indexing"
	"example.org/registry/readmodel/terms"
)

func TestMain(m *testing.M) {
	if !eventstest.FullRun() {
		_ = flag.Set("rapid.checks", "8") // a flag on the command line comes later and wins
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("example.org/registry/readmodel/ranked.(*store).closeScorch")) // see store.close
}

// stemmer is shared by all tests: it takes a while to load.
var stemmer = sync.OnceValue(func() *terms.Stemmer {
	s, err := terms.New()
	if err != nil {
		panic(err)
	}
	return s
})

// registry is a model with an index that tests change, stop and start.
type registry struct {
	t        rapid.TB
	model    *readmodel.Model
	renderer *readmodel.Renderer
	seq      uint64
	dir      string
	id       Identity
	at       func(string) error // of the indexers that start
	hangs    time.Duration      // likewise
	retry    time.Duration      // likewise
	pause    time.Duration      // likewise
	erase    time.Duration      // likewise
	engine   *Engine
	stop     func()
}

func newRegistry(t rapid.TB, dir string) *registry {
	return &registry{t: t, model: readmodel.New(), renderer: readmodel.NewRenderer(), dir: dir, id: Identity{"epoch", "data set"}, pause: time.Millisecond}
}

// start runs an indexer.
func (r *registry) start() {
	r.engine = &Engine{Dir: r.dir, Pacer: &indexing.Pacer{Busy: func() bool { return false }}, EraseAfter: r.erase,
		tuning: tuning{pause: r.pause, retry: r.retry, nap: time.Millisecond, hangsAfter: r.hangs, at: r.at}}
	r.engine.stemmer.Store(stemmer())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	engine, id := r.engine, r.id
	go func() { defer close(done); engine.Run(ctx, r.model, id) }()
	r.stop = func() { cancel(); <-done }
}

func (r *registry) apply(data ...events.Data) {
	var records []readmodel.Record
	for _, d := range data {
		r.seq++
		records = append(records, r.renderer.Render(r.seq, events.Revised(d, int64(r.seq))))
	}
	r.model.Apply(records, r.seq)
}

func entry(list events.List, id, name, chat, reason string, verified bool) events.Entry {
	return events.Entry{Revision: 1, List: list, EntryID: id, ChatID: chat, Name: name, Reason: reason, Verified: verified,
		ReportID: "R-" + id, ReportedAt: eventstest.Start()}
}

// current waits until the index has everything.
func (r *registry) current() *Searcher {
	r.t.Helper()
	deadline := time.Now().Add(8 * time.Minute) // a million entries take some
	for {
		a := r.engine.Acquire()
		if a != nil && a.Sequence() == r.seq {
			return a
		}
		if a != nil {
			a.Release()
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the index is at %d of %d: %s", r.engine.Sequence(), r.seq, r.engine.Problem())
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *registry) search(q readmodel.RankedQuery) readmodel.RankedPage {
	r.t.Helper()
	a := r.current()
	defer a.Release()
	if q.Limit == 0 {
		q.Limit = 20
	}
	page, err := a.Search(context.Background(), r.model.View(), q)
	require.NoError(r.t, err)
	return page
}

func ids(p readmodel.RankedPage) (ids []string) {
	for _, h := range p.Hits {
		ids = append(ids, string(h.Row.List())+"/"+h.Row.ID())
	}
	return ids
}

// TestFinds: inflections, diacritics, ids, order, highlights, filters.
func TestFinds(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir())
	r.apply(
		entry(events.Scammers, "a", "Jan Kowalski", "900000000000000000001", "Oszukał mnie na **przelew**.", true),
		entry(events.Scammers, "b", "Oszukany", "900000000000000000002", "Wziął pieniądze i zniknął.", false),
		entry(events.Servers, "c", "Serwer oszustów", "900000000000000000003", "Wysyłają linki i oszukali wielu.\n\nDrugi akapit: oszukują. Nagroda!", true),
		entry(events.Legit, "d", "Żaneta", "900000000000000000004", "Nikogo nie oszukała", true),
		entry(events.Legit, "e", "Ukryta", "900000000000000000005", "oszukała, oszukał, oszukali", false),
	)
	r.start()
	defer r.stop()
	for _, c := range []struct {
		words string
		want  []string
	}{
		{"oszukała", []string{"scammers/b", "legit/d", "servers/c", "scammers/a"}},
		{"oszukal", []string{"scammers/b", "legit/d", "servers/c", "scammers/a"}},
		{"OSZUKAŁ przelewem", []string{"scammers/a"}},
		{"zaneta", []string{"legit/d"}},
		{"Żanecie", []string{"legit/d"}},
		{"900000000000000000003", []string{"servers/c"}},
		{"serwery linkiem", []string{"servers/c"}},
		{"nagrode", []string{"servers/c"}},
		{"nagrodę", []string{"servers/c"}},
		{"wysylaja", []string{"servers/c"}},
		{"ukryta", nil},
		{"pieniedzy", []string{"scammers/b"}},
		{"mając pieniądze", []string{"scammers/b"}},
		{"mieć", nil},
		{"pieniadze", []string{"scammers/b"}},
		{"i się na", nil},
	} {
		got := ids(r.search(readmodel.RankedQuery{Words: c.words}))
		sorted := slices.Clone(got)
		slices.Sort(sorted)
		want := slices.Clone(c.want)
		slices.Sort(want)
		if !slices.Equal(sorted, want) {
			t.Errorf("%q finds %q, want %q", c.words, got, c.want)
		}
	}
	p := r.search(readmodel.RankedQuery{Words: "oszukali", List: events.Servers})
	if got := ids(p); !slices.Equal(got, []string{"servers/c"}) || p.Total != 1 || p.Facets != [3]int{2, 1, 1} {
		t.Errorf("servers: %q, total %d, facets %v", got, p.Total, p.Facets)
	}
	_, reason, _ := p.Hits[0].Row.Text()
	var marked []string
	for _, m := range p.Hits[0].Matches {
		marked = append(marked, string([]rune(reason)[m.Start:m.End]))
	}
	if !slices.Equal(marked, []string{"oszukali", "oszukują"}) {
		t.Errorf("marked %q in %q", marked, reason)
	}
	if first := ids(r.search(readmodel.RankedQuery{Words: "oszukany"})); first[0] != "scammers/b" {
		t.Errorf("a name weighs more than a reason: %q", first)
	}
}

// TestRelaxed: where no entry has all of three words, those that have two; the best of them first;
// filters count.
func TestRelaxed(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir())
	r.apply(
		entry(events.Scammers, "a", "Kowalski", "900000000000000000001", "Wziął zaliczkę, zniknął.", true),
		entry(events.Scammers, "b", "Nowak", "900000000000000000002", "Wziął konto. Było to konto po bracie, i zaliczka tak długa, że nikt nie wie.", false),
		entry(events.Servers, "c", "Zaliczka", "900000000000000000003", "Zaliczki.", true),
		entry(events.Legit, "d", "Kto", "900000000000000000004", "Nigdy zaliczek, konto od lat.", true),
	)
	r.start()
	defer r.stop()
	for _, c := range []struct {
		q       readmodel.RankedQuery
		want    []string
		relaxed bool
	}{
		{readmodel.RankedQuery{Words: "wziął zaliczkę i zniknął"}, []string{"scammers/a"}, false},
		{readmodel.RankedQuery{Words: "wziął zaliczkę z konta"}, []string{"scammers/b"}, false},
		{readmodel.RankedQuery{Words: "kradnie zaliczki z kont"}, []string{"legit/d", "scammers/b"}, true},
		{readmodel.RankedQuery{Words: "kradnie zaliczki z kont", Status: readmodel.StatusRisk}, []string{"scammers/b"}, true},
		{readmodel.RankedQuery{Words: "kradnie zaliczki z kont", List: events.Servers}, nil, true},
		{readmodel.RankedQuery{Words: "wziął zaliczkę z konta", List: events.Servers}, nil, false}, // another list has them all
		{readmodel.RankedQuery{Words: "kradnie zaliczki"}, nil, false},
		{readmodel.RankedQuery{Words: "kradnie ma mieć i będzie mu moje"}, nil, false},
		{readmodel.RankedQuery{Words: "kradnie buty zaliczki"}, nil, false},
	} {
		c.q.Limit = 1
		var got []string
		for {
			p := r.search(c.q)
			if got = append(got, ids(p)...); p.Relaxed != c.relaxed || p.Total != len(c.want) {
				t.Errorf("%+v: relaxed %v, total %d, want %v, %d", c.q, p.Relaxed, p.Total, c.relaxed, len(c.want))
			}
			if c.q.Skip++; !p.HasMore {
				break
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.q, got, c.want)
		}
	}
}

// TestSuggestions: other spellings where nothing is found, of words that somebody wrote in verified
// entries.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir())
	r.apply(
		entry(events.Scammers, "a", "Kowalski", "900000000000000000001", "paysafecard", true),
		entry(events.Scammers, "b", "Wiśniewski", "900000000000000000002", "zaliczka", false),
		entry(events.Servers, "c", "Złodzieje", "900000000000000000003", "", true),
		entry(events.Servers, "d", "Kontakty", "900000000000000000003", "Dragonixa nie ma; zwycięzcy dzwonili.", true),
		entry(events.Scammers, "e", "x", "900000000000000000003", "Dragonixom, kontaktem, złodziejka", false),
		entry(events.Scammers, "f", "Jestem24", "900000000000000000003", "nitrobot", true),
		entry(events.Scammers, "g", "Nitrobot", "900000000000000000003", "", false),
	)
	r.start()
	defer r.stop()
	for words, want := range map[string][]string{
		"jetsem":                         nil,          // a part of a name, and alone a stop word
		"nitrobto":                       {"nitrobot"}, // a name where it is not verified, a reason where it is
		"kowalsky":                       {"kowalski"},
		"Kowalxky":                       nil,
		"kovalski zaliczke":              nil,
		"payssfecrd":                     {"paysafecard"},
		"paysafecat kowalsk":             {"paysafecard kowalski"},
		"wisniewsky":                     nil,
		"zlodzeje":                       {"złodzieje"},
		"złodzieje kowalsky":             nil, // they are not in one entry
		"kowalski":                       nil,
		"kow":                            nil,
		"900000000000000000009":          nil,
		"kowaslki":                       {"kowalski"}, // two letters are swapped
		"payasfecrad":                    {"paysafecard"},
		"dragnix":                        nil,           // the stem dragonix is near, and nobody wrote it
		"dragnixa":                       {"dragonixa"}, // but this; dragonixom only where it is not verified
		"zwyciezcca":                     {"zwycięzcy"}, // two edits; zwycięzca is nearer, and nobody wrote it
		"kontatky":                       {"kontakty"},
		"Kto to: Kowalsky?":              {"Kto to: kowalski?"}, // all else is as it was
		"Mój PAYSAFECARD, Kowalskky mój": {"Mój PAYSAFECARD, kowalski mój"},
		"zlodziejja":                     {"złodzieje"},
	} {
		if got := r.search(readmodel.RankedQuery{Words: words}); !slices.Equal(got.Suggestions, want) {
			t.Errorf("%q: %q, want %q (total %d)", words, got.Suggestions, want, got.Total)
		}
	}
	r.apply(entry(events.Servers, "d", "Kontaktowy", "900000000000000000003", "Zwycięzców", true)) // what nobody has any more
	if got := r.search(readmodel.RankedQuery{Words: "kontatky"}); len(got.Suggestions) > 0 {
		t.Errorf("gone: %q", got.Suggestions)
	}
	if n := r.engine.Renewed(); n != 0 {
		t.Errorf("the index was made anew %d times", n)
	}
}

// reference is ranked search without an index: it analyzes everything.
type reference struct {
	analyzer *terms.Analyzer
	rows     []*readmodel.Row
	terms    []map[string]bool
	words    map[string][]string // plain to folded
}

func newReference(t *rapid.T, v *readmodel.View) *reference {
	ref := &reference{analyzer: stemmer().Analyzer(), words: map[string][]string{}}
	v.ShownRows(func(r *readmodel.Row) bool {
		name, reason, err := r.Text()
		require.NoError(t, err)
		have := map[string]bool{}
		for i, text := range []string{name, reason, r.ChatID()} {
			for _, token := range ref.analyzer.Tokens(nil, text) {
				for _, term := range token.Terms {
					have[term] = true
				}
				if i < 2 {
					ref.words[token.Plain] = append(ref.words[token.Plain], token.Folded)
				}
			}
		}
		ref.rows, ref.terms = append(ref.rows, r), append(ref.terms, have)
		return true
	})
	return ref
}

// find returns who has every word or else, of three words and more, all but one, and how many in
// each list.
func (ref *reference) find(v *readmodel.View, q readmodel.RankedQuery) (found []string, facets [events.NumLists]int, relaxed bool) {
	words := map[string][]string{} // any of its terms will do
	tokens := ref.analyzer.Tokens(nil, q.Words)
	strong := slices.ContainsFunc(tokens, func(t terms.Token) bool { return !t.Weak })
	for _, token := range tokens {
		if token.Part || token.Weak && strong {
			continue
		}
		any := slices.Clone(ref.analyzer.Meant(token.Folded))
		if token.Plain != token.Folded {
			any = append(any, token.Plain)
		}
		for _, folded := range ref.words[token.Plain] {
			any = append(any, ref.analyzer.Terms(folded)...)
		}
		words[token.Folded] = any
	}
	if found, facets = ref.having(v, q, words, len(words)); len(words) < 3 || facets != [events.NumLists]int{} {
		return found, facets, false
	}
	found, facets = ref.having(v, q, words, len(words)-1)
	return found, facets, facets != [events.NumLists]int{}
}

// having returns who has so many of the words.
func (ref *reference) having(v *readmodel.View, q readmodel.RankedQuery, words map[string][]string, least int) (found []string, facets [events.NumLists]int) {
	for i, r := range ref.rows {
		has := 0
		for _, any := range words {
			if slices.ContainsFunc(any, func(term string) bool { return ref.terms[i][term] }) {
				has++
			}
		}
		if has == 0 || has < least {
			continue
		}
		p, _ := r.Public()
		switch {
		case q.Status == readmodel.StatusVerified && !p.Verified, q.Status == readmodel.StatusRisk && p.Verified:
			continue
		case q.Proofs == readmodel.ProofsWith && p.ProofsID == nil, q.Proofs == readmodel.ProofsPrivate && !p.PrivateProofs:
			continue
		}
		list, _ := r.List().Index()
		facets[list]++
		if q.List == "" || q.List == r.List() {
			found = append(found, string(r.List())+"/"+r.ID())
		}
	}
	slices.Sort(found)
	return found, facets
}

// TestTwin: whatever is applied, and however often the index is closed and opened again, it finds
// what a look at everything finds.
func TestTwin(t *testing.T) {
	t.Parallel()
	dirs := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(dirs, "")
		require.NoError(t, err)
		r := newRegistry(t, dir)
		r.start()
		defer func() { r.stop() }()
		t.Repeat(map[string]func(*rapid.T){
			"apply": func(t *rapid.T) {
				var data []events.Data
				for range rapid.IntRange(1, 6).Draw(t, "events") {
					data = append(data, someEvent().Draw(t, "event"))
				}
				r.apply(data...)
			},
			"restart": func(t *rapid.T) {
				r.stop()
				r.start()
			},
			"search": func(t *rapid.T) {
				q := readmodel.RankedQuery{
					Words:  strings.Join(rapid.SliceOfN(someWord(), 1, 5).Draw(t, "words"), " "),
					List:   rapid.SampledFrom(append([]events.List{""}, listsOf()...)).Draw(t, "list"),
					Status: rapid.SampledFrom([]readmodel.Status{readmodel.StatusAll, readmodel.StatusVerified, readmodel.StatusRisk}).Draw(t, "status"),
					Proofs: rapid.SampledFrom([]readmodel.Proofs{readmodel.ProofsAll, readmodel.ProofsWith, readmodel.ProofsPrivate}).Draw(t, "proofs"),
					Limit:  rapid.IntRange(1, 4).Draw(t, "limit"),
				}
				r.compare(t, q)
			},
		})
	})
}

// compare asks the index and the reference, page after page.
func (r *registry) compare(t *rapid.T, q readmodel.RankedQuery) {
	a := r.current()
	defer a.Release()
	v := r.model.View()
	want, facets, relaxed := newReference(t, v).find(v, q)
	var got []string
	for {
		p, err := a.Search(context.Background(), v, q)
		require.NoError(t, err)
		if p.Relaxed != relaxed || p.Total != len(want) || p.Facets != facets || p.HasMore != (q.Skip+len(p.Hits) < p.Total) {
			t.Fatalf("%+v: total %d, facets %v, more %v, relaxed %v; want %d, %v, %v", q, p.Total, p.Facets, p.HasMore, p.Relaxed, len(want), facets, relaxed)
		}
		for _, h := range p.Hits {
			r.checkPlaces(t, h)
		}
		got = append(got, ids(p)...)
		if len(p.Suggestions) > 0 && (p.Total > 0 || len(p.Suggestions) > maxSuggestions) {
			t.Fatalf("%+v: total %d, suggestions %q", q, p.Total, p.Suggestions)
		}
		for _, s := range p.Suggestions {
			f, _, relaxed := newReference(t, v).find(v, readmodel.RankedQuery{Words: s, Status: readmodel.StatusVerified, List: q.List, Proofs: q.Proofs})
			if q.Status == readmodel.StatusRisk {
				f = slices.DeleteFunc(f, func(id string) bool { return strings.HasPrefix(id, "legit/") })
			}
			if len(f) == 0 || relaxed {
				t.Fatalf("%+v: suggestion %q finds nothing", q, s)
			}
		}
		if q.Skip += q.Limit; !p.HasMore {
			break
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Fatalf("%+v: %q, want %q", q, got, want)
	}
}

func (r *registry) checkPlaces(t *rapid.T, h readmodel.RankedHit) {
	name, reason, _ := h.Row.Text()
	for _, m := range h.Matches {
		text := map[readmodel.MatchField]string{readmodel.InName: name, readmodel.InReason: reason}[m.Field]
		if m.Start < 0 || m.End <= m.Start || m.End > utf8.RuneCountInString(text) {
			t.Fatalf("%+v in %q", m, text)
		}
	}
}

func listsOf() []events.List { l := events.Lists(); return l[:] }

// words that have much in common.
func someWord() *rapid.Generator[string] {
	return rapid.SampledFrom(strings.Fields(`oszukał oszukala oszukali oszukał oszukac konto konta kontem Łukasz lukasz ŁUKASZA żabcia2013 zabcia
		2013 nie się skin skiny pieniądze pieniadze pieniedzy 900000000000000000001 zażółć zazolc paysafecard paysafecrd x
		nagroda nagrodę nagrode nagrodą nagrod`))
}

func someEvent() *rapid.Generator[events.Data] {
	return rapid.Custom(func(t *rapid.T) events.Data {
		list := rapid.SampledFrom(listsOf()).Draw(t, "list")
		id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "id")
		if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			return events.Delisting{Revision: 1, List: list, EntryID: id}
		}
		e := entry(list, id, strings.Join(rapid.SliceOfN(someWord(), 1, 2).Draw(t, "name"), "_"),
			rapid.SampledFrom([]string{"900000000000000000001", "kot", "x-2013"}).Draw(t, "chat"),
			strings.Join(rapid.SliceOfN(someWord(), 0, 5).Draw(t, "reason"), ", "), rapid.Bool().Draw(t, "verified"))
		switch rapid.IntRange(0, 2).Draw(t, "proofs") {
		case 1:
			e.Proofs.ID = "p"
		case 2:
			e.Proofs.Private = true
		}
		return e
	})
}
