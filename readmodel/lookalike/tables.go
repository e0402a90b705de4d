package lookalike

import (
	_ "embed" // the table
	"strconv"
	"strings"
	"sync"
	"unicode"
)

//go:embed unicode/confusables.txt
var confusables string

// prototypes returns the prototype of each code point that looks like another. The first call takes 3 ms.
var prototypes = sync.OnceValue(func() map[rune]string { return parseConfusables(confusables) })

// parseConfusables reads lines such as "0430 ;	0061 ;	MA	# …": source, prototype, and class.
func parseConfusables(file string) map[rune]string {
	all := map[rune]string{}
	for line := range strings.Lines(file) {
		source, rest, _ := strings.Cut(line, ";")
		prototype, _, isEntry := strings.Cut(rest, ";")

		if isEntry && line[0] != '#' {
			all[parseRunes(source)[0]] = string(parseRunes(prototype))
		}
	}
	return all
}

func parseRunes(hex string) (runes []rune) {
	for digits := range strings.FieldsSeq(hex) {
		n, err := strconv.ParseUint(digits, 16, 21)
		if err != nil {
			panic(err) // the file is part of the program
		}
		runes = append(runes, rune(n))
	}
	return runes
}

// IsInvisible reports whether r has the property Default_Ignorable_Code_Point, and so is displayed as
// nothing. The computation is the one in Unicode's DerivedCoreProperties.txt.
func IsInvisible(r rune) bool {
	if r < 0xad { // the first invisible character
		return false
	}

	isAnnotation := r >= 0xfff9 && r <= 0xfffb
	isHieroglyphFormat := r >= 0x13430 && r <= 0x13440
	isVisible := isAnnotation || isHieroglyphFormat || unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector) && !isVisible
}
