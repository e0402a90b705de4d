package site

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/casefold"
	"example.org/registry/readmodel/lookalike"
	markdown "example.org/registry/readmodel/reason"
)

// why returns, in Polish, how a name differs from another that looks like it.
func why(name, other string) string {
	w := lookalike.Explain(name, other)
	var reasons []string
	for _, l := range w.Letters[:min(len(w.Letters), 3)] {
		reasons = append(reasons, letter(l, name))
	}
	for _, l := range w.Marks[:min(len(w.Marks), 3)] {
		marked, plain := string(l.Rune), l.LooksLike
		if !strings.Contains(folded(name), marked) {
			marked, plain = plain, marked
		}
		reasons = append(reasons, "„"+marked+"” zamiast „"+plain+"”")
	}
	if w.Hidden {
		reasons = append(reasons, "w jednej z nazw są niewidoczne znaki")
	}
	if len(reasons) == 0 {
		if folded(name) == folded(other) {
			return "Różnica: litery innego kroju albo szerokości."
		}
		return "Wygląda prawie tak samo: różnice są zaznaczone."
	}
	return "Różnica: " + strings.Join(reasons, "; ") + "."
}

// letter says which letter replaces which, and its position, which is hard to see.
func letter(l lookalike.Letter, name string) string {
	kind := ""
	switch {
	case '0' <= l.Rune && l.Rune <= '9':
		return fmt.Sprintf("zamiast litery „%s” jest cyfra „%c”%s", l.LooksLike, l.Rune, position(name, l.Rune))
	case lookalike.Script(l.Rune) == "Cyrillic":
		kind = " z cyrylicy"
	case lookalike.Script(l.Rune) == "Greek":
		kind = " z alfabetu greckiego"
	}
	if kind == "" {
		return fmt.Sprintf("zamiast „%s” jest „%c”%s", l.LooksLike, l.Rune, position(name, l.Rune))
	}
	return fmt.Sprintf("zamiast zwykłego „%s” jest „%c”%s%s", l.LooksLike, l.Rune, kind, position(name, l.Rune))
}

// position returns the position of a letter in a name, as in " (4. znak)", or "" if it is in the
// other name.
func position(name string, r rune) string {
	at := strings.IndexRune(name, r)
	if at < 0 {
		return ""
	}
	return fmt.Sprintf(" (%d. znak)", utf8.RuneCountInString(name[:at])+1)
}

// markDifferences returns both names as HTML, with marks on the characters that the other lacks at
// this position. Invisible characters are named, since their mark would be invisible, too.
func markDifferences(a, b string) (template.HTML, template.HTML) {
	ra, rb := []rune(a), []rune(b)
	same := common(ra, rb)
	return marked(ra, same[0]), marked(rb, same[1])
}

// common reports for each character of two names whether it belongs to a longest common
// subsequence, ignoring case.
func common(a, b []rune) (same [2][]bool) {
	fa, fb := foldedRunes(a), foldedRunes(b)
	// length[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if fa[i] == fb[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	same = [2][]bool{make([]bool, len(a)), make([]bool, len(b))}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case fa[i] == fb[j]:
			same[0][i], same[1][j] = true, true
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return same
}

func foldedRunes(name []rune) []string {
	all := make([]string, len(name))
	for i, r := range name {
		all[i] = folded(string(r))
	}
	return all
}

// folded returns a text in the form that a search compares.
func folded(s string) string { return casefold.String(norm.NFKC.String(s)) }

func areMarks(rs []rune) bool {
	return !slices.ContainsFunc(rs, func(r rune) bool { return !unicode.In(r, unicode.Mn, unicode.Me) })
}

func marked(name []rune, same []bool) template.HTML {
	var b strings.Builder
	for i, r := range name {
		if !same[i] && (i == 0 || same[i-1]) {
			b.WriteString("<mark>")
		}
		switch {
		case !same[i] && lookalike.Hidden(string(r)) || unicode.Is(unicode.Bidi_Control, r):
			fmt.Fprintf(&b, "[U+%04X]", r)
		case i < markdown.MaxMarks || !areMarks(name[i-markdown.MaxMarks:i+1]):
			b.WriteString(template.HTMLEscapeString(string(r)))
		}
		if !same[i] && (i+1 == len(name) || same[i+1]) {
			b.WriteString("</mark>")
		}
	}
	return template.HTML(b.String())
}
