package ranked

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// TestFormat fails when the documents of unchanged entries change, or what an index says of itself:
// then format has to change too, or an older program's index would be taken for this one's. What
// only the analysis changes raises terms.Version, and the value here.
func TestFormat(t *testing.T) {
	r := newRegistry(t, "")
	r.apply(
		entry(events.Scammers, "66f2c0ffee00112233445566", "Jan Oszust 2013", "900000000000000000001", "Wziął **zaliczkę** i zniknął, zniknął z pieniędzmi.", true),
		entry(events.Servers, "Zażółć-7", "Tanie_Nitro", "x-2013", "", false),
		entry(events.Legit, "0a", "Żaneta", "12345678", "Nikogo nie oszukała.\n\nAni 2 razy.", true),
	)
	m, err := newMapping()
	require.NoError(t, err)
	all := []any{m, state{Format: 1, Analysis: 2, Render: 3, Epoch: "e", Since: 5}}
	for _, l := range events.Lists() {
		r.model.View().ShownRows(func(row *readmodel.Row) bool {
			if row.List() == l {
				d, err := newDocument(stemmer().Analyzer(), row)
				require.NoError(t, err)
				all = append(all, documentID(row.List(), row.ID()), d)
			}
			return true
		})
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	sum := sha256.Sum256(text)
	const want = "6 9c34163e83113b74"
	if got := fmt.Sprint(format, " ", hex.EncodeToString(sum[:8])); got != want {
		t.Errorf("documents are %q, were %q: raise format (or terms.Version, if only terms differ) and write the new value here", got, want)
	}
}
