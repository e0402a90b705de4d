package verdict

import (
	"slices"
	"strings"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
)

// maxOthers is how many lines of other names and spellings a page shows where nothing was found.
const maxOthers = 3

// Words returns the name for which ranked search has to be asked next, before nobody was found, or "".
func (v *Verdict) Words() string {
	if len(v.words) == 0 {
		return ""
	}
	return v.words[0]
}

// Rank adds what ranked search found for Words. A name of the same words, in any form and order, is a
// warning. If page is nil, ranked search is not available, and nobody is cleared.
func (v *Verdict) Rank(page *readmodel.RankedPage) {
	words := v.Words()
	if words == "" {
		return
	}
	if v.words = v.words[1:]; page == nil {
		v.Value, v.Reason, v.words = Unchecked, NotNow, nil
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
			if name := v.Findings[i].Name; name != "" && strings.HasSuffix(words, name) { // labels apart
				v.Findings[i] = f
			}
		}
		v.Value, v.Reason, v.Others, v.Spellings, v.words = Caution, Inflected, nil, nil, nil
		return
	}
	if n := maxOthers - len(v.Others) - len(v.Spellings); n > 0 {
		v.Spellings = append(v.Spellings, page.Suggestions[:min(len(page.Suggestions), n)]...)
	}
}

// namedBy compares the name of a hit with the words that were asked. all: it has as many words, and each
// has matched or is one that was asked (ranked search ignores some words). some: all words that were
// asked are in the name.
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
	at := 0
	rest := strings.Map(func(r rune) rune { // the name without what matched
		if at++; matched[at-1] {
			return ' '
		}
		return r
	}, name)
	all = !slices.ContainsFunc(words(rest), func(w string) bool {
		return !slices.Contains(words(lookalike.Literal(asked)), lookalike.Literal(w))
	})
	n := len(words(asked))
	return all && n == len(words(name)) && n > 0, starts >= n
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !lookalike.IsWordly(r) })
}
