package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/text/encoding/charmap"
)

// entry is a line of a .dic file: a word, and the flags of its affix rules.
type entry struct {
	word  string
	flags string
}

// affix is a rule of an .aff file: the ending that it removes from a word that fits its condition,
// and the replacement.
type affix struct {
	strip, add string
	condition  []class
}

// class is a set of letters, or its complement, or ("." in the file) all letters.
type class struct {
	letters string
	not     bool
}

func (c class) has(r rune) bool { return strings.ContainsRune(c.letters, r) != c.not }

// affixes are the rules of an .aff file, by flag.
type affixes struct {
	suffixes map[rune][]affix
	negating map[rune]bool // prefixes "nie": the only one that there is
}

// readAffixes reads an .aff file. An unknown directive is an error, since the forms would be wrong.
func readAffixes(r io.Reader) (affixes, error) {
	a := affixes{map[rune][]affix{}, map[rune]bool{}}
	lines := bufio.NewScanner(charmap.ISO8859_2.NewDecoder().Reader(r))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		switch {
		case len(f) == 0, len(f) == 2 && f[0] == "SET" && f[1] == "ISO8859-2", f[0] == "TRY", f[0] == "MAP", f[0] == "REP": // directives for spelling only
		case len(f) == 4 && f[2] == "Y": // a header
		case len(f) == 5 && f[0] == "SFX":
			condition, err := readCondition(f[4])
			if err != nil {
				return a, err
			}
			flag := []rune(f[1])[0]
			a.suffixes[flag] = append(a.suffixes[flag], affix{orEmpty(f[2]), orEmpty(f[3]), condition})
		case len(f) == 5 && f[0] == "PFX" && f[2] == "0" && f[3] == "nie" && f[4] == ".":
			a.negating[[]rune(f[1])[0]] = true
		default:
			return a, fmt.Errorf("affixes: %q is not understood", lines.Text())
		}
	}
	return a, lines.Err()
}

func orEmpty(s string) string {
	if s == "0" {
		return ""
	}
	return s
}

func readCondition(s string) (condition []class, err error) {
	for s != "" {
		if s[0] == '.' {
			condition, s = append(condition, class{not: true}), s[1:]
			continue
		}
		if s[0] == '[' {
			letters, rest, ok := strings.Cut(s[1:], "]")
			if !ok {
				return nil, fmt.Errorf("affixes: condition %q", s)
			}
			letters, not := strings.CutPrefix(letters, "^")
			condition, s = append(condition, class{letters, not}), rest
			continue
		}
		letter := []rune(s)[0]
		condition, s = append(condition, class{letters: string(letter)}), s[len(string(letter)):]
	}
	return condition, nil
}

// apply makes a form of a word, given also as letters. ok is false if the rule does not apply to
// it.
func (a *affix) apply(word string, letters []rune) (form string, ok bool) {
	if len(letters) < len(a.condition) || !strings.HasSuffix(word, a.strip) {
		return "", false
	}
	end := letters[len(letters)-len(a.condition):]
	for i, c := range a.condition {
		if !c.has(end[i]) {
			return "", false
		}
	}
	return word[:len(word)-len(a.strip)] + a.add, true
}

// forms calls f with every form of an entry, except those with the prefix "nie", and the form's
// flag, which is 0 for the entry itself.
func (a *affixes) forms(e entry, f func(form string, flag rune)) {
	f(e.word, 0)
	letters := []rune(e.word)
	for _, flag := range e.flags {
		for i := range a.suffixes[flag] {
			if form, ok := a.suffixes[flag][i].apply(e.word, letters); ok {
				f(form, flag)
			}
		}
	}
}

// readEntries reads a .dic file.
func readEntries(r io.Reader) (entries []entry, err error) {
	text, err := io.ReadAll(charmap.ISO8859_2.NewDecoder().Reader(r))
	if err != nil {
		return nil, err
	}
	first := true
	for line := range bytes.Lines(text) {
		if word, flags, _ := strings.Cut(strings.TrimSpace(string(line)), "/"); !first && word != "" {
			entries = append(entries, entry{word, flags})
		}
		first = false // the number of entries
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(a.word, b.word) })
	return entries, nil
}
