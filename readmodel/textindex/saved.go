package textindex

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"example.org/registry/events/failpoint"
)

// savedName is the file that Dir.Save makes in the directory: the only one with a name. No process uses it but to read
// it once.
const savedName = "saved"

// savedFormat is the version of that file, and of blocks and vocabularies in it. A file of another one is not used.
const savedFormat = 1

// SavedBlock is a block of an index that is saved, and what its owner wants to find with it.
type SavedBlock struct {
	Label []byte
	Block *Block
}

// savedHead is the first section of a saved index, as JSON. The labels follow, then the words, the boundaries and the
// blocks: a section each.
type savedHead struct {
	Format int    `json:"format"`
	Texts  string `json:"texts"` // the version of what was indexed
	Blocks int    `json:"blocks"`
}

// Save writes an index to the directory, for another process to open: see OpenSaved. All blocks are of one vocabulary. texts is
// the version of the texts. The file takes the place of an older one once it is whole. It is not synced: after a power failure it
// may be damaged, which its checksums tell.
func (d Dir) Save(texts string, v *Vocabulary, blocks []SavedBlock) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("text index: %w", err)
		}
	}()
	f, err := os.CreateTemp(string(d), "saving-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	if err := writeSaved(f, texts, v, blocks); err != nil {
		return err
	}
	if err := failpoint.Hit("index/saved"); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(string(d), savedName))
}

// writeSaved writes the sections. A disk that fails to give a page of a block back is an error, not the end of the process.
func writeSaved(to io.Writer, texts string, v *Vocabulary, blocks []SavedBlock) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	w := bufio.NewWriterSize(to, 1<<16)
	head, _ := json.Marshal(savedHead{savedFormat, texts, len(blocks)}) // of numbers and a string
	writeSection(w, head)
	for _, b := range blocks {
		writeSection(w, b.Label)
	}
	writeSection(w, v.words.text)
	writeSection(w, v.boundaries.text)
	for _, b := range blocks {
		writeSection(w, b.Block.data)
		runtime.KeepAlive(b.Block)
	}
	return w.Flush() // it says what went wrong before, too
}

// A section is its length (8 bytes), its checksum (4, CRC-32C) and its bytes. Little endian.
const sectionHead = 8 + 4

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func writeSection(w *bufio.Writer, b []byte) {
	head := binary.LittleEndian.AppendUint64(make([]byte, 0, sectionHead), uint64(len(b)))
	_, _ = w.Write(binary.LittleEndian.AppendUint32(head, castagnoli(b)))
	_, _ = w.Write(b)
}

// Saved is an index that another process has saved. One goroutine uses it, and closes it.
type Saved struct {
	file   *os.File
	left   int64 // bytes of the file that are yet to be read
	labels [][]byte
}

// OpenSaved opens the index that was saved in a directory and reads its labels. There being none is fs.ErrNotExist; an index of
// another version, or of other texts, and a damaged one are errors, too.
func OpenSaved(path, texts string) (s *Saved, err error) {
	name := filepath.Join(path, savedName)
	info, err := os.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", name) // to open a pipe could take for ever
	}
	if err != nil {
		return nil, fmt.Errorf("text index: %w", err)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("text index: %w", err)
	}
	defer func() {
		if err != nil {
			s, err = nil, fmt.Errorf("text index: saved: %w", errors.Join(err, f.Close()))
		}
	}()
	s = &Saved{file: f, left: info.Size()}
	return s, s.readLabels(texts)
}

func (s *Saved) readLabels(texts string) error {
	first, err := s.section(nil)
	if err != nil {
		return err
	}
	var head savedHead
	if err := json.Unmarshal(first, &head); err != nil {
		return err
	}
	if head.Format != savedFormat || head.Texts != texts {
		return fmt.Errorf("it is of version %d, of texts %q; this program has %d, %q", head.Format, head.Texts, savedFormat, texts)
	}
	for range head.Blocks {
		label, err := s.section(nil)
		if err != nil {
			return err
		}
		s.labels = append(s.labels, label)
	}
	return nil
}

// section reads the next section into memory that it may share with buffer.
func (s *Saved) section(buffer []byte) ([]byte, error) {
	var head [sectionHead]byte
	if _, err := io.ReadFull(s.file, head[:]); err != nil {
		return nil, cutShort(err)
	}
	s.left -= sectionHead
	n := binary.LittleEndian.Uint64(head[:])
	if n > uint64(max(s.left, 0)) {
		return nil, cutShort(io.EOF)
	}
	if uint64(cap(buffer)) < n {
		buffer = make([]byte, n)
	}
	buffer = buffer[:n]
	if _, err := io.ReadFull(s.file, buffer); err != nil {
		return nil, cutShort(err)
	}
	s.left -= int64(n)
	if castagnoli(buffer) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, errors.New("it is damaged")
	}
	return buffer, nil
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is cut short")
	}
	return err
}

// Labels returns what was saved with each block.
func (s *Saved) Labels() [][]byte { return s.labels }

// Load makes blocks of their own in dir, in the order of the labels, and the vocabulary that they were made with. It is called
// once.
func (s *Saved) Load(dir Dir) (v *Vocabulary, blocks []*Block, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("text index: saved: %w", err)
		}
	}()
	v = NewVocabulary()
	for _, d := range []*dictionary{&v.words, &v.boundaries} {
		text, err := s.section(nil)
		if err != nil {
			return nil, nil, err
		}
		if err := d.addAll(text); err != nil {
			return nil, nil, err
		}
	}
	v.Sort()
	var buffer []byte
	for range s.labels {
		if buffer, err = s.section(buffer); err != nil {
			return nil, nil, err
		}
		block, err := dir.keep(v, func(w *bufio.Writer) error {
			_, _ = w.Write(buffer)
			return w.Flush()
		})
		if err != nil {
			return nil, nil, err
		}
		blocks = append(blocks, block)
	}
	s.labels = nil
	return v, blocks, nil
}

// Close ends the use of the file.
func (s *Saved) Close() {
	_ = s.file.Close() // it was only read
}
