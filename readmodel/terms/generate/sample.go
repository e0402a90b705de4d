package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
)

// drawn is the number of entries of each kind in the sample.
const drawn = 60

// sample writes some words with all their forms, a line each: the kind, the lemma, the forms. It
// draws the words by a hash, so another version of the dictionary gives mostly the same words.
func (d *dictionary) sample(w io.Writer, source string) {
	fmt.Fprintf(w, "# Made by generate: %s\n", source)
	for _, kind := range [...]struct {
		name string
		is   func(entry) bool
	}{
		{"verb", entry.isVerb},
		{"adjective", entry.isAdjective},
		{"noun", func(e entry) bool { return !e.isVerb() && strings.ContainsAny(e.flags, "MNPRUV") }},
	} {
		var of []entry
		for _, e := range d.entries {
			if lemmas := d.lemmas(e); kind.is(e) && len(lemmas) == 1 && lemmas[0] == e.word && strings.ToLower(e.word) == e.word {
				of = append(of, e)
			}
		}
		slices.SortStableFunc(of, func(a, b entry) int { return int(hash(a.word)) - int(hash(b.word)) })
		of = of[:min(drawn, len(of))]
		slices.SortFunc(of, func(a, b entry) int { return strings.Compare(a.word, b.word) })
		for _, e := range of {
			var forms []string
			d.affixes.forms(e, func(form string, flag rune) {
				if flag != 0 && form != e.word {
					forms = append(forms, form)
				}
			})
			slices.Sort(forms)
			fmt.Fprintf(w, "%s %s %s\n", kind.name, e.word, strings.Join(slices.Compact(forms), " "))
		}
	}
}

func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, s)
	return h.Sum32()
}
