package snapshots

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	bolt "go.etcd.io/bbolt"
)

// keyless keeps keys and values out of bbolt's errors, which are logged.
type keyless struct{}

func (keyless) KeyToString([]byte) string   { return "…" }
func (keyless) ValueToString([]byte) string { return "…" }

// checkPages runs bbolt's own check of the page structure. The check runs in a goroutine of bbolt's, and a reference beyond the
// end of the file would end the process there: nobody could catch that. So every reference is looked at before.
func checkPages(tx *bolt.Tx) error {
	if err := checkReferences(tx); err != nil {
		return classify(fmt.Errorf("page structure: %w", err))
	}
	var bad error
	for err := range tx.Check(bolt.WithKVStringer(keyless{})) { // to the end, or bbolt's goroutine stays
		bad = cmp.Or(bad, err)
	}
	if bad != nil {
		return damage{fmt.Errorf("page structure: %w", bad)}
	}
	return nil
}

// checkReferences reads the pages that tx sees by ordinary calls, and returns an error unless each page is in the file and
// each key and value in its page. The layout is that of the types page
// and meta in the package internal/common of bbolt 1.5.
func checkReferences(tx *bolt.Tx) error {
	file, err := os.Open(tx.DB().Path())
	if err != nil {
		return err
	}
	defer file.Close()
	w := &pageWalk{file: file, size: int64(tx.DB().Info().PageSize)}
	root, free, err := w.meta(uint64(tx.ID()))
	if err != nil {
		return err
	}
	if free != math.MaxUint64 { // which means that there is none
		if _, err := w.read(free); err != nil {
			return fmt.Errorf("free list: %w", err)
		}
	}
	return w.tree(root)
}

// pageWalk reads the pages of a file. One goroutine owns it.
type pageWalk struct {
	file  *os.File
	size  int64  // of a page
	pages uint64 // how many the file has
	seen  uint64 // how many have been read
}

const (
	pageHeader  = 16
	elementSize = 16 // in branches and in leaves
	branchPage  = 1
	leafPage    = 2
	bucketValue = 1 // the flag of an element whose value is the head of a bucket, 16 bytes
)

// meta returns the roots of the tree of buckets and of the free list that a transaction sees. Its meta page is the first for
// even numbers, and the second for odd ones.
func (w *pageWalk) meta(transaction uint64) (root, free uint64, err error) {
	m := make([]byte, 64)
	if _, err := w.file.ReadAt(m, int64(transaction%2)*w.size+pageHeader); err != nil {
		return 0, 0, beyond(err)
	}
	if binary.NativeEndian.Uint64(m[48:]) != transaction {
		return 0, 0, errors.New("meta page is not that of the transaction")
	}
	w.pages = binary.NativeEndian.Uint64(m[40:])
	return binary.NativeEndian.Uint64(m[16:]), binary.NativeEndian.Uint64(m[32:]), nil
}

// read returns the content of a page, with those that it goes on for.
func (w *pageWalk) read(id uint64) ([]byte, error) {
	var header [pageHeader]byte
	if id < 2 || id >= w.pages {
		return nil, fmt.Errorf("there is no page %d of %d", id, w.pages)
	}
	if _, err := w.file.ReadAt(header[:], int64(id)*w.size); err != nil {
		return nil, beyond(err)
	}
	n := 1 + uint64(binary.NativeEndian.Uint32(header[12:]))
	w.seen += n
	if n > w.pages-id || w.seen > w.pages {
		return nil, fmt.Errorf("page %d: goes on for too long, or belongs to several", id)
	}
	content := make([]byte, int64(n)*w.size)
	if _, err := w.file.ReadAt(content, int64(id)*w.size); err != nil {
		return nil, beyond(err)
	}
	return content, nil
}

// beyond keeps the end of the file from passing for an error of the system.
func beyond(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("file is cut short")
	}
	return err
}

// tree checks the page with an id and all below it.
func (w *pageWalk) tree(id uint64) error {
	page, err := w.read(id)
	if err != nil {
		return err
	}
	kind, count := binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:]))
	if kind != branchPage && kind != leafPage || pageHeader+count*elementSize > len(page) {
		return fmt.Errorf("page %d: is none of a tree", id)
	}
	for i := range count {
		element := page[pageHeader+i*elementSize:]
		field := func(at int) uint64 { return uint64(binary.NativeEndian.Uint32(element[at:])) }
		if kind == branchPage {
			if field(0)+field(4) > uint64(len(element)) {
				return fmt.Errorf("page %d: a key is beyond it", id)
			}
			if err := w.tree(binary.NativeEndian.Uint64(element[8:])); err != nil {
				return err
			}
			continue
		}
		flags, key, value := field(0), field(4)+field(8), field(12)
		if key+value > uint64(len(element)) {
			return fmt.Errorf("page %d: a key or a value is beyond it", id)
		}
		if flags&bucketValue == 0 {
			continue
		}
		if value < 16 {
			return fmt.Errorf("page %d: a bucket is cut short", id)
		}
		if inner := binary.NativeEndian.Uint64(element[key:]); inner != 0 { // else it is in the value
			if err := w.tree(inner); err != nil {
				return err
			}
		}
	}
	return nil
}
