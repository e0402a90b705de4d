package ranked

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
	"example.org/registry/readmodel/terms"
)

func TestMain(m *testing.M) {
	if !eventstest.FullRun() {
		_ = flag.Set("rapid.checks", "8") // a flag on the command line comes later and wins
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) // bleve starts workers when it is imported
}

// stemmer is shared by all tests: it takes a while to load.
var stemmer = sync.OnceValue(terms.New)

// registry is a model with an index that tests change, stop and start.
type registry struct {
	t        rapid.TB
	model    *readmodel.Model
	renderer *readmodel.Renderer
	seq      uint64
	dir      string
	erase    time.Duration // of the engines that start
	engine   *Engine
	stop     func()
}

func newRegistry(t rapid.TB, dir string) *registry {
	r := &registry{t: t, model: readmodel.New(), renderer: readmodel.NewRenderer(), dir: dir}
	r.model.NameFeed("epoch")
	return r
}

// start runs an engine.
func (r *registry) start() {
	r.engine = &Engine{Dir: r.dir, EraseAfter: r.erase, gather: time.Millisecond, stemmer: stemmer()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	engine := r.engine
	go func() { defer close(done); engine.Run(ctx, r.model) }()
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

// search asks once the index has everything.
func (r *registry) search(q readmodel.RankedQuery) readmodel.RankedPage {
	r.t.Helper()
	eventstest.Until(r.t, func() bool { return r.engine.index.Load() != nil && r.engine.Sequence() == r.seq })
	if q.Limit == 0 {
		q.Limit = 20
	}
	page, err := r.engine.Search(context.Background(), r.model.View(), q)
	require.NoError(r.t, err)
	return page
}

func ids(p readmodel.RankedPage) (ids []string) {
	for _, h := range p.Hits {
		ids = append(ids, string(h.Row.List())+"/"+h.Row.ID())
	}
	return ids
}

// TestFinds: inflections, diacritics, ids, highlights, facets.
func TestFinds(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir())
	r.apply(
		entry(events.Scammers, "a", "Jan Kowalski", "900000000000000000001", "Oszukał mnie na **przelew**.", true),
		entry(events.Scammers, "b", "Oszukany", "900000000000000000002", "Wziął pieniądze i zniknął.", false),
		entry(events.Servers, "c", "Serwer oszustów", "900000000000000000003", "Wysyłają linki i oszukali wielu.\n\nDrugi akapit: oszukują. Nagroda!", true),
		entry(events.Legit, "d", "Żaneta", "900000000000000000004", "Nikogo nie oszukała", true),
		entry(events.Legit, "e", "Ukryta", "900000000000000000005", "oszukała, oszukał, oszukali", false),
		entry(events.Servers, "f", "Ja i Ty", "900000000000000000006", "przez konto", true), // a name of stop words
	)
	r.start()
	defer r.stop()
	for _, c := range []struct {
		words string
		want  []string
	}{
		{"oszukała", []string{"legit/d", "scammers/a", "scammers/b", "servers/c"}},
		{"oszukal", []string{"legit/d", "scammers/a", "scammers/b", "servers/c"}},
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
		{"mieć", nil},
		{"i się na", nil},
		{"ja i ty", []string{"servers/f"}},
		{"oszukał przez ja", []string{"legit/d", "scammers/a", "scammers/b", "servers/c"}},
		{"wysyłają linki oszukali wielu drugi akapit oszukują nagroda bzdura", []string{"servers/c"}}, // eight words count
		{"wysyłają linki oszukali wielu drugi akapit bzdura", nil},
	} {
		got := ids(r.search(readmodel.RankedQuery{Words: c.words}))
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%q finds %q, want %q", c.words, got, c.want)
		}
	}

	p := r.search(readmodel.RankedQuery{Words: "oszukali", List: events.Servers})
	if got := ids(p); !slices.Equal(got, []string{"servers/c"}) || p.Total != 1 || p.Facets != [3]int{2, 1, 1} || p.Sequence != r.seq {
		t.Errorf("servers: %q, total %d, facets %v, sequence %d", got, p.Total, p.Facets, p.Sequence)
	}
	_, reason := p.Hits[0].Row.Text()
	var marked []string
	for _, m := range p.Hits[0].Matches {
		marked = append(marked, string([]rune(reason)[m.Start:m.End]))
	}
	if !slices.Equal(marked, []string{"oszukali", "oszukują"}) {
		t.Errorf("marked %q in %q", marked, reason)
	}
}

// TestOrder: an id weighs more than a name, a name more than a reason, and a short text more than a
// long one.
func TestOrder(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir())
	r.apply(
		entry(events.Scammers, "a", "Jan", "900000000000000000001", "nitro przelew za konto na nitro", true),
		entry(events.Scammers, "b", "nitro", "900000000000000000002", "konto", false),
		entry(events.Scammers, "c", "Piotr", "nitro", "konto", true),
		entry(events.Servers, "d", "Anna", "900000000000000000004", "konto konto i buty", true),
	)
	r.start()
	defer r.stop()
	for words, want := range map[string][]string{
		"nitro":       {"scammers/c", "scammers/b", "scammers/a"},
		"nitro konto": {"scammers/c", "scammers/b", "scammers/a"},
		"buty konto":  {"servers/d"},
		"przelew":     {"scammers/a"},
		"konto":       {"scammers/b", "scammers/c", "servers/d", "scammers/a"},
	} {
		got := ids(r.search(readmodel.RankedQuery{Words: words}))
		if words == "konto" {
			slices.Sort(got[:2]) // of equal score
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

// TestSuggestions: spellings of words that no entry has, if nothing is found: words of verified
// entries as somebody wrote them, one edit away.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir())
	r.apply(
		entry(events.Scammers, "a", "Kowalski", "900000000000000000001", "paysafecard", true),
		entry(events.Scammers, "b", "Wiśniewski", "900000000000000000002", "zaliczka", false),
		entry(events.Servers, "c", "Złodzieje", "900000000000000000003", "", true),
		entry(events.Servers, "d", "Kontakty", "900000000000000000003", "Dragonixa nie ma.", true),
		entry(events.Scammers, "e", "x", "900000000000000000003", "Dragonixom, kontaktem", false),
		entry(events.Scammers, "f", "Jestem24", "900000000000000000003", "nitrobot 123456", true),
		entry(events.Servers, "g", "kota kotb kotc kotd kote kotf", "900000000000000000003", "", true),
	)
	r.start()
	defer r.stop()
	for words, want := range map[string][]string{
		"kowalsky":              {"kowalski"},
		"kowaslki":              {"kowalski"}, // two letters are swapped
		"Kowalxky":              nil,
		"Kto to: Kowalsky?":     {"kowalski"},
		"kovalski zaliczke":     {"kowalski"},
		"paysafecar kowalsk":    {"paysafecard", "kowalski"},
		"payssfecrd":            nil,
		"wisniewsky":            nil, // not verified
		"zlodzeje":              {"złodzieje"},
		"kowalski":              nil, // found
		"kowalski paysafecardu": nil, // found
		"kowalski nitrobot":     nil, // entries have both words, though not one entry
		"jetsem":                nil, // a part of a name, and alone a stop word
		"dragnix":               nil, // the stem dragonix is near, and nobody wrote it
		"dragnixa":              {"dragonixa"},
		"kontatky":              {"kontakty"},
		"123457":                nil,
		"900000000000000000009": nil,
		"kotz":                  {"kota", "kotb", "kotc", "kotd", "kote"}, // five at most
	} {
		if got := r.search(readmodel.RankedQuery{Words: words}); !slices.Equal(got.Suggestions, want) {
			t.Errorf("%q: %q, want %q (total %d)", words, got.Suggestions, want, got.Total)
		}
	}
	r.apply(entry(events.Servers, "d", "Kontaktowy", "900000000000000000003", "", true), // what nobody has any more
		events.Delisting{Revision: 1, List: events.Scammers, EntryID: "a"})
	for _, words := range []string{"kontatky", "kowalsky"} {
		if got := r.search(readmodel.RankedQuery{Words: words}); len(got.Suggestions) > 0 {
			t.Errorf("gone: %q", got.Suggestions)
		}
	}
}

// TestOneEdit: what counts as one edit.
func TestOneEdit(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"kot", "kot", false}, {"kot", "kod", true}, {"kot", "kto", true}, {"kot", "kota", true}, {"kot", "ot", true},
		{"kot", "tok", false}, {"kot", "kr", false}, {"", "k", true}, {"żół", "żół", false}, {"aab", "ab", true}, {"abab", "ab", false},
	} {
		if isOneEdit(c.a, c.b) != c.want || isOneEdit(c.b, c.a) != c.want {
			t.Errorf("%q and %q: want %v", c.a, c.b, c.want)
		}
	}
}

// An index that lags shows nobody who has gone, and nobody's old text.
func TestLag(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir())
	r.apply(
		entry(events.Scammers, "gone", "Kowalski", "900000000000000000001", "konto", true),
		entry(events.Scammers, "other", "Kowalski", "900000000000000000002", "konto", true),
		entry(events.Scammers, "risk", "Kowalski", "900000000000000000003", "konto", true),
		entry(events.Scammers, "kept", "Kowalski", "900000000000000000004", "konto", true),
		entry(events.Legit, "hidden", "Kowalski", "900000000000000000005", "konto", true),
	)
	r.start()
	defer func() { r.stop() }()
	r.search(readmodel.RankedQuery{Words: "kowalski"})
	indexed := r.engine.index.Load()
	r.stop() // from here on the index stays as it is
	path := indexed.dir
	reopened, err := openIndex(filepath.Dir(path))
	require.NoError(t, err)
	defer reopened.Close()
	r.apply(
		events.Delisting{Revision: 1, List: events.Scammers, EntryID: "gone"},
		entry(events.Scammers, "other", "Nowak", "900000000000000000002", "konto", true),
		entry(events.Scammers, "risk", "Kowalski", "900000000000000000003", "konto", false),
		entry(events.Scammers, "kept", "Pan Kowalski", "900000000000000000004", "konto", true),
		entry(events.Legit, "hidden", "Kowalski", "900000000000000000005", "konto", false),
	)
	r.engine.index.Store(reopened)
	p, err := r.engine.Search(t.Context(), r.model.View(), readmodel.RankedQuery{Words: "kowalski", Status: readmodel.StatusVerified, Limit: 20})
	require.NoError(t, err)
	if got := ids(p); !slices.Equal(got, []string{"scammers/kept"}) || p.Hits[0].Matches[0].Start != 4 || p.Total != 5 || p.HasMore || p.Sequence != 5 {
		t.Errorf("found %q, want scammers/kept alone, at 4, and the counts of the index: %+v", got, p)
	}
}

// TestAnew: an index that was not closed, is damaged, or is of another feed or version is made anew;
// one that fits goes on.
func TestAnew(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *registry)
		kept   bool
	}{
		"unchanged":  {func(*registry) {}, true},
		"more":       {func(r *registry) { r.apply(entry(events.Scammers, "b", "Nowak", "2", "konto", true)) }, true},
		"not closed": {func(r *registry) { require.NoError(r.t, os.WriteFile(r.engine.markFile(), nil, 0o600)) }, false},
		"empty files": {func(r *registry) {
			all, err := filepath.Glob(filepath.Join(r.engine.indexDir(), "*", "store", "*"))
			require.NoError(r.t, err)
			for _, name := range all {
				require.NoError(r.t, os.Truncate(name, 0))
			}
		}, false},
		"no files": {func(r *registry) { require.NoError(r.t, os.RemoveAll(r.dir)) }, false},
		"strange files": {func(r *registry) {
			require.NoError(r.t, os.WriteFile(filepath.Join(r.engine.indexDir(), "0.zap"), nil, 0o600))
		}, false},
		"an incomplete new one": {func(r *registry) {
			x, err := createIndex(r.engine.indexDir(), "epoch")
			require.NoError(r.t, err)
			require.NoError(r.t, x.Close())
		}, true},
		"another stream": {func(r *registry) { r.model.NameFeed("another") }, false},
		"an older model": {func(r *registry) {
			r.model, r.seq = readmodel.New(), 0
			r.model.NameFeed("epoch")
			r.apply(entry(events.Scammers, "b", "Nowak", "2", "konto", true))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t, t.TempDir())
			r.apply(entry(events.Scammers, "x", "Anna", "1", "", true), entry(events.Scammers, "a", "Kowalski", "1", "konto", true))
			r.start()
			r.search(readmodel.RankedQuery{Words: "konto"})
			first := r.engine.index.Load().dir
			r.stop()
			if _, err := os.Stat(r.engine.markFile()); err == nil {
				t.Fatal("the mark stays")
			}

			c.change(r)
			r.start()
			defer r.stop()
			want := 0
			for _, row := range shownRows(r.model.View()) {
				if _, reason := row.Text(); reason == "konto" {
					want++
				}
			}
			if got := r.search(readmodel.RankedQuery{Words: "konto"}).Total; got != want {
				t.Errorf("finds %d, want %d", got, want)
			}
			if kept := r.engine.index.Load().dir == first; kept != c.kept {
				t.Errorf("kept: %v", kept)
			}
			if dirs, err := os.ReadDir(r.engine.indexDir()); err != nil || len(dirs) != 1 {
				t.Errorf("directories %v, %v; want one", dirs, err)
			}
		})
	}
}

// While the stream is read again there is no new index, and an old one stays as it is.
func TestStreamIsReadAgain(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir())
	r.model.NameFeed("")
	r.apply(entry(events.Scammers, "a", "Kowalski", "1", "konto", true))
	r.start()
	defer r.stop()
	if _, err := r.engine.Search(t.Context(), r.model.View(), readmodel.RankedQuery{Words: "konto", Limit: 1}); err != readmodel.ErrNoRanking {
		t.Errorf("a search before there is an index: %v, want ErrNoRanking", err)
	}
	r.model.NameFeed("epoch")
	r.search(readmodel.RankedQuery{Words: "konto"})
}

// An index from which something was deleted is made anew once it is old enough, and the old one
// leaves the disk.
func TestErase(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir())
	r.erase = time.Millisecond
	r.apply(
		entry(events.Scammers, "a", "Kowalski", "1", "konto", true),
		entry(events.Scammers, "changed", "Kanarek", "2", "konto", true),
	)
	r.start()
	defer r.stop()
	r.search(readmodel.RankedQuery{Words: "konto"})
	current := func() string { return r.engine.index.Load().dir }
	first := current()
	r.apply(entry(events.Scammers, "b", "Nowak", "3", "konto", true)) // deletes nothing
	r.search(readmodel.RankedQuery{Words: "konto"})
	if current() != first {
		t.Error("an index without deleted entries was made anew")
	}

	for i, change := range []events.Data{
		entry(events.Scammers, "changed", "Nowak", "2", "konto", true),
		events.Delisting{Revision: 1, List: events.Scammers, EntryID: "changed"},
	} {
		before := current()
		r.apply(change)
		eventstest.Until(t, func() bool { _, err := os.Stat(before); return os.IsNotExist(err) && current() != before })
		if got := r.search(readmodel.RankedQuery{Words: "konto"}).Total; got != 3-i {
			t.Errorf("%+v: %d entries are found, want %d", change, got, 3-i)
		}
	}
}

// A search ends with its context.
func TestDeadline(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir())
	r.apply(entry(events.Scammers, "a", "Kowalski", "1", "konto", true))
	r.start()
	defer r.stop()
	r.search(readmodel.RankedQuery{Words: "konto"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, words := range []string{"konto", "kontp"} {
		if _, err := r.engine.Search(ctx, r.model.View(), readmodel.RankedQuery{Words: words, Limit: 1}); err != context.Canceled {
			t.Errorf("search of %s with a canceled context: %v", words, err)
		}
	}
}

// TestFormat fails when the documents of unchanged entries change, or the description of an index: then
// format has to change too, or an older program's index would be taken for this one's. It hashes the
// tables of package terms, the documents that it makes of a sample, and the mapping.
func TestFormat(t *testing.T) {
	h := sha256.New()
	for _, name := range []string{"words.txt", "stop.txt", "lexicon.fst"} {
		content, err := os.ReadFile(filepath.Join("..", "terms", name))
		require.NoError(t, err)
		h.Write(content)
	}

	r := newRegistry(t, "")
	r.apply(
		entry(events.Scammers, "66f2c0ffee00112233445566", "Jan Oszust 2013", "900000000000000000001", "Wziął **zaliczkę** i zniknął, zniknął z pieniędzmi.", true),
		entry(events.Servers, "Zażółć-7", "Tanie_Nitro", "x-2013", "", false),
		entry(events.Legit, "0a", "Żaneta", "12345678", "Nikogo nie oszukała.\n\nAni 2 razy.", true),
	)
	for i, text := range []string{
		"Podszywał się pod administratora serwera; kradzież kont, fałszywe nagrody, zaliczki, paysafecard.",
		"oszukal pieniadze wysylaja kradna nagrode zaliczke zolty ŻÓŁTY Żółć źdźbło",
		"xX_kotek2013_Xx żabcia2013 a1 1a ab12cd34 ²³ ½ Ⅷ ٣٤ 10-20 20,5zł",
		"discord.gg/abc https://example.test/ścieżka?id=7#x ktos@example.test @nick #tag",
		"İstanbul ǅ ﬁrma ＡＢＣ straße ΟΔΟΣ мошенник ᎠᎡ 詐欺 מרמה ½kg e\u0301 \u0301 \u200d😀👨‍👩‍👧 ł đ ø ŁĐØ",
		"skin skina skinami nitro nitra boostem trejdował kody kodów token tokenów linkiem dragonfixami",
		"kot psa dom lis być jest był są ma a i o u w z się nie na do " + strings.Repeat("ą", 40),
	} {
		r.apply(entry(events.Scammers, fmt.Sprint(i), "x", "1", text, true))
	}
	m, err := newMapping()
	require.NoError(t, err)
	all := []any{m, state{Format: 1, Epoch: "e", Since: 5}}
	for _, row := range shownRows(r.model.View()) {
		all = append(all, documentID(row.List(), row.ID()), newDocument(stemmer().Analyzer(), row))
	}
	require.NoError(t, json.NewEncoder(h).Encode(all))
	const want = "9 12201ff2c812460e"
	if got := fmt.Sprintf("%d %x", format, h.Sum(nil)[:8]); got != want {
		t.Errorf("documents are %q, were %q: raise format and write the new value here", got, want)
	}
}
