package verdict

import (
	"strings"
	"unicode/utf8"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
)

// maxOthers is how many lines of other names and spellings a page shows where nothing was found.
const maxOthers = 3

// Words returns the name for which ranked search has to be asked before nobody was found, or "".
func (v *Verdict) Words() string { return v.words }

// Rank adds what ranked search found for Words. A name of the same words, in any form and order, is a
// warning. If page is nil, ranked search is not available, and nobody is cleared.
func (v *Verdict) Rank(page *readmodel.RankedPage) {
	words := v.words
	if v.words = ""; words == "" {
		return
	}
	if page == nil {
		v.Value, v.Reason = Unchecked, NotNow
		return
	}
	f := Finding{Name: words, Value: Caution, Reason: Inflected}
	for _, hit := range page.Hits {
		switch all, some := namedBy(&hit, words); {
		case page.Relaxed:
		case all:
			f.Hits = append(f.Hits, Hit{hit.Row, false, words})
		case some && len(v.Others) < maxOthers:
			v.Others = append(v.Others, hit.Row)
		}
	}
	if len(f.Hits) > 0 {
		sortHits(f.Hits)
		f.Hits = f.Hits[:min(len(f.Hits), readmodel.MaxGroup)]
		for i := range v.Findings {
			if v.Findings[i].Name == words {
				v.Findings[i] = f
			}
		}
		v.Value, v.Reason, v.Others = Caution, Inflected, nil
		return
	}
	v.Spellings = page.Suggestions[:min(len(page.Suggestions), maxOthers-len(v.Others))]
}

// namedBy reports whether the name of a hit has as many words as were asked, and all of them matched,
// and whether all words that were asked are in the name.
func namedBy(hit *readmodel.RankedHit, asked string) (all, some bool) {
	name, _, err := hit.Row.Text()
	if err != nil {
		return false, false
	}
	matched := map[int]bool{}
	starts := 0
	for _, m := range hit.Matches {
		if m.Field == readmodel.InName {
			starts++
			for at := m.Start; at < m.End; at++ {
				matched[at] = true
			}
		}
	}
	at, whole := 0, true
	for _, r := range name {
		whole = whole && (matched[at] || !lookalike.IsWordly(r))
		at++
	}
	n := len(words(asked))
	return whole && n == len(words(name)) && utf8.RuneCountInString(name) > 0, starts >= n
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !lookalike.IsWordly(r) })
}
