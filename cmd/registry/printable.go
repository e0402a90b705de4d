package main

import (
	"fmt"
	"strings"
	"unicode"
)

// printable makes text that anybody may have written fit for a terminal: what is no letter, mark, number,
// punctuation, symbol or plain space, line breaks and characters that turn the direction of writing
// included, is written as its number.
func printable(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	var s strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsPrint(r):
			s.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&s, `\U%08x`, r)
		default:
			fmt.Fprintf(&s, `\u%04x`, r)
		}
	}
	return s.String()
}
