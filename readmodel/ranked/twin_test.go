package ranked

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/terms"
)

// find is ranked search without an index: it analyzes every entry that is shown, and returns those
// that have every word, and how many each list has.
func find(t *rapid.T, v *readmodel.View, q readmodel.RankedQuery) (found []string, facets [events.NumLists]int) {
	analyzer := stemmer().Analyzer()
	words := queryWords(analyzer, q.Words)
	for _, r := range shownRows(v) {
		p := r.Public()
		name, reason := r.Text()
		var have []string
		for _, text := range []string{name, reason, p.ChatID} {
			for _, token := range analyzer.Tokens(nil, text) {
				have = append(have, token.Terms...)
			}
		}
		isMissing := func(w terms.Token) bool { return !shareTerm(w.Terms, have) }
		switch {
		case len(words) == 0, slices.ContainsFunc(words, isMissing),
			q.Status == readmodel.StatusVerified && !p.Verified, q.Status == readmodel.StatusRisk && p.Verified,
			q.Proofs == readmodel.ProofsWith && p.ProofsID == nil, q.Proofs == readmodel.ProofsPrivate && !p.PrivateProofs:
			continue
		}
		list, _ := r.List().Index()
		facets[list]++
		if q.List == "" || q.List == r.List() {
			found = append(found, documentID(r.List(), r.ID()))
		}
	}
	slices.Sort(found)
	return found, facets
}

// shownRows returns the rows that the lists of a view show, in the order of their last changes.
func shownRows(v *readmodel.View) (rows []*readmodel.Row) {
	for _, c := range v.Feed().Page(0, 1<<20, 1<<30).Changes {
		if c.Row != nil {
			rows = append(rows, c.Row)
		}
	}
	return rows
}

// TestTwin: whatever is applied, and however often the index is closed, opened and made anew, it
// finds what a look at everything finds.
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
					data = append(data, someEvent(t))
				}
				r.apply(data...)
			},
			"restart": func(t *rapid.T) {
				r.stop()
				r.erase = rapid.SampledFrom([]time.Duration{0, time.Nanosecond}).Draw(t, "erase")
				r.start()
			},
			"search": func(t *rapid.T) {
				r.compare(t, readmodel.RankedQuery{
					Words:  strings.Join(rapid.SliceOfN(someWord(), 1, 5).Draw(t, "words"), " "),
					List:   rapid.SampledFrom(append([]events.List{""}, listsOf()...)).Draw(t, "list"),
					Status: rapid.SampledFrom([]readmodel.Status{readmodel.StatusAll, readmodel.StatusVerified, readmodel.StatusRisk}).Draw(t, "status"),
					Proofs: rapid.SampledFrom([]readmodel.Proofs{readmodel.ProofsAll, readmodel.ProofsWith, readmodel.ProofsPrivate}).Draw(t, "proofs"),
					Limit:  rapid.IntRange(1, 4).Draw(t, "limit"),
				})
			},
		})
	})
}

// compare asks the index and the twin, page after page.
func (r *registry) compare(t *rapid.T, q readmodel.RankedQuery) {
	want, facets := find(t, r.model.View(), q)
	var got []string
	for {
		p := r.search(q)
		if p.Total != len(want) || p.Facets != facets || p.HasMore != (q.Skip+len(p.Hits) < p.Total) {
			t.Fatalf("%+v: total %d, facets %v, more %v; want %d, %v", q, p.Total, p.Facets, p.HasMore, len(want), facets)
		}
		for _, h := range p.Hits {
			name, reason := h.Row.Text()
			for _, m := range h.Matches {
				text := map[readmodel.MatchField]string{readmodel.InName: name, readmodel.InReason: reason}[m.Field]
				if m.Start < 0 || m.End <= m.Start || m.End > utf8.RuneCountInString(text) {
					t.Fatalf("%+v in %q", m, text)
				}
			}
		}
		got = append(got, ids(p)...)
		if len(p.Suggestions) > 0 && (p.Total > 0 || len(p.Suggestions) > maxSuggestions) {
			t.Fatalf("%+v: total %d, suggestions %q", q, p.Total, p.Suggestions)
		}
		for _, s := range p.Suggestions {
			if found, _ := find(t, r.model.View(), readmodel.RankedQuery{Words: s, Status: readmodel.StatusVerified}); len(found) == 0 {
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

func listsOf() []events.List { l := events.Lists(); return l[:] }

// words that have much in common.
func someWord() *rapid.Generator[string] {
	return rapid.SampledFrom(strings.Fields(`oszukał oszukala oszukali oszukał oszukac konto konta kontem Łukasz lukasz ŁUKASZA żabcia2013 zabcia
		2013 nie się skin skiny pieniądze pieniadze pieniedzy 900000000000000000001 zażółć zazolc paysafecard paysafecrd x
		nagroda nagrodę nagrode nagrodą nagrod kónto`))
}

func someEvent(t *rapid.T) events.Data {
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
}
