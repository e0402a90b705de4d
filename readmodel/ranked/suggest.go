package ranked

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/vellum/levenshtein"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/terms"
)

// The bounds of suggestions (httpapi/CONTRACT.md#ranked).
const (
	maxSuggestions = 5
	oneEdit        = 5 // minimum letters of a word for one edit
	twoEdits       = 9
	// maxSpellings bounds the spellings of a word that are tried, and maxTries the queries.
	maxSpellings = 24
	maxTries     = 32
	// maxReads bounds the entries that are read to find whether an entry has a spelling as written:
	// for one spelling, and for all together.
	maxReads    = 16
	maxAllReads = 256
	// maxKeys bounds the keys of dictionaries, and the documents that have them, that a query looks
	// at for all suggestions, and maxTermKeys those that differ from its words only in diacritics.
	// What strangers wrote decides how many there are.
	maxKeys     = 4000
	maxTermKeys = 400
)

// budget is how many more keys may be looked at.
type budget int

// spend reports whether one more may be.
func (b *budget) spend() bool {
	*b--
	return *b >= 0
}

// edits returns how many edits a word may differ from another spelling.
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

// spelling is a word of a dictionary near a word of the query.
type spelling struct {
	folded    string
	fields    []string // the dictionaries that have it
	key       string   // the same in each of them
	edits     int
	documents uint64 // number of documents that have it
}

// suggest returns other spellings of the query that find verified entries. If some of the words are
// in no entry, it replaces all of those, otherwise one word at a time.
func (s *search) suggest(e *evaluation) ([]string, error) {
	var unknown []int
	for n := range e.words {
		if e.have[n] == 0 {
			unknown = append(unknown, n)
		}
	}
	var tries [][]string // each with a spelling for every word
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
	return s.successful(e.words, tries[:min(maxTries, len(tries))])
}

// replaced returns every try with every spelling in place of word n, the nearest spellings first.
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

// successful returns the tries that find verified entries with the query's lists and proofs. If the
// query asks only for the risk list, it excludes legit.
func (s *search) successful(words []word, tries [][]string) (suggestions []string, err error) {
	q := *s.query
	withLegit := q.Status != readmodel.StatusRisk
	q.Status = readmodel.StatusVerified
	legit, _ := events.Legit.Index()
	for _, t := range tries {
		if len(suggestions) == maxSuggestions {
			break
		}
		text := s.respelled(words, t)
		if slices.Contains(suggestions, text) {
			continue
		}
		other, err := s.words(text, &s.forTries)
		if err != nil {
			return nil, err
		}
		if len(other) == 0 {
			continue // a stop word; names with digits can contain one
		}
		e, err := s.evaluate(other, &q)
		if err != nil {
			return nil, err
		}
		found := e.page.Total
		if !withLegit && (q.List == "" || q.List == events.Legit) {
			found -= e.page.Facets[legit]
		}
		if found > 0 {
			suggestions = append(suggestions, text)
		}
	}
	return suggestions, nil
}

// respelled returns the query with other spellings of some of its words, and the rest as typed.
func (s *search) respelled(words []word, spellings []string) string {
	question := []rune(s.query.Words)
	var b strings.Builder
	at := 0
	for n, w := range words {
		if spellings[n] != w.folded {
			b.WriteString(string(question[at:w.start]) + spellings[n])
			at = w.end
		}
	}
	b.WriteString(string(question[at:]))
	return b.String()
}

// near returns spellings near a word that verified entries have as written, the nearest and most
// frequent first.
func (s *search) near(w *word) ([]spelling, error) {
	distance := edits(w.plain)
	if distance == 0 || len(w.plain) > maxWord || allDigits(w.plain) {
		return nil, nil
	}
	builder, err := s.by.engine.automata(distance)
	if err != nil {
		return nil, err
	}
	dfa, err := builder.BuildDfa(w.plain, uint8(distance))
	if err != nil {
		return nil, err
	}
	found := map[string]*spelling{}
	for _, field := range []string{wordField, scoredFields()[inName], scoredFields()[inReason]} {
		add := func(key string, documents uint64) error {
			plain, folded, marked := strings.Cut(key, "\x00")
			if !marked {
				folded = plain
			}
			if sp := found[folded]; sp != nil {
				sp.documents += documents
				if sp.fields[len(sp.fields)-1] != field {
					sp.fields = append(sp.fields, field)
				}
				return nil
			}
			ok, d := dfa.MatchAndDistance(plain)
			if !ok {
				return errors.New("dictionary of words: unrelated word")
			}
			if d > 0 && !allDigits(plain) && isASCII(plain) { // words with marks are in the dictionary of words, without their marks
				found[folded] = &spelling{folded, []string{field}, key, int(d), documents}
			}
			return nil
		}
		if err := s.eachWord(&s.forNear, field, nil, nil, plainAutomaton{dfa}, add); err != nil {
			return nil, err
		}
	}
	var near []spelling
	for _, sp := range slices.SortedFunc(maps.Values(found), func(a, b *spelling) int {
		return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(b.documents, a.documents), strings.Compare(a.folded, b.folded))
	}) {
		written, err := s.isWritten(sp)
		if err != nil {
			return nil, err
		}
		if written {
			near = append(near, *sp)
		}
		if len(near) == maxSpellings || s.forNear < 0 {
			break
		}
	}
	return near, nil
}

// automata returns a builder of automata for a number of edits; a swap of two letters is one edit.
// It takes milliseconds to make.
func (e *Engine) automata(edits int) (*levenshtein.LevenshteinAutomatonBuilder, error) {
	kept := &e.builders[edits-1]
	if b := kept.Load(); b != nil {
		return b, nil
	}
	b, err := levenshtein.NewLevenshteinAutomatonBuilder(uint8(edits), true)
	if err == nil {
		kept.Store(b)
	}
	return b, err
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// isWritten reports whether a verified entry has a spelling as written. The dictionaries of terms
// also have words that no entry has: lemmas and stems. For a frequent spelling it reads only some
// of the entries.
func (s *search) isWritten(sp *spelling) (bool, error) {
	verified := *s.query
	verified.Status = readmodel.StatusVerified
	reads := 0
	for _, field := range sp.fields {
		for i := range s.parts {
			p := &s.parts[i]
			dictionary, err := p.Segment().Dictionary(field)
			if err != nil {
				return false, fmt.Errorf("dictionary: %w", err)
			}
			list, err := dictionary.PostingsList([]byte(sp.key), p.Deleted(), nil)
			if err != nil {
				return false, fmt.Errorf("postings of a spelling: %w", err)
			}
			for docs := list.Iterator(false, false, false, nil); ; {
				posting, err := docs.Next()
				if err != nil {
					return false, fmt.Errorf("postings of a spelling: %w", err)
				}
				if posting == nil {
					break
				}
				if !s.forNear.spend() {
					return false, nil
				}
				ref := p.refs[posting.Number()]
				if !s.view.Passes(ref, &verified) {
					continue
				}
				if field == wordField && !s.changed[ref] {
					return true, nil
				}
				if reads++; reads > maxReads || s.reads >= maxAllReads {
					return false, nil
				}
				s.reads++
				if has, err := s.hasWord(ref, sp.folded); has || err != nil {
					return has, err
				}
			}
		}
	}
	return false, nil
}

// hasWord reports whether the name or the reason of a row has a folded word.
func (s *search) hasWord(ref readmodel.RowRef, folded string) (bool, error) {
	name, reason, err := s.view.ShownAt(ref).Text()
	if err != nil {
		return false, err
	}
	tokens := s.analyzer.Tokens(s.analyzer.Tokens(nil, name), reason)
	return slices.ContainsFunc(tokens, func(t terms.Token) bool { return t.Folded == folded }), nil
}

// plainAutomaton accepts the keys of the dictionary of words whose part before the zero
// byte is near.
type plainAutomaton struct{ near *levenshtein.DFA }

// anything is the state after the zero byte of an accepted word; any rest matches.
const anything = -1

// Start implements segment.Automaton, as do the other methods.
func (a plainAutomaton) Start() int { return a.near.Start() }

// IsMatch reports whether a key may end in the state.
func (a plainAutomaton) IsMatch(state int) bool { return state == anything || a.near.IsMatch(state) }

// CanMatch reports whether a match can follow.
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
