package ranked

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	index "github.com/blevesearch/bleve_index_api"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// TestFormat fails when the documents of unchanged entries change, or what an index says of itself:
// then format has to change too, or what an older program wrote would be read as something else.
// What only the analysis changes raises terms.Version, and the value here.
func TestFormat(t *testing.T) {
	r := newRegistry(t, "")
	r.apply(
		entry(events.Scammers, "66f2c0ffee00112233445566", "Jan Oszust 2013", "900000000000000000001", "Wziął **zaliczkę** i zniknął, zniknął z pieniędzmi.", true),
		entry(events.Servers, "Zażółć-7", "Tanie_Nitro", "x-2013", "", false),
		entry(events.Legit, "0a", "Żaneta", "12345678", "Nikogo nie oszukała.\n\nAni 2 razy.", true),
	)
	h := sha256.New()
	var documents []*document
	for _, l := range events.Lists() {
		r.model.View().ShownRows(func(row *readmodel.Row) bool {
			if row.List() == l {
				d, err := newDocument(stemmer().Analyzer(), row, nil)
				require.NoError(t, err)
				documents = append(documents, d)
			}
			return true
		})
	}
	for _, d := range documents {
		fmt.Fprintf(h, "%q\n", d.ID())
		d.VisitFields(func(f index.Field) {
			fmt.Fprintf(h, "%q %d %d %q", f.Name(), f.Options(), f.AnalyzedLength(), f.Value())
			for text, frequency := range sortedTerms(f) {
				fmt.Fprintf(h, " %q %d", text, frequency)
			}
			fmt.Fprintln(h)
		})
	}
	st := state{Format: 1, Analysis: 2, Render: 3, Projection: 4, Identity: Identity{"e", "d"}, Complete: true, Sequence: 5, Digest: "x"}
	text, err := json.Marshal(st)
	require.NoError(t, err)
	fmt.Fprintf(h, "%q %q\n", stateKey, text)
	const want = "5 88703a3c252bb93f"
	if got := fmt.Sprint(format, " ", hex.EncodeToString(h.Sum(nil)[:8])); got != want {
		t.Errorf("documents are %q, were %q: raise format (or terms.Version, if only terms differ) and write the new value here", got, want)
	}
}

// sortedTerms yields the terms of a field with how often each occurs.
func sortedTerms(f index.Field) iter.Seq2[string, int] {
	found := f.AnalyzedTokenFrequencies()
	return func(yield func(string, int) bool) {
		for _, text := range slices.Sorted(maps.Keys(found)) {
			if !yield(text, found[text].Frequency()) {
				return
			}
		}
	}
}
