package gramindex

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type doc struct {
	names, rest string
}

func (d doc) text() string { return d.names + "\n" + d.rest }

func open(t testing.TB) Dir {
	t.Helper()
	d, err := Open(filepath.Join(t.TempDir(), "index"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func keep(t interface{ Fatal(...any) }, d Dir, b *Builder) *Block {
	block, err := d.Keep(b)
	if err != nil {
		t.Fatal(err)
	}
	return block
}

func find(t interface{ Fatal(...any) }, b *Block, text Text, needle string) (found []uint16) {
	var s Set
	if err := b.Find(text, needle, &s); err != nil {
		t.Fatal(err)
	}
	s.Each(func(slot uint16) bool {
		found = append(found, slot)
		return true
	})
	return found
}

// containing is what Find promises, by looking at every text.
func containing(docs map[uint16]doc, text Text, needle string) (found []uint16) {
	for slot, d := range docs {
		in := d.text()
		if text == Names {
			in = d.names
		}
		if strings.Contains(in, needle) {
			found = append(found, slot)
		}
	}
	slices.Sort(found)
	return found
}

// TestFind: a block finds every text that contains the needle, and no other where Exact says so.
// One builder makes many blocks, and each stays as it was.
func TestFind(t *testing.T) {
	dir, b := open(t), &Builder{}
	word := rapid.StringOfN(rapid.SampledFrom([]rune("aąbc1 😀\n\U0010FFFF")), 0, 12, -1)
	type built struct {
		block *Block
		docs  map[uint16]doc
	}
	var old []built
	rapid.Check(t, func(t *rapid.T) {
		docs := map[uint16]doc{}
		for _, slot := range rapid.SliceOfNDistinct(rapid.Uint16Range(0, BlockLen-1), 0, 30, rapid.ID).Draw(t, "slots") {
			docs[slot] = doc{word.Draw(t, "names"), word.Draw(t, "rest")}
		}
		for _, slot := range slices.Sorted(maps.Keys(docs)) {
			if d := docs[slot]; !b.Add(slot, d.text(), len(d.names)) {
				t.Fatal("full")
			}
		}
		old = append(old[max(0, len(old)-3):], built{keep(t, dir, b), docs})
		for range 10 {
			needle := strings.ReplaceAll(word.Draw(t, "needle"), "\n", "")
			if needle == "" {
				continue
			}
			for _, x := range old {
				checkFind(t, x.block, x.docs, needle)
			}
		}
	})
}

func checkFind(t *rapid.T, b *Block, docs map[uint16]doc, needle string) {
	for _, text := range []Text{All, Names} {
		got, want := find(t, b, text, needle), containing(docs, text, needle)
		if Exact(needle) && !slices.Equal(got, want) {
			t.Fatalf("%d %q: %v, exactly %v contain it", text, needle, got, want)
		}
		for _, slot := range want {
			if !slices.Contains(got, slot) {
				t.Fatalf("%d %q: %v, but %v contain it", text, needle, got, want)
			}
		}
	}
}

// TestDense: lists of every length on both sides of where they become sets.
func TestDense(t *testing.T) {
	dir, b := open(t), &Builder{}
	docs := map[uint16]doc{}
	for slot := range uint16(BlockLen) {
		var d doc
		for r, every := range map[rune]uint16{'a': 1, 'b': 2, 'c': 15, 'd': 16, 'e': 17, 'f': 5000} {
			if slot%every == 0 {
				d.rest += string(r) + "x"
			}
		}
		d.names = fmt.Sprint(slot)
		docs[slot] = d
		b.Add(slot, d.text(), len(d.names))
	}
	block := keep(t, dir, b)
	for _, needle := range []string{"a", "b", "c", "d", "e", "f", "ax", "cx", "bxd", "x", "1", "16383", "12", "zz"} {
		got := find(t, block, All, needle)
		if want := containing(docs, All, needle); Exact(needle) && !slices.Equal(got, want) {
			t.Errorf("%q: %d found, want %d", needle, len(got), len(want))
		}
	}
}

// TestFull: texts beyond the bound are refused, and those before it are found.
func TestFull(t *testing.T) {
	dir, b := open(t), &Builder{}
	r, taken := rune(0x4e00), 0
	for slot := range uint16(BlockLen) {
		var text strings.Builder
		for range 6000 {
			text.WriteRune(r)
			if r++; r > 0x9fff {
				r = 0x4e00
			}
		}
		if !b.Add(slot, text.String(), 0) {
			break
		}
		taken++
	}
	if block := keep(t, dir, b); taken == BlockLen || block.Bytes() > maxBlock {
		t.Errorf("%d texts in %d bytes", taken, block.Bytes())
	} else if got := find(t, block, All, "\u4e00\u4e01\u4e02\u4e03"); len(got) == 0 || got[0] != 0 {
		t.Errorf("found %v", got)
	}
}

// TestNameless: blocks have no name in the directory, and what happens to it harms none. What
// another process left is removed.
func TestNameless(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "root.bolt"), []byte("left"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var b Builder
	b.Add(7, "abc", 0)
	block := keep(t, dir, &b)
	left, err := os.ReadDir(path)
	if err != nil || len(left) > 0 {
		t.Fatalf("%v, %v", left, err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if got := find(t, block, All, "abc"); !slices.Equal(got, []uint16{7}) {
		t.Errorf("found %v", got)
	}
	b.Add(7, "abc", 0)
	if _, err := dir.Keep(&b); err == nil {
		t.Error("a block was kept in a directory that is gone")
	}
}

func written(t testing.TB, b *Builder) []byte {
	var data bytes.Buffer
	if err := b.writeTo(bufio.NewWriter(&data)); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// TestDamaged: a block that is not what was written is an error or a wrong set, never a panic; one of
// nothing is an error.
func TestDamaged(t *testing.T) {
	for _, needle := range []string{"a", "ab", "abc", "oszust"} {
		if err := new(Block).Find(All, needle, new(Set)); err == nil {
			t.Errorf("%q: the zero block was read", needle)
		}
	}
	var b Builder
	for slot := range uint16(200) {
		b.Add(slot, fmt.Sprintf("abc%d\noszust", slot), 3)
	}
	good := written(t, &b)
	rapid.Check(t, func(t *rapid.T) {
		data := slices.Clone(good[:rapid.IntRange(0, len(good)).Draw(t, "length")])
		for range rapid.IntRange(0, 3).Draw(t, "flips") {
			if len(data) > 0 {
				data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			}
		}
		var s Set
		_ = (&Block{data: data}).Find(All, rapid.SampledFrom([]string{"a", "ab", "abc1", "oszust"}).Draw(t, "needle"), &s)
	})
}

func TestGrams(t *testing.T) {
	var got []string
	eachGram("ąbc\nd😀\ne", func(g gram) {
		var b strings.Builder
		for _, r := range []gram{g >> (2 * charBits), g >> charBits, g} {
			if r &= charMask; r != 0 {
				b.WriteRune(rune(r) - 1)
			}
		}
		got = append(got, b.String())
	})
	if want := []string{"ą", "b", "c", "ąbc", "bc", "d", "😀", "d😀", "e"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if n := len(spansOf("ababa", 0)); n != 2 {
		t.Errorf("%d spans, want 2", n)
	}
}

// FuzzFind: any text is found by any part of it.
func FuzzFind(f *testing.F) {
	f.Add("Łukasz", "nie wywiązał się z umowy", 2, 6)
	f.Add("x", "nie wywiązał się z umowy", 6, 16)
	f.Fuzz(func(t *testing.T, names, rest string, from, to int) {
		d := doc{names, rest}
		text := d.text()
		if from < 0 || to > len(text) || from >= to || !utf8.ValidString(text) || len(text) > 1<<16 {
			t.Skip()
		}
		needle := text[from:to]
		if !utf8.ValidString(needle) || strings.Contains(needle, "\n") {
			t.Skip()
		}
		var b Builder
		if !b.Add(5, text, len(names)) {
			t.Skip()
		}
		data := written(t, &b)
		var s Set
		if err := (&Block{data: data}).Find(All, needle, &s); err != nil || !s.Has(5) {
			t.Errorf("%q in %q: %v, %v", needle, text, s.Has(5), err)
		}
	})
}
