package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

// A plain name that ranked search knows in another form or order is a warning, and one that is a part of
// a name is shown below "nobody".
func TestInflectedNamesWarn(t *testing.T) {
	p := newPeople(t)
	index := rankedIndex(t)
	for _, c := range []struct {
		text   string
		value  verdict.Value
		others bool
	}{
		{"Szczupak Żelazny", verdict.Caution, false},
		{"Żelaznego Szczupaka", verdict.Caution, false},
		{"zelaznego szczupaka", verdict.Caution, false},
		{"cyprianem", verdict.Caution, false},
		{"Szczupak", verdict.None, true},
		{"Zupełnie Nikt", verdict.None, false},
	} {
		read := p.reader.Read(c.text, "")
		found, err := verdict.Find(t.Context(), p.view, &read)
		require.NoError(t, err)
		v := verdict.Decide(p.reader, &read, found)
		require.NotEmpty(t, v.Words(), c.text)
		page, err := index.Search(t.Context(), index.view, readmodel.RankedQuery{Words: v.Words(), Limit: 60})
		require.NoError(t, err)
		if v.Rank(&page); v.Value != c.value || len(v.Others) > 0 != c.others || len(v.Others)+len(v.Spellings) > 3 {
			t.Errorf("%q: %s %d, %d others, spellings %v", c.text, v.Value, v.Reason, len(v.Others), v.Spellings)
		}
	}
}
