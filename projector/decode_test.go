package projector

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzHeaderText: what a panic says fits a header.
func FuzzHeaderText(f *testing.F) {
	f.Add("runtime error:\r\nindex out of range")
	f.Add(strings.Repeat("ą", 300))
	f.Fuzz(func(t *testing.T, s string) {
		got := headerText(s)
		if len(got) > 180 || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f }) || !utf8.ValidString(got) {
			t.Errorf("%q became %q", s, got)
		}
	})
}
