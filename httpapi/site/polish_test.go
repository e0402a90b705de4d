package site

import (
	"strings"
	"testing"
)

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{
		0: "0 wpisów", 1: "1 wpis", 2: "2 wpisy", 4: "4 wpisy", 5: "5 wpisów", 11: "11 wpisów", 12: "12 wpisów", 14: "14 wpisów",
		21: "21 wpisów", 22: "22 wpisy", 25: "25 wpisów", 101: "101 wpisów", 112: "112 wpisów", 122: "122 wpisy", 1480: "1480 wpisów",
		12345: "12 345 wpisów", 1000002: "1 000 002 wpisy",
	} {
		if got := strings.ReplaceAll(entryForms.count(n), "\u00a0", " "); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
