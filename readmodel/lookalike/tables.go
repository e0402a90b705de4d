package lookalike

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

//go:embed tables.txt
var tablesFile string

// tables is the content of tables.txt.
type tables struct {
	version    string // of Unicode
	prototypes map[rune]string
	ignorable  [][2]rune // first and last of each range, in order
}

// read reads tables.txt once, when the first key is made.
var read = sync.OnceValue(func() *tables { return parse(tablesFile) })

func parse(file string) *tables {
	t := &tables{prototypes: map[rune]string{}}
	for line := range strings.Lines(file) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "version":
			t.version = rest
		case "prototype":
			target, sources, _ := strings.Cut(rest, " = ")
			for _, source := range codePoints(sources) {
				t.prototypes[source] = string(codePoints(target))
			}
		case "ignorable":
			t.ignorable = append(t.ignorable, [2]rune(codePoints(rest)))
		}
	}
	return t
}

func codePoints(hex string) (rs []rune) {
	for s := range strings.FieldsSeq(hex) {
		n, err := strconv.ParseUint(s, 16, 21)
		if err != nil {
			panic(err) // the file is part of the program
		}
		rs = append(rs, rune(n))
	}
	return rs
}

// prototype returns the prototype of r, or "" if r is its own.
func prototype(r rune) string { return read().prototypes[r] }

// Invisible reports whether r is displayed as nothing.
func Invisible(r rune) bool { return r >= 0xad && ignorable(r) }

// ignorable reports whether r has the property Default_Ignorable_Code_Point, and so is displayed as
// nothing.
func ignorable(r rune) bool {
	for _, ends := range read().ignorable {
		if r <= ends[1] {
			return r >= ends[0]
		}
	}
	return false
}
