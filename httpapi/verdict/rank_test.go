package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
)

// A name of the same words warns, also where ranked search ignores one of them, and where one may be a
// label.
func TestRank(t *testing.T) {
	rd, view := reader(), viewOf(people())
	for _, c := range []struct {
		text       string
		asked      []string
		name       string // of the last answer's hit
		start, end int    // what matched in it
		want       Value
	}{
		{"Szczupak Żelazny", []string{"Szczupak Żelazny"}, "Żelazny Szczupak", 0, 16, Caution},
		{"Szczupak Żelazny", []string{"Szczupak Żelazny"}, "Żelazny Szczupak", 8, 16, Caution},
		{"Szczupak jaki", []string{"Szczupak jaki"}, "Żelazny Szczupak", 8, 16, None},
		{"serwer zenek", []string{"zenek", "serwer zenek"}, "Tanie Nitro", 0, 0, None},
		{"dc: nitro tani", []string{"nitro tani", "dc: nitro tani"}, "Tanie Nitro", 0, 11, None}, // three words
		{"id tani", []string{"tani", "id tani"}, "Tanie Nitro", 0, 11, Caution},
		{"@zenek", []string{"zenek"}, "Tanie Nitro", 0, 0, None},
		{"dc: zenek " + nobodyID, []string{"zenek", "dc: zenek"}, "Tanie Nitro", 0, 11, Caution},
	} {
		found, err := view.Who(t.Context(), &readmodel.Question{Literals: []string{lookalike.Literal(c.name)}})
		require.NoError(t, err)
		hit := readmodel.RankedHit{Row: found.Literals[0][0], Matches: []readmodel.Match{{Field: readmodel.InName, Start: c.start, End: c.end}}}
		p := rd.Read(c.text, "")
		answers, err := Find(t.Context(), view, &p)
		require.NoError(t, err)
		v := Decide(rd, &p, answers)
		for i, words := range c.asked {
			if v.Words() != words {
				t.Fatalf("%q: asks for %q, want %q: %+v", c.text, v.Words(), words, v)
			}
			page := readmodel.RankedPage{}
			if i == len(c.asked)-1 {
				page.Hits = []readmodel.RankedHit{hit}
			}
			v.Rank(&page)
		}
		if v.Value != c.want || v.Words() != "" {
			t.Errorf("%q: %s, then asks for %q, want %s: %+v", c.text, v.Value, v.Words(), c.want, v.Findings)
		}
	}
}
