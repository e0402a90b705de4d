package gramindex

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func create(t testing.TB) *Index {
	t.Helper()
	x, err := Create(filepath.Join(t.TempDir(), "index"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func find(t interface{ Fatal(...any) }, s *Snapshot, text Text, needle string) (found []uint32) {
	err := s.Find(text, needle, func(numbers []uint32) bool {
		found = append(found, numbers...)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// holds is what Find promises, by looking at every document.
func holds(docs map[uint32]Document, text Text, needle string) (all, exact []uint32) {
	for n, d := range docs {
		in := d.All
		if text == Names {
			in = d.Names
		}
		every := true
		for _, gram := range needleGrams(needle) {
			every = every && strings.Contains(in, gram)
		}
		if every {
			all = append(all, n)
		}
		if strings.Contains(in, needle) {
			exact = append(exact, n)
		}
	}
	slices.Sort(all)
	slices.Sort(exact)
	return all, exact
}

// TestFind: after any batches, rewritten documents included, an answer is the documents that hold
// every gram; exactly those that contain the needle where Exact says so, and never fewer. A snapshot
// stays as it was.
func TestFind(t *testing.T) {
	outer := t
	word := rapid.StringOfN(rapid.SampledFrom([]rune("aąbc1 😀\n")), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		x := create(outer)
		docs, old := map[uint32]Document{}, map[uint32]Document{}
		var kept *Snapshot
		for i := range rapid.IntRange(1, 4).Draw(t, "batches") {
			batch := map[uint32]Document{}
			for range rapid.IntRange(1, 12).Draw(t, "size") {
				d := Document{Number: rapid.Uint32Range(0, 20).Draw(t, "number"), All: word.Draw(t, "all"), Names: word.Draw(t, "names")}
				batch[d.Number], docs[d.Number] = d, d
			}
			var list []Document
			for _, d := range batch {
				list = append(list, d)
			}
			if err := x.Write(list); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				kept = snapshot(t, x)
				for n, d := range docs {
					old[n] = d
				}
			}
		}
		s := snapshot(t, x)
		if s.Documents() != uint64(len(docs)) {
			t.Fatalf("%d documents, want %d", s.Documents(), len(docs))
		}
		for range 10 {
			needle := strings.Trim(strings.ReplaceAll(word.Draw(t, "needle"), "\n", ""), " ")
			if needle == "" {
				continue
			}
			for _, text := range []Text{All, Names} {
				checkFind(t, s, docs, text, needle)
				checkFind(t, kept, old, text, needle)
			}
		}
		for _, s := range []*Snapshot{s, kept} {
			if err := s.Release(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func snapshot(t interface{ Fatal(...any) }, x *Index) *Snapshot {
	s, err := x.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func checkFind(t *rapid.T, s *Snapshot, docs map[uint32]Document, text Text, needle string) {
	got := find(t, s, text, needle)
	all, exact := holds(docs, text, needle)
	if !slices.Equal(got, all) {
		t.Fatalf("%s %q: %v, want %v", text, needle, got, all)
	}
	if Exact(needle) && !slices.Equal(got, exact) {
		t.Fatalf("%s %q: %v, exactly %v contain it", text, needle, got, exact)
	}
}

func TestGrams(t *testing.T) {
	var got []string
	eachGram("ąbc\nd😀", func(g string) { got = append(got, g) })
	if want := []string{"ą", "b", "ąb", "c", "bc", "ąbc", "d", "😀", "d😀"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := needleGrams("ababa"), []string{"aba", "bab"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := needleGrams("łó"), []string{"łó"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// BenchmarkWrite is the indexing of entries of a usual size; ns/op is for one of them.
func BenchmarkWrite(b *testing.B) {
	x := create(b)
	const size = 1000
	batch := make([]Document, size)
	b.ReportAllocs()
	for done := 0; done < b.N; done += size {
		b.StopTimer()
		for i := range batch {
			n := done + i
			name := fmt.Sprintf("oszust%d\n9%017d", n*7919%100_000, n)
			batch[i] = Document{uint32(n), name + strings.Repeat(fmt.Sprintf(" wziął zaliczkę %d za konto i zniknął", n%977), 5), name}
		}
		b.StartTimer()
		if err := x.Write(batch); err != nil {
			b.Fatal(err)
		}
	}
}
