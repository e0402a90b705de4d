package main

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// dictionary is the content of a pair of .aff and .dic files.
type dictionary struct {
	affixes affixes
	entries []entry

	verbs map[string][]string // by their forms
	nouns map[string]bool     // the entries that have the flag of most declensions
	made  map[string]bool     // the forms that rules make
	bare  map[string]bool     // the entries without flags
}

func newDictionary(a affixes, entries []entry) *dictionary {
	d := &dictionary{a, entries, map[string][]string{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, e := range entries {
		if e.flags == "" {
			d.bare[e.word] = true
			continue
		}
		d.nouns[e.word] = strings.ContainsRune(e.flags, 'N')
		a.forms(e, func(form string, flag rune) {
			d.made[form] = d.made[form] || flag != 0
			if e.isVerb() {
				d.verbs[form] = append(d.verbs[form], e.word)
			}
		})
	}
	return d
}

// isVerb reports whether an entry is an infinitive: it has a flag of conjugations.
func (e entry) isVerb() bool {
	return (strings.HasSuffix(e.word, "ć") || strings.HasSuffix(e.word, "c")) && strings.ContainsAny(e.flags, "BFGHIJ")
}

// isAdjective reports whether an entry has the flag of adjectives.
func (e entry) isAdjective() bool { return strings.ContainsRune(e.flags, 'x') }

// lemmas returns the lemmas of an entry. Usually that is the entry itself. For entries that are
// forms of others, it is the verbs of a participle, or the adjective or noun of a form. An entry
// that is only a form of another one has none.
func (d *dictionary) lemmas(e entry) []string {
	switch {
	case e.flags == "" && d.made[e.word]:
		return nil
	case e.isAdjective():
		if verbs := d.verbsOf(e.word); verbs != nil {
			return slices.Clone(verbs)
		}
	case e.flags == "":
		adjective := d.adjective(e.word)
		if verbs := d.verbsOf(adjective); verbs != nil {
			return slices.Clone(verbs)
		}
		return []string{d.noun(adjective)}
	}
	return []string{e.word}
}

// verbsOf returns the verbs of a participle: for oszukując and oszukujący, the verbs with the form
// oszukują; for oszukawszy, oszukał; for wysłany, wysłano.
func (d *dictionary) verbsOf(participle string) []string {
	for _, end := range [...]struct{ of, is string }{{"ący", "ą"}, {"ąc", "ą"}, {"wszy", "ł"}, {"ny", "no"}, {"ty", "to"}} {
		if stem, ok := strings.CutSuffix(participle, end.of); ok {
			if verbs := d.verbs[stem+end.is]; verbs != nil {
				return verbs
			}
		}
	}
	return nil
}

// adjective returns the first form of an adjective whose forms are all entries, or the word itself.
func (d *dictionary) adjective(word string) string {
	for _, ending := range [...]string{"ego", "emu", "ymi", "ych", "ej", "ym", "a", "ą", "e"} {
		stem, ok := strings.CutSuffix(word, ending)
		if ok && d.bare[stem+"y"] && d.bare[stem+"ego"] && d.bare[stem+"ych"] {
			return stem + "y"
		}
	}
	return word
}

// noun returns the noun of a form in another declension, such as tokenu next to tokena, or the word
// itself.
func (d *dictionary) noun(word string) string {
	for _, ending := range [...]string{"owi", "em", "owie", "u", "a"} {
		if stem, ok := strings.CutSuffix(word, ending); ok && utf8.RuneCountInString(stem) > 2 && d.nouns[stem] {
			return stem
		}
	}
	return word
}

// forms returns the lemmas of every form, all in lower case. A word with the prefix "nie" is a
// different word.
func (d *dictionary) forms() map[string][]string {
	forms, of := map[string][]string{}, map[string][]string{} // by lemma
	add := func(form string, lemmas []string) {
		for _, lemma := range lemmas {
			if !slices.Contains(forms[form], lemma) {
				forms[form] = append(forms[form], lemma)
				of[lemma] = append(of[lemma], form)
			}
		}
	}
	for _, e := range d.entries {
		lemmas := d.lemmas(e)
		negated := make([]string, len(lemmas))
		for i, lemma := range lemmas {
			lemmas[i] = strings.ToLower(lemma)
			negated[i] = "nie" + lemmas[i]
		}
		if lemmas == nil {
			continue
		}
		isNegated := strings.ContainsFunc(e.flags, func(flag rune) bool { return d.affixes.negating[flag] })
		d.affixes.forms(e, func(form string, _ rune) {
			form = strings.ToLower(form)
			add(form, lemmas)
			if isNegated {
				add("nie"+form, negated)
			}
		})
	}
	for _, lemma := range slices.Sorted(maps.Keys(of)) {
		if withinAnother(lemma, of[lemma], forms) {
			for _, form := range of[lemma] {
				forms[form] = slices.DeleteFunc(forms[form], func(l string) bool { return l == lemma })
			}
		}
	}
	return forms
}

// withinAnother reports whether every form of a lemma is also a form of another lemma: zakupy is
// within zakup, and potwierdzenie within potwierdzić. A query for the other lemma then already
// covers it.
func withinAnother(lemma string, its []string, forms map[string][]string) bool {
	others := slices.DeleteFunc(slices.Clone(forms[its[0]]), func(l string) bool { return l == lemma })
	for _, form := range its[1:] {
		others = slices.DeleteFunc(others, func(l string) bool { return !slices.Contains(forms[form], l) })
	}
	return len(others) > 0
}
