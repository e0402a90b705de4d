package textindex

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestSaved: what was saved is loaded with its labels, and answers as it did, also beside new blocks of its vocabulary. The
// file harms nobody who has loaded it.
func TestSaved(t *testing.T) {
	dir := open(t)
	words := rapid.StringOfN(rapid.SampledFrom([]rune("aąb 😀 \U0010FFFF")), 0, 16, -1)
	rapid.Check(t, func(t *rapid.T) {
		b := &Builder{Vocabulary: NewVocabulary()}
		var docs []map[uint16]doc
		add := func() *Block {
			texts := map[uint16]doc{}
			for _, slot := range rapid.SliceOfNDistinct(rapid.Uint16Range(0, BlockLen-1), 0, 12, rapid.ID).Draw(t, "slots") {
				texts[slot] = doc{words.Draw(t, "names"), words.Draw(t, "words")}
			}
			for _, slot := range slices.Sorted(maps.Keys(texts)) {
				b.Add(slot, texts[slot].names, texts[slot].rest)
			}
			docs = append(docs, texts)
			return keep(t, dir, b)
		}
		var saved []SavedBlock
		for i := range rapid.IntRange(0, 3).Draw(t, "blocks") {
			saved = append(saved, SavedBlock{[]byte{byte(i)}, add()})
		}
		if err := dir.Save("texts 1", b.Vocabulary, saved); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSaved(string(dir), "texts 1")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i, label := range s.Labels() {
			if !bytes.Equal(label, []byte{byte(i)}) {
				t.Fatalf("label %d is %v", i, label)
			}
		}
		v, blocks, err := s.Load(dir)
		if err != nil || len(blocks) != len(saved) {
			t.Fatalf("%d blocks of %d: %v", len(blocks), len(saved), err)
		}
		if err := os.WriteFile(filepath.Join(string(dir), savedName), []byte("overwritten"), 0o600); err != nil {
			t.Fatal(err)
		}
		b = &Builder{Vocabulary: v}
		blocks = append(blocks, add())
		for range 10 {
			if needle := words.Draw(t, "needle"); needle != "" {
				for i, block := range blocks {
					checkFind(t, block, docs[i], needle)
				}
			}
		}
	})
}

// savedFile saves a small index and returns its directory and the file's content.
func savedFile(t testing.TB) (dir Dir, content []byte) {
	t.Helper()
	dir = open(t)
	b := &Builder{Vocabulary: NewVocabulary()}
	var blocks []SavedBlock
	for i := range 2 {
		b.Add(7, "ktoś\n123", fmt.Sprintf("oszust numer %d", i))
		b.Add(9, "inny\n124", "oszust i złodziej")
		blocks = append(blocks, SavedBlock{fmt.Appendf(nil, "część %d", i), keep(t, dir, b)})
	}
	if err := dir.Save("texts 1", b.Vocabulary, blocks); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(string(dir), savedName))
	if err != nil {
		t.Fatal(err)
	}
	return dir, content
}

func replaceSaved(t testing.TB, dir Dir, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(dir), savedName), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// loadSaved opens what is in dir and loads it.
func loadSaved(dir Dir, texts string) error {
	s, err := OpenSaved(string(dir), texts)
	if err != nil {
		return err
	}
	defer s.Close()
	_, _, err = s.Load(dir)
	return err
}

// TestSavedDamaged: a file that is not what was saved is not used, whichever of its bytes is another and wherever it ends; nor is one
// of another version.
func TestSavedDamaged(t *testing.T) {
	dir, good := savedFile(t)
	if err := loadSaved(dir, "texts 1"); err != nil {
		t.Fatal(err)
	}
	if err := loadSaved(dir, "texts 2"); err == nil || !strings.Contains(err.Error(), `"texts 1"`) {
		t.Errorf("an index of other texts: %v", err)
	}
	for at := 0; at < len(good); at++ {
		if 100 < at && at < len(good)-600 {
			at += 500 // most of it is where the words of empty slots end
		}
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		replaceSaved(t, dir, bad)
		if loadSaved(dir, "texts 1") == nil {
			t.Fatalf("byte %d of %d is another, and the file was used", at, len(good))
		}
		replaceSaved(t, dir, good[:at])
		if loadSaved(dir, "texts 1") == nil {
			t.Fatalf("the file ends at byte %d of %d, and was used", at, len(good))
		}
	}
	if err := os.Remove(filepath.Join(string(dir), savedName)); err != nil {
		t.Fatal(err)
	}
	if err := loadSaved(dir, "texts 1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestSaveFails: an index that cannot be saved leaves the earlier file as it is, and nothing else.
func TestSaveFails(t *testing.T) {
	dir, good := savedFile(t)
	b := &Builder{Vocabulary: NewVocabulary()}
	if err := dir.Save("texts 1", b.Vocabulary, []SavedBlock{{nil, new(Block)}, {nil, nil}}); err == nil {
		t.Fatal("a block that is none was saved")
	}
	left, err := os.ReadDir(string(dir))
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if content, err := os.ReadFile(filepath.Join(string(dir), savedName)); err != nil || !bytes.Equal(content, good) {
		t.Errorf("the earlier file has changed: %v", err)
	}
}

// TestSavedFormat: what is saved is what earlier programs of the format saved. If it is not, savedFormat has to be raised; then the
// value is that of the message.
func TestSavedFormat(t *testing.T) {
	const want = "1 ff67452c14a811fb"
	_, content := savedFile(t)
	sum := sha256.Sum256(content)
	if got := fmt.Sprint(savedFormat, " ", hex.EncodeToString(sum[:8])); got != want {
		t.Errorf("a saved index is %q, was %q: raise savedFormat and write the new value here", got, want)
	}
}

// FuzzSaved: a file whose checksums are right and whose content is anything is an error or an index, never the end of the process.
func FuzzSaved(f *testing.F) {
	dir := open(f)
	_, good := savedFile(f)
	var sections [][]byte
	replaceSaved(f, dir, good)
	s, err := OpenSaved(string(dir), "texts 1")
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	for {
		section, err := s.section(nil)
		if err != nil {
			break
		}
		sections = append(sections, section)
	}
	f.Add("texts 1", 1, []byte("label"), sections[0], sections[1], sections[2], "oszust")
	f.Add("texts 1", 1, []byte("label"), sections[0], sections[1], sections[3], "st i")
	f.Add("texts 1", 1, []byte{}, []byte("\n"), []byte("\n\n\n"), []byte{}, "a")
	f.Fuzz(func(t *testing.T, texts string, n int, label, words, boundaries, block []byte, needle string) {
		var file bytes.Buffer
		w := bufio.NewWriter(&file)
		writeSection(w, fmt.Appendf(nil, `{"format":%d,"texts":%q,"blocks":%d}`, savedFormat, texts, n))
		for _, section := range [][]byte{label, words, boundaries, block} {
			writeSection(w, section)
		}
		w.Flush()
		replaceSaved(t, dir, file.Bytes())
		s, err := OpenSaved(string(dir), "texts 1")
		if err != nil {
			return
		}
		defer s.Close()
		_, blocks, err := s.Load(dir)
		if err != nil || needle == "" {
			return
		}
		for _, b := range blocks {
			_ = b.Find(NewQuery(All, needle), new(Set), new(Set)) // an error, or a set that is wrong
		}
	})
}
