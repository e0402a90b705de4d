package lexicon

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func made(t rapid.TB, lemmas map[string][]string) *Lexicon {
	var b bytes.Buffer
	left, err := Write(&b, "a test", lemmas)
	if err != nil || left > 0 {
		t.Fatal(left, err)
	}
	l, err := Open(b.Bytes())
	require.NoError(t, err)
	return l
}

// TestLemmas: the lemmas of a form as it is spelled, and all its spellings.
func TestLemmas(t *testing.T) {
	l := made(t, map[string][]string{
		"zadał": {"zadać"}, "żądał": {"żądać"}, "zada": {"zadać"}, "żąda": {"żądać"}, "zadali": {"zadać", "zadalić"},
		"ludzie": {"człowiek"}, "łódź": {"łódź"}, "łodzi": {"łódź"}, "a": {"a"}, "ą": {"ą"},
	})
	for form, want := range map[string][2]string{
		"zadał":  {"zadać", "zadał żądał"},
		"zadal":  {"", "zadał żądał"},
		"żadal":  {"", "żądał"},
		"zadali": {"zadalić zadać", "zadali"},
		"ludzie": {"człowiek", "ludzie"},
		"lodz":   {"", "łódź"},
		"łodzi":  {"łódź", "łodzi"},
		"a":      {"a", "a ą"},
		"ą":      {"ą", "ą"},
		"":       {"", ""},
		"Zadał":  {"", ""},
		"zad":    {"", ""},
		"zadał1": {"", ""},
		"éa":     {"", ""},
	} {
		got := [2]string{strings.Join(sorted(l.Lemmas(nil, form)), " "), strings.Join(sorted(l.Spellings(nil, form)), " ")}
		if got != want {
			t.Errorf("%q: %q, want %q", form, got, want)
		}
	}
	if l.Source() != "a test" {
		t.Errorf("source %q", l.Source())
	}
}

func sorted(s []string) []string { slices.Sort(s); return s }

// TestLeftOut: forms that a lexicon cannot have are counted.
func TestLeftOut(t *testing.T) {
	var b bytes.Buffer
	left, err := Write(&b, "", map[string][]string{"é": {"a"}, "a": {"é"}, "b": {"b"}, strings.Repeat("a", maxSpelled+1): {"a"}})
	if left != 3 || err != nil {
		t.Error(left, err)
	}
}

// TestDamaged: what is no lexicon is an error, or knows nothing, and never a panic.
func TestDamaged(t *testing.T) {
	for _, file := range []string{"", "\n\n", "x\n\nabc", "a\nb"} {
		if _, err := Open([]byte(file)); err == nil {
			t.Errorf("%q is a lexicon", file)
		}
	}
}

// TestTwin: a lexicon is the map that it was made from.
func TestTwin(t *testing.T) {
	word := rapid.StringOfN(rapid.SampledFrom([]rune("aąezźżlłkb")), 1, 5, -1)
	rapid.Check(t, func(t *rapid.T) {
		lemmas := rapid.MapOfN(word, rapid.SliceOfNDistinct(word, 1, 3, rapid.ID[string]), 1, 30).Draw(t, "lemmas")
		l := made(t, lemmas)
		form := rapid.OneOf(word, rapid.SampledFrom(slices.Sorted(maps.Keys(lemmas)))).Draw(t, "form")
		if got, want := sorted(l.Lemmas(nil, form)), sorted(slices.Clone(lemmas[form])); !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", form, got, want)
		}
		var want []string
		for spelled := range lemmas {
			if lacks(form, spelled) {
				want = append(want, spelled)
			}
		}
		sorted(want)
		if got := sorted(l.Spellings(nil, form)); !slices.Equal(got, want) {
			t.Fatalf("spellings of %q: %q, want %q", form, got, want)
		}
	})
}

// lacks reports whether form is spelled, but for marks that it lacks.
func lacks(form, spelled string) bool {
	a, b := []rune(form), []rune(spelled)
	bare := strings.NewReplacer("ą", "a", "ź", "z", "ż", "z", "ł", "l")
	return slices.EqualFunc(a, b, func(a, b rune) bool { return a == b || string(a) == bare.Replace(string(b)) })
}

// FuzzOpen: a damaged lexicon may give other lemmas, and never a panic or one that does not end.
func FuzzOpen(f *testing.F) {
	var b bytes.Buffer
	_, err := Write(&b, "a test", map[string][]string{"zadał": {"zadać"}, "żądał": {"żądać"}})
	require.NoError(f, err)
	f.Add(b.Bytes()[:10])
	f.Add([]byte("x\nA\n\n"))
	f.Fuzz(func(t *testing.T, head []byte) {
		_, transducer, _ := bytes.Cut(b.Bytes(), []byte("\n\n"))
		l, err := Open(append(append(bytes.Clone(head), "\n\n"...), transducer...))
		if err != nil {
			return
		}
		l.Lemmas(nil, "zadał")
		l.Spellings(nil, "zadal")
	})
}
