package ranked

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/vellum/levenshtein"

	"example.org/registry/readmodel"
)

// The bounds of suggestions (httpapi/CONTRACT.md#ranked).
const (
	maxSuggestions = 5
	oneEdit        = 5 // letters of a word from which one edit is allowed
	twoEdits       = 9
	// maxSpellings bounds the spellings of a word that are tried, and maxTries the questions.
	maxSpellings = 24
	maxTries     = 32
)

// edits is how many edits a word may be away from another spelling.
func edits(plain string) int {
	switch n := utf8.RuneCountInString(plain); {
	case n >= twoEdits:
		return 2
	case n >= oneEdit:
		return 1
	default:
		return 0
	}
}

// spelling is a word of the dictionary near one of the question.
type spelling struct {
	folded    string
	edits     int
	documents uint64 // that have it
}

// suggest returns other spellings of the question that find something in verified entries. One word of the question is
// replaced, and all those that nobody has.
func (s *search) suggest(e *evaluation) ([]string, error) {
	var unknown []int
	for n := range e.words {
		if !slices.ContainsFunc(e.found, func(f []found) bool { return !f[n].any.IsEmpty() }) {
			unknown = append(unknown, n)
		}
	}
	var tries [][]string // the words' spellings
	asWritten := make([]string, len(e.words))
	for n, w := range e.words {
		asWritten[n] = w.folded
	}
	if len(unknown) > 0 {
		tries = [][]string{asWritten}
		for _, n := range unknown {
			near, err := s.near(&e.words[n])
			if err != nil || len(near) == 0 {
				return nil, err
			}
			tries = replaced(tries, n, near)
		}
	} else {
		for n := range e.words {
			near, err := s.near(&e.words[n])
			if err != nil {
				return nil, err
			}
			tries = append(tries, replaced([][]string{asWritten}, n, near)...)
		}
	}
	return s.successful(tries[:min(maxTries, len(tries))])
}

// replaced returns every try with every spelling in place of word n: the nearest spellings first.
func replaced(tries [][]string, n int, near []spelling) (all [][]string) {
	for _, sp := range near {
		for _, t := range tries {
			t = slices.Clone(t)
			t[n] = sp.folded
			all = append(all, t)
		}
	}
	return all[:min(maxTries, len(all))]
}

// successful returns the tries that find something in verified entries of the question's list and proofs.
func (s *search) successful(tries [][]string) (suggestions []string, err error) {
	q := *s.query
	q.Status = readmodel.StatusVerified
	for _, t := range tries {
		if len(suggestions) == maxSuggestions {
			break
		}
		text := strings.Join(t, " ")
		if slices.Contains(suggestions, text) {
			continue
		}
		words, err := s.words(text)
		if err != nil {
			return nil, err
		}
		e, err := s.evaluate(words, &q)
		if err != nil {
			return nil, err
		}
		if e.page.Total > 0 {
			suggestions = append(suggestions, text)
		}
	}
	return suggestions, nil
}

// near returns the spellings near a word, the nearest and most frequent first.
func (s *search) near(w *word) ([]spelling, error) {
	distance := edits(w.plain)
	if distance == 0 || len(w.plain) > maxWord || allDigits(w.plain) {
		return nil, nil
	}
	builder, err := levenshtein.NewLevenshteinAutomatonBuilder(uint8(distance), false)
	if err != nil {
		return nil, err
	}
	dfa, err := builder.BuildDfa(w.plain, uint8(distance))
	if err != nil {
		return nil, err
	}
	found := map[string]*spelling{}
	add := func(key string, documents uint64) error {
		if allDigits(key) {
			return nil
		}
		if sp := found[key]; sp != nil {
			sp.documents += documents
			return nil
		}
		plain, folded, marked := strings.Cut(key, "\x00")
		if !marked {
			folded = plain
		}
		ok, d := dfa.MatchAndDistance(plain)
		if !ok {
			return errors.New("dictionary of words: a word that is not near")
		}
		if d > 0 {
			found[key] = &spelling{folded, int(d), documents}
		}
		return nil
	}
	for _, field := range []string{wordField, scoredFields()[inName], scoredFields()[inReason]} {
		if err := s.eachWord(field, nil, nil, plainAutomaton{dfa}, add); err != nil {
			return nil, err
		}
	}
	near := make([]spelling, 0, len(found))
	for sp := range maps.Values(found) {
		near = append(near, *sp)
	}
	slices.SortFunc(near, func(a, b spelling) int {
		return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(b.documents, a.documents), strings.Compare(a.folded, b.folded))
	})
	return near[:min(maxSpellings, len(near))], nil
}

// plainAutomaton lets the keys of the dictionary of words through of which the part before the zero byte is near.
type plainAutomaton struct{ near *levenshtein.DFA }

// anything is the state after the zero byte of a word that is near: the rest does not matter.
const anything = -1

// Start is part of segment.Automaton, as the other methods are.
func (a plainAutomaton) Start() int { return a.near.Start() }

// IsMatch reports whether a key may end in a state.
func (a plainAutomaton) IsMatch(state int) bool { return state == anything || a.near.IsMatch(state) }

// CanMatch reports whether a match may follow.
func (a plainAutomaton) CanMatch(state int) bool { return state == anything || a.near.CanMatch(state) }

// WillAlwaysMatch reports whether only matches follow.
func (a plainAutomaton) WillAlwaysMatch(state int) bool { return state == anything }

// Accept returns the state after a byte.
func (a plainAutomaton) Accept(state int, b byte) int {
	if state == anything || b == 0 && a.near.IsMatch(state) {
		return anything
	}
	return a.near.Accept(state, b)
}
