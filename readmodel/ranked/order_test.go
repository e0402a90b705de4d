package ranked

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// inflected are the words of TestOrder: each line is one word in some of its forms, and none
// is another word's. They are taken from a grammar, not from the tables of package terms.
func inflected() [][]string {
	var words [][]string
	for line := range strings.Lines(`oszust oszusta oszustem oszustów
		konto konta kontem kontach
		nagroda nagrodę nagrody nagrodą
		przelew przelewu przelewem
		groźba groźby groźbami
		telefon telefonu telefonem
		paysafecard
		nitro`) {
		words = append(words, strings.Fields(line))
	}
	return words
}

// place is a word of a text, and where it is, in code points.
type place struct{ word, start, end int }

// read finds the words of a text, without those that count for nothing.
func read(text string) (places []place) {
	runes := []rune(text)
	for at := 0; at < len(runes); at++ {
		end := at
		for end < len(runes) && (unicode.IsLetter(runes[end]) || unicode.IsDigit(runes[end])) {
			end++
		}
		form := strings.ToLower(string(runes[at:end]))
		if end > at && form != "się" && form != "na" {
			word := slices.IndexFunc(inflected(), func(forms []string) bool { return slices.Contains(forms, form) })
			places = append(places, place{word, at, end})
		}
		at = end
	}
	return places
}

// naive is BM25 as httpapi/CONTRACT.md#ranked has it, over every entry that is shown.
type naive struct {
	entries []events.Entry
	fields  [][3][]place // of each entry: name, chat id, reason
	average [3]float64   // words in a field
}

func newNaive(entries []events.Entry) *naive {
	n := &naive{entries: entries}
	for _, e := range entries {
		fields := [3][]place{read(e.Name), read(e.ChatID), read(e.Reason)}
		n.fields = append(n.fields, fields)
		for i := range fields {
			n.average[i] += float64(len(fields[i])) / float64(len(entries))
		}
	}
	return n
}

func count(places []place, word int) (n float64) {
	for _, p := range places {
		if p.word == word {
			n++
		}
	}
	return n
}

// alike reports whether two entries have equal counts, and so equal scores in any arithmetic. Other
// counts may give scores that are equal here and differ in their last bit there.
func (n *naive) alike(a, b int, words []int) bool {
	for i := range n.average {
		if len(n.fields[a][i]) != len(n.fields[b][i]) {
			return false
		}
		for _, word := range words {
			if count(n.fields[a][i], word) != count(n.fields[b][i], word) {
				return false
			}
		}
	}
	return true
}

// score is 0 for an entry that lacks a word.
func (n *naive) score(of int, words []int) (score float64) {
	const k1, b = 1.2, 0.75
	for _, word := range words {
		have, found := 0.0, 0.0
		for _, fields := range n.fields {
			if slices.ContainsFunc(fields[:], func(p []place) bool { return count(p, word) > 0 }) {
				have++
			}
		}
		idf := math.Log(1 + (float64(len(n.entries))-have+0.5)/(have+0.5))
		for i, weight := range []float64{3, 8, 1} {
			f, length := count(n.fields[of][i], word), float64(len(n.fields[of][i]))
			found += f
			score += weight * idf * f * (k1 + 1) / (f + k1*(1-b+b*length/n.average[i]))
		}
		if found == 0 {
			return 0
		}
	}
	return score
}

// TestOrder: results are in the order of a naive BM25, equals in that of their ids, and what is
// highlighted is the words, whatever form they have, all of them.
func TestOrder(t *testing.T) {
	t.Parallel()
	dirs := t.TempDir()
	moved := 0 // searches whose order is not that of the ids
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(dirs, "")
		require.NoError(t, err)
		r := newRegistry(t, dir)
		r.start()
		defer r.stop()
		shown := map[string]events.Entry{}
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			var data []events.Data
			for range rapid.IntRange(1, 12).Draw(t, "entries") {
				e := someOrdered(t)
				e.EntryID = fmt.Sprint("e", 100+len(data)+100*int(r.seq)) // listed once: see someOrdered
				key := string(e.List) + "/" + e.EntryID
				if shown[key] = e; e.List == events.Legit && !e.Verified {
					delete(shown, key)
				}
				data = append(data, e)
			}
			r.apply(data...)
			r.current().Release() // so that there are several segments
		}
		var entries []events.Entry
		for _, e := range shown {
			entries = append(entries, e)
		}
		n := newNaive(entries)
		for range 4 {
			moved += compareOrder(t, r, n)
		}
	})
	if moved == 0 {
		t.Error("every order was that of the ids")
	}
}

func someForms(t *rapid.T, least, most int, name string) string {
	forms := append(slices.Concat(inflected()...), "się", "na")
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(forms), least, most).Draw(t, name), rapid.SampledFrom([]string{" ", ", ", " – "}).Draw(t, "between"))
}

// someOrdered is an entry that is shown. What is not shown, and earlier states of an entry, may
// still count in how rare a word is and how long a text: the order of nearly equals may then differ
// from the naive one.
func someOrdered(t *rapid.T) events.Entry {
	list := rapid.SampledFrom(listsOf()).Draw(t, "list")
	chat := rapid.SampledFrom([]string{"900000000000000000001", "900000000000000000002", "nitro", "konto"}).Draw(t, "chat")
	return entry(list, fmt.Sprint("e", rapid.IntRange(0, 20).Draw(t, "id")), "77 "+someForms(t, 0, 3, "name"), chat, "88 "+someForms(t, 1, 9, "reason"),
		list == events.Legit || rapid.Bool().Draw(t, "verified"))
}

// compareOrder asks for up to three words, and reports with 1 that the order found is another than
// that of the ids.
func compareOrder(t *rapid.T, r *registry, n *naive) (moved int) {
	words := rapid.SliceOfNDistinct(rapid.IntRange(0, len(inflected())-1), 1, 3, rapid.ID[int]).Draw(t, "words")
	var forms []string
	for _, w := range words {
		forms = append(forms, rapid.SampledFrom(inflected()[w]).Draw(t, "form"))
	}
	q := readmodel.RankedQuery{Words: strings.Join(forms, " "), Limit: 60}
	type scored struct {
		of    int
		key   string
		score float64
	}
	var want []scored
	for i, e := range n.entries {
		if s := n.score(i, words); s > 0 {
			want = append(want, scored{i, e.EntryID + " " + string(e.List), s})
		}
	}
	if len(want) == 0 && len(words) > 2 {
		return 0 // those that lack one word are found
	}
	hits := r.search(q).Hits
	if len(hits) != len(want) {
		t.Fatalf("%q: %d found, want %d", q.Words, len(hits), len(want))
	}
	slices.SortFunc(want, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	last, lastID, lastOf := math.Inf(1), "", -1
	for i, h := range hits {
		at := slices.IndexFunc(want, func(s scored) bool { return s.key == h.Row.ID()+" "+string(h.Row.List()) })
		if at < 0 {
			t.Fatalf("%q: %s is found", q.Words, h.Row.ID())
		}
		const nearly = 1e-5 // scores are of 32 bits
		s := want[at].score
		if s > last*(1+nearly) || math.Abs(s-want[i].score) > s*nearly {
			t.Fatalf("%q: hit %d, %s, has a score of %v, after one of %v; want %v", q.Words, i, h.Row.ID(), s, last, want[i].score)
		}
		if lastOf >= 0 && h.Row.ID() < lastID && n.alike(lastOf, want[at].of, words) {
			t.Fatalf("%q: of equal score, %s comes after %s", q.Words, h.Row.ID(), lastID)
		}
		if h.Row.ID() < lastID {
			moved = 1
		}
		last, lastID, lastOf = s, h.Row.ID(), want[at].of
		if got := n.highlighted(want[at].of, words); !slices.Equal(h.Matches, got) {
			t.Fatalf("%q: %+v are highlighted in %+v, want %+v", q.Words, h.Matches, n.entries[want[at].of], got)
		}
	}
	return moved
}

// highlighted is where the words are in an entry.
func (n *naive) highlighted(of int, words []int) (matches []readmodel.Match) {
	for i, field := range []readmodel.MatchField{0: readmodel.InName, 2: readmodel.InReason} {
		for _, p := range n.fields[of][i] {
			if field != "" && slices.Contains(words, p.word) {
				matches = append(matches, readmodel.Match{Field: field, Start: p.start, End: p.end})
			}
		}
	}
	return matches
}

// TestWeights: an id weighs more than a name, and a name more than a reason.
func TestWeights(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, t.TempDir())
	r.apply(
		entry(events.Scammers, "a", "Jan", "900000000000000000001", "nitro", true),
		entry(events.Scammers, "b", "nitro", "900000000000000000002", "konto", true),
		entry(events.Scammers, "c", "Piotr", "nitro", "konto", true),
		entry(events.Servers, "d", "Anna", "900000000000000000004", "konto konto", true),
	)
	r.start()
	defer r.stop()
	if got := ids(r.search(readmodel.RankedQuery{Words: "nitro"})); !slices.Equal(got, []string{"scammers/c", "scammers/b", "scammers/a"}) {
		t.Errorf("%q", got)
	}
}
