package textindex

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

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type doc struct {
	names, rest string
}

func (d doc) text() string { return d.names + "\n" + d.rest }

func open(t testing.TB) Dir {
	t.Helper()
	d, err := Open(filepath.Join(t.TempDir(), "index"))
	require.NoError(t, err)
	return d
}

func keep(t rapid.TB, d Dir, b *Builder) *Block {
	block, err := d.Write(b)
	require.NoError(t, err)
	return block
}

// find returns a block's certain and possible slots.
func find(t rapid.TB, b *Block, text readmodel.TextOf, needle string) (sure, all []uint16) {
	var s, maybe readmodel.Slots
	require.NoError(t, b.Find(NewQuery(text, needle, new(Scratch)), &s, &maybe))
	maybe.Or(&s)
	return slots16(&s), slots16(&maybe)
}

func slots16(s *readmodel.Slots) (slots []uint16) {
	s.Each(func(slot uint16) bool {
		slots = append(slots, slot)
		return true
	})
	return slots
}

// containing returns what Find must, by a scan of every text.
func containing(docs map[uint16]doc, text readmodel.TextOf, needle string) (found []uint16) {
	for slot, d := range docs {
		in := d.text()
		switch text {
		case readmodel.TextOfNames:
			in = d.names
		case readmodel.TextOfChatIDs:
			_, in, _ = strings.Cut(d.names, "\n")
		}
		if strings.Contains(in, needle) {
			found = append(found, slot)
		}
	}
	slices.Sort(found)
	return found
}

// TestFind: a block finds every text that contains the needle, and what it is sure of contains it.
// Blocks of one Vocabulary stay as they were while others are made with it.
func TestFind(t *testing.T) {
	dir, b := open(t), &Builder{Vocabulary: NewVocabulary()}
	names := rapid.StringOfN(rapid.SampledFrom([]rune("aąbc1 😀\n\U0010FFFF")), 0, 12, -1)
	words := rapid.StringOfN(rapid.SampledFrom([]rune("aąb 😀 \U0010FFFF")), 0, 16, -1)
	type built struct {
		block *Block
		docs  map[uint16]doc
	}
	var old []built
	rapid.Check(t, func(t *rapid.T) {
		docs := map[uint16]doc{}
		for _, slot := range rapid.SliceOfNDistinct(rapid.Uint16Range(0, readmodel.BlockLen-1), 0, 30, rapid.ID).Draw(t, "slots") {
			docs[slot] = doc{names.Draw(t, "names"), words.Draw(t, "rest")}
		}
		for _, slot := range slices.Sorted(maps.Keys(docs)) {
			if d := docs[slot]; !b.Add(slot, d.names, d.rest) {
				t.Fatal("full")
			}
		}
		old = append(old[max(0, len(old)-3):], built{keep(t, dir, b), docs})
		for range 10 {
			needle := rapid.OneOf(words, names).Draw(t, "needle")
			if needle = strings.ReplaceAll(needle, "\n", ""); needle == "" {
				continue
			}
			for _, x := range old {
				checkFind(t, x.block, x.docs, needle)
			}
		}
	})
}

func checkFind(t *rapid.T, b *Block, docs map[uint16]doc, needle string) {
	for _, text := range []readmodel.TextOf{readmodel.TextOfAll, readmodel.TextOfNames, readmodel.TextOfChatIDs} {
		sure, all := find(t, b, text, needle)
		want := containing(docs, text, needle)
		for _, slot := range sure {
			if !slices.Contains(want, slot) {
				t.Fatalf("%d %q: sure of %v, %v contain it", text, needle, sure, want)
			}
		}
		for _, slot := range want {
			if !slices.Contains(all, slot) {
				t.Fatalf("%d %q: %v, but %v contain it", text, needle, all, want)
			}
		}
	}
}

// TestSieve: every part of a name or an id is found, and a block is not searched for what has a run
// that none of its names has.
func TestSieve(t *testing.T) {
	b := &Builder{Vocabulary: NewVocabulary()}
	docs := map[uint16]doc{}
	for slot := range uint16(200) {
		docs[slot] = doc{fmt.Sprintf("Żółw 😀 kasia%d\n%d", slot*37, 100_000_000+int(slot)*7919), "x"}
		b.Add(slot, docs[slot].names, "x")
	}
	block := keep(t, open(t), b)
	b.Add(0, "another\n1", "x")
	if next := keep(t, open(t), b); next.mayHold(NewQuery(readmodel.TextOfNames, "kasia37", new(Scratch))) || !next.mayHold(NewQuery(readmodel.TextOfNames, "another", new(Scratch))) {
		t.Error("the sieve of a block is that of the one before")
	}
	for slot := uint16(0); slot < 200; slot += 50 {
		letters := []rune(docs[slot].names)
		for from := range letters {
			for to := from + 1; to <= len(letters); to++ {
				needle := string(letters[from:to])
				if strings.Contains(needle, "\n") {
					continue
				}
				for _, text := range []readmodel.TextOf{readmodel.TextOfAll, readmodel.TextOfNames, readmodel.TextOfChatIDs} {
					if _, all := find(t, block, text, needle); slices.Contains(containing(docs, text, needle), slot) && !slices.Contains(all, slot) {
						t.Fatalf("%d %q: slot %d is missing", text, needle, slot)
					}
				}
			}
		}
	}
	for needle, want := range map[string][2]bool{ // as Names, as ChatIDs
		"kasia37": {true, false}, "kasiakasia37": {false, false}, "kasi": {true, false}, "ka": {true, true}, "kasia": {true, false},
		"100000000": {true, true}, "999999999": {false, false}, "😀 kasia": {true, false}, "😀 kasi 😀": {false, false},
	} {
		names, ids := block.mayHold(NewQuery(readmodel.TextOfNames, needle, new(Scratch))), block.mayHold(NewQuery(readmodel.TextOfChatIDs, needle, new(Scratch)))
		if names != want[0] || ids != want[1] {
			t.Errorf("%q: may be in names: %v, in ids: %v; want %v", needle, names, ids, want)
		}
	}
}

// TestDense: lists of every length on both sides of where they become sets.
func TestDense(t *testing.T) {
	dir, b := open(t), &Builder{Vocabulary: NewVocabulary()}
	docs := map[uint16]doc{}
	for slot := range uint16(readmodel.BlockLen) {
		var d doc
		for r, every := range map[rune]uint16{'a': 1, 'b': 2, 'c': 15, 'd': 16, 'e': 17, 'f': 5000} {
			if slot%every == 0 {
				d.rest += string(r) + "x"
			}
		}
		d.names = fmt.Sprint(slot)
		docs[slot] = d
		b.Add(slot, d.names, d.rest)
	}
	block := keep(t, dir, b)
	for _, needle := range []string{"a", "b", "c", "d", "e", "f", "ax", "cx", "bxd", "x", "1", "16383", "12", "zz"} {
		got, _ := find(t, block, readmodel.TextOfAll, needle)
		if want := containing(docs, readmodel.TextOfAll, needle); exact(needle) && !slices.Equal(got, want) {
			t.Errorf("%q: %d found, want %d", needle, len(got), len(want))
		}
	}
}

// TestFull: texts beyond the bound are refused, and those before it are found.
func TestFull(t *testing.T) {
	dir, b := open(t), &Builder{Vocabulary: NewVocabulary()}
	b.limit = maxBlock / 16
	if eventstest.FullRun() {
		b.limit = maxBlock
	}
	r, taken := rune(0x4e00), 0
	for slot := range uint16(readmodel.BlockLen) {
		var text strings.Builder
		for range 6000 {
			text.WriteRune(r)
			if r++; r > 0x9fff {
				r = 0x4e00
			}
		}
		if !b.Add(slot, text.String(), "") {
			break
		}
		taken++
	}
	if block := keep(t, dir, b); taken == readmodel.BlockLen || len(block.data) > b.limit {
		t.Errorf("%d texts in %d bytes", taken, len(block.data))
	} else if _, got := find(t, block, readmodel.TextOfAll, "\u4e00\u4e01\u4e02\u4e03"); len(got) == 0 || got[0] != 0 {
		t.Errorf("found %v", got)
	}
}

// TestManyWords: words are found in what is sorted and in what has come since, those of earlier
// blocks and new ones, and their beginnings and ends beside a space.
func TestManyWords(t *testing.T) {
	dir, b := open(t), &Builder{Vocabulary: NewVocabulary()}
	for n := range 6 {
		docs := map[uint16]doc{}
		for slot := range uint16(2000) {
			docs[slot] = doc{"n", fmt.Sprintf("konto%d w%dx serwer", int(slot)*7+n*10000, int(slot)+n*1500)}
			if d := docs[slot]; !b.Add(slot, d.names, d.rest) {
				t.Fatal("full")
			}
		}
		block := keep(t, dir, b)
		for _, needle := range []string{"konto7", "nto70", "o70 w", "0 w10", "99x serwer", "4x se", "x serwer", "to7 w1x s", "w1500", "zz"} {
			sure, all := find(t, block, readmodel.TextOfAll, needle)
			want := containing(docs, readmodel.TextOfAll, needle)
			if strings.Contains(needle, " ") {
				for _, slot := range want {
					if !slices.Contains(all, slot) {
						t.Fatalf("block %d %q: %d is missing", n, needle, slot)
					}
				}
			} else if !slices.Equal(sure, want) {
				t.Fatalf("block %d %q: %d found, want %d", n, needle, len(sure), len(want))
			}
		}
	}
	if s := b.Vocabulary.words.sorted; s.end == 0 || s.end == len(b.Vocabulary.words.text) {
		t.Errorf("%d of %d bytes are sorted: one half of this was not tried", s.end, len(b.Vocabulary.words.text))
	}
}

// TestEverNew: a text of ever new words, or a word without an end, is left out, and so is what
// would make the vocabulary longer than it may be. What is known already still fits.
func TestEverNew(t *testing.T) {
	b := &Builder{Vocabulary: NewVocabulary(), MaxVocabulary: 10_000}
	var ever strings.Builder
	for i := range 500 {
		fmt.Fprintf(&ever, "nowe%d ", i)
	}
	if b.Add(0, "n", ever.String()) || b.Add(0, "n", strings.Repeat("a", maxWord+1)) {
		t.Error("more than a text may add was taken")
	}
	if n := b.Vocabulary.Bytes(); n > 2 {
		t.Errorf("%d bytes of a text that was left out", n)
	}
	taken := 0
	for slot := range uint16(1000) {
		if b.Add(slot, "n", fmt.Sprintf("słowo%d słowo%d", slot, slot+1)) {
			taken++
		}
	}
	if n := b.Vocabulary.Bytes(); taken == 1000 || n > 10_000+maxNew {
		t.Errorf("%d texts, %d bytes", taken, n)
	}
	if !b.Add(1001, "n", "słowo1 słowo2") {
		t.Error("a text of known words was left out")
	}
}

// TestNameless: blocks have no name in the directory, and what happens to it harms none. What
// another process left is removed.
func TestNameless(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	require.NoError(t, os.MkdirAll(path, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(path, "root.bolt"), []byte("left"), 0o600))
	dir, err := Open(path)
	require.NoError(t, err)
	b := Builder{Vocabulary: NewVocabulary()}
	b.Add(7, "", "abc")
	block := keep(t, dir, &b)
	left, err := os.ReadDir(path)
	if err != nil || len(left) > 0 {
		t.Fatalf("%v, %v", left, err)
	}
	require.NoError(t, os.RemoveAll(path))
	if got, _ := find(t, block, readmodel.TextOfAll, "abc"); !slices.Equal(got, []uint16{7}) {
		t.Errorf("found %v", got)
	}
	b.Add(7, "", "abc")
	if _, err := dir.Write(&b); err == nil {
		t.Error("a block was kept in a directory that is gone")
	}
}

func written(t testing.TB, b *Builder) []byte {
	var data bytes.Buffer
	require.NoError(t, b.writeTo(bufio.NewWriter(&data)))
	return data.Bytes()
}

// TestDamaged: a block that is not what was written is an error or a wrong set, never a panic; one
// of nothing is an error.
func TestDamaged(t *testing.T) {
	for _, needle := range []string{"a", "ab", "abc", "oszust"} {
		if err := new(Block).Find(NewQuery(readmodel.TextOfAll, needle, new(Scratch)), new(readmodel.Slots), new(readmodel.Slots)); err == nil {
			t.Errorf("%q: the zero block was read", needle)
		}
	}
	b := Builder{Vocabulary: NewVocabulary()}
	for slot := range uint16(200) {
		b.Add(slot, fmt.Sprintf("abc%d", slot), "oszust konto")
	}
	good := written(t, &b)
	b.Vocabulary.publish()
	rapid.Check(t, func(t *rapid.T) {
		data := slices.Clone(good[:rapid.IntRange(0, len(good)).Draw(t, "length")])
		for range rapid.IntRange(0, 3).Draw(t, "flips") {
			if len(data) > 0 {
				data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			}
		}
		needle := rapid.SampledFrom([]string{"a", "ab", "abc1", "oszust", "zust ko"}).Draw(t, "needle")
		_ = (&Block{data, b.Vocabulary}).Find(NewQuery(readmodel.TextOfAll, needle, new(Scratch)), new(readmodel.Slots), new(readmodel.Slots))
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
		d := doc{names, strings.ReplaceAll(rest, "\n", " ")}
		text := d.text()
		if from < 0 || to > len(text) || from >= to || !utf8.ValidString(text) || len(text) > 1<<16 {
			t.Skip()
		}
		needle := text[from:to]
		if !utf8.ValidString(needle) || strings.Contains(needle, "\n") {
			t.Skip()
		}
		b := Builder{Vocabulary: NewVocabulary()}
		if !b.Add(5, d.names, d.rest) {
			t.Skip()
		}
		data := written(t, &b)
		b.Vocabulary.publish()
		var sure, maybe readmodel.Slots
		if err := (&Block{data, b.Vocabulary}).Find(NewQuery(readmodel.TextOfAll, needle, new(Scratch)), &sure, &maybe); err != nil || !sure.Has(5) && !maybe.Has(5) {
			t.Errorf("%q in %q: %v, %v, %v", needle, text, sure.Has(5), maybe.Has(5), err)
		}
	})
}
