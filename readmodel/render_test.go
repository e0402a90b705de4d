package readmodel

import (
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

func TestFold(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"abc 1", "abc 1"}, {"ABC", "abc"}, {"a  b\t\nc", "a b c"}, {" a ", " a "}, {"ŁÓDŹ", "łódź"},
		{"Straße", "strasse"}, {"STRASSE", "strasse"}, {"ﬁ", "fi"}, {"ＡＢ", "ab"}, {"²", "2"}, {"İ", "i̇"}, {"ΣΑΣ", "σασ"}, {"ς", "σ"},
		{"e\u0301", "é"}, {"a\u00a0\u2003b", "a b"}, {"𝐀", "a"}, {"\u1680x", " x"}, {"a\vb", "a b"},
	} {
		if got := fold(c.in); got != c.want {
			t.Errorf("Fold(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// TestFoldParts: folding leaves no white space but single spaces, whatever it is given, so that the
// newline between the fields of a row is in no search.
func TestFoldParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := fold(rapid.String().Draw(t, "text"))
		if strings.Contains(s, "\n") || strings.Contains(s, "  ") {
			t.Fatalf("folded text has white space other than single spaces: %q", s)
		}
	})
}

// TestPolishOrder is the contract's alphabetical order: ą after a, ł after l, ż after ź, case
// ignored, punctuation counted, digits as characters; ties by _id.
func TestPolishOrder(t *testing.T) {
	want := []string{"", " x", "_x", "-x", "!x", "😀", "€", "1", "10", "2", "a", "a b", "a-b", "aa", "ab", "az", "ą", "ąa", "b", "c", "ć", "d", "e", "ę", "l", "lz", "ł", "łą", "m", "n", "ń", "o", "ó", "p", "s", "ś", "z", "zz", "ź", "ż", "żaba"}
	col := collate.New(language.Polish, collate.IgnoreCase)
	for i := range len(want) - 1 {
		a, b := rowNamed(want[i], "1"), rowNamed(want[i+1], "0")
		if !before(a, b) {
			t.Errorf("%q does not come before %q (collator: %d)", want[i], want[i+1], col.CompareString(want[i], want[i+1]))
		}
	}
	if !before(rowNamed("ŻABA", "1"), rowNamed("żaba", "2")) || !before(rowNamed("żaba", "1"), rowNamed("ŻABA", "2")) {
		t.Error("case decides, not the id")
	}
}

// TestPolishSymbols: symbols that stand for letters tie with them, and so do the same characters written
// differently.
func TestPolishSymbols(t *testing.T) {
	for symbol, letters := range map[string]string{"Sklep™": "skleptm", "ⓜaja": "maja", "№ 1": "no 1"} {
		if a, b := rowNamed(symbol, "1"), rowNamed(letters, "1"); a.collation != b.collation {
			t.Errorf("%q does not tie with %q, whose letters it has", symbol, letters)
		}
	}
	if a, b := rowNamed("a\u0301\u0328", "1"), rowNamed("\u0105\u0301", "1"); a.collation != b.collation {
		t.Error("canonically equal names do not tie")
	}
}

// before is the order az of two rows.
func before(a, b *Row) bool {
	return isLessByCollation(itemOf(byName.sortKey(a, 0), a), itemOf(byName.sortKey(b, 0), b))
}

func rowNamed(name, id string) *Row {
	return NewRenderer().Render(1, events.Entry{Revision: 1, List: "scammers", EntryID: id, ChatID: "1", Name: name}).row
}

// TestPublicEntry: PublicEntry has exactly the members of the JSON, in their order.
func TestPublicEntry(t *testing.T) {
	r := NewRenderer()
	rapid.Check(t, func(t *rapid.T) {
		row := r.Render(1, eventstest.AnyEntry().Draw(t, "entry")).row
		if b, err := jsonv2.Marshal(row.Public()); err != nil || string(b) != row.JSON() {
			t.Fatalf("PublicEntry is %s, the row %s, %v", b, row.JSON(), err)
		}
	})
}
