package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/text/encoding/charmap"

	"example.org/registry/readmodel/terms/lexicon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const aff = `SET ISO8859-2
TRY aioe
MAP 1
MAP aą
REP 1
REP ź zi

PFX b Y 1
PFX b   0   nie .

SFX N Y 3
SFX N   0   a   [^aeg]
SFX N   0   em  [^aeg]
SFX N   a   y   a

SFX B Y 4
SFX B   ć   ł   ać
SFX B   ć   ją  ać
SFX B   ć   no  ać
SFX B   iść  szedł .

SFX x Y 3
SFX x   y   a   y
SFX x   y   ego y
SFX x   y   ych y
`

const dic = `19
Kot/N
płot/N
płotu
zakup/N
zakupem
oszukać/B
oszukany/xb
oszukawszy
oszukując
oszukujący/x
pewny/xb
niepewny/x
skradziony
skradziona
skradzionego
skradzionych
żółw
kotem
gra/N
grać/B
`

// dictionaryIn writes the files of a dictionary into a new folder.
func dictionaryIn(t *testing.T, aff, dic string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"pl_PL.aff": aff, "pl_PL.dic": dic} {
		text, err := charmap.ISO8859_2.NewEncoder().String(text)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// generate makes the lexicon of a dictionary.
func generate(t *testing.T, dir string) (*lexicon.Lexicon, []byte) {
	t.Helper()
	out := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(out, "testdata"), 0o700))
	require.NoError(t, run(dir, "a package 1.0", out))
	file, err := os.ReadFile(filepath.Join(out, "lexicon.fst"))
	require.NoError(t, err)
	l, err := lexicon.Open(file)
	require.NoError(t, err)
	return l, file
}

// TestLexicon: what the rules make of the words, in lower case; what is listed beside its word is
// of that word.
func TestLexicon(t *testing.T) {
	dir := dictionaryIn(t, aff, dic)
	l, file := generate(t, dir)
	if want := "a package 1.0, SHA-256 of pl_PL.aff and pl_PL.dic "; !strings.HasPrefix(l.Source(), want) {
		t.Errorf("source %q", l.Source())
	}
	for form, want := range map[string]string{
		"kot": "kot", "kota": "kot", "kotem": "kot", "koty": "", // the entry "kotem" is a form of the name
		"płotem": "płot", "płotu": "płot",
		"zakupem":  "zakup",
		"oszukają": "oszukać", "oszukany": "oszukać", "oszukanego": "oszukać", "oszukawszy": "oszukać",
		"oszukując": "oszukując", "oszukujący": "oszukujący", // of a verb that is not there
		"nieoszukanych": "nieoszukać",
		"pewna":         "pewny", "niepewna": "niepewny", "niepewny": "niepewny",
		"skradzionego": "skradziony", "skradziona": "skradziony",
		"żółw": "żółw", "gra": "gra", "gry": "gra", "grał": "grać", "grają": "grać",
	} {
		if got := strings.Join(l.Lemmas(nil, form), " "); got != want {
			t.Errorf("%s is of %q, want %q", form, got, want)
		}
	}
	if _, again := generate(t, dir); !slices.Equal(file, again) {
		t.Error("another time it is another lexicon")
	}
}

// TestLinked: participles and forms that are entries of their own.
func TestLinked(t *testing.T) {
	l, _ := generate(t, dictionaryIn(t, aff, "9\noszukiwać/B\noszukając\noszukać/B\noszukający/x\nkraść/B\ngrający\ngrać/B\ngra\nzakup/N\n"))
	for form, want := range map[string]string{"oszukając": "oszukać", "oszukającego": "oszukać", "grający": "grać", "gra": "gra"} {
		if got := strings.Join(l.Lemmas(nil, form), " "); got != want {
			t.Errorf("%s is of %q, want %q", form, got, want)
		}
	}
}

// TestForms: an entry without flags that a rule makes of a word is of that word alone, whatever
// else it looks like.
func TestForms(t *testing.T) {
	const aff = "SET ISO8859-2\nSFX K Y 1\nSFX K ek kowi ek\nSFX N Y 1\nSFX N 0 em .\n"
	l, _ := generate(t, dictionaryIn(t, aff, "4\nranek/K\nrank/N\nrankowi\nranku\n"))
	for form, want := range map[string]string{"rankowi": "ranek", "ranku": "rank"} {
		if got := strings.Join(l.Lemmas(nil, form), " "); got != want {
			t.Errorf("%s is of %q, want %q", form, got, want)
		}
	}
}

// TestWithin: a lemma whose forms are all forms of another is that one; of two that have the
// same forms one is left.
func TestWithin(t *testing.T) {
	const aff = "SET ISO8859-2\nSFX N Y 2\nSFX N 0 y .\nSFX N 0 ów .\nSFX P Y 1\nSFX P y ów y\nSFX Q Y 1\nSFX Q y 0 y\n"
	l, _ := generate(t, dictionaryIn(t, aff, "3\nzakup/N\nzakupy/P\nbut/N\nbuty/PQ\n"))
	for form, want := range map[string]string{"zakup": "zakup", "zakupy": "zakup", "zakupów": "zakup", "buty": "buty", "but": "buty"} {
		if got := strings.Join(l.Lemmas(nil, form), " "); got != want {
			t.Errorf("%s is of %q, want %q", form, got, want)
		}
	}
}

// TestNotUnderstood: a file of another form is an error, never a wrong lexicon.
func TestNotUnderstood(t *testing.T) {
	for name, c := range map[string]struct{ aff, dic, want string }{
		"encoding":  {"SET UTF-8\n", dic, "not understood"},
		"directive": {"SET ISO8859-2\nCOMPLEXPREFIXES\n", dic, "not understood"},
		"prefix":    {"SET ISO8859-2\nPFX b Y 1\nPFX b 0 naj .\n", dic, "not understood"},
		"condition": {"SET ISO8859-2\nSFX N Y 1\nSFX N 0 a [^a\n", dic, "condition"},
	} {
		if err := run(dictionaryIn(t, c.aff, c.dic), "p", t.TempDir()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := run(dictionaryIn(t, aff, dic), "", t.TempDir()); err == nil {
		t.Error("without a package")
	}
	if err := run(t.TempDir(), "p", t.TempDir()); err == nil {
		t.Error("without files")
	}
}

// TestConditions: sets, negated sets and letters, at the end of a word.
func TestConditions(t *testing.T) {
	forms := map[string]bool{}
	a, err := readAffixes(strings.NewReader("SET ISO8859-2\nSFX A Y 3\nSFX A a y [^k]a\nSFX A a i [kg]a\nSFX A 0 x .\n"))
	require.NoError(t, err)
	for _, word := range []string{"karta", "paczka", "a"} {
		a.forms(entry{word, "A"}, func(form string, _ rune) { forms[form] = true })
	}
	got := strings.Join(slices.Sorted(maps.Keys(forms)), " ")
	if want := "a ax karta kartax karty paczka paczkax paczki"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
