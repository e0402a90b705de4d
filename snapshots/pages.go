package snapshots

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

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
		if _, err := w.read(free, make([]byte, w.size)); err != nil {
			return fmt.Errorf("free list: %w", err)
		}
	}
	return w.tree(root, 0)
}

// pageWalk reads the pages of a file. One goroutine owns it.
type pageWalk struct {
	file  *os.File
	size  int64    // of a page
	pages uint64   // how many the file has
	seen  uint64   // how many have been read
	kept  [][]byte // what was read last at each depth of the tree, for its memory
}

const (
	pageHeader  = 16
	maxDepth    = 64 // of a tree: a branch has two elements at least
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

// page is a page with those that it goes on for.
type page struct {
	at, length int64  // in the file
	first      []byte // its beginning, as much as one page has
}

func (p *page) kind() uint16 { return binary.NativeEndian.Uint16(p.first[8:]) }

// elementsEnd is where the elements of a page of a tree end.
func (p *page) elementsEnd() int64 {
	return pageHeader + int64(binary.NativeEndian.Uint16(p.first[10:]))*elementSize
}

// read reads the beginning of a page into memory of the size of one.
func (w *pageWalk) read(id uint64, into []byte) (p page, err error) {
	if id < 2 || id >= w.pages {
		return p, fmt.Errorf("there is no page %d of %d", id, w.pages)
	}
	p = page{at: int64(id) * w.size, first: into}
	if _, err := w.file.ReadAt(into, p.at); err != nil {
		return p, beyond(err)
	}
	n := 1 + uint64(binary.NativeEndian.Uint32(into[12:]))
	w.seen += n
	if n > w.pages-id || w.seen > w.pages {
		return p, fmt.Errorf("page %d: goes on for too long, or belongs to several", id)
	}
	p.length = int64(n) * w.size
	return p, nil
}

// elements returns the elements of a page of a tree. They are valid until the next page of the depth is read.
func (w *pageWalk) elements(id uint64, depth int) (p page, elements []byte, err error) {
	if depth == len(w.kept) {
		if depth == maxDepth {
			return p, nil, fmt.Errorf("page %d: lies too deep", id)
		}
		w.kept = append(w.kept, make([]byte, w.size))
	}
	if p, err = w.read(id, w.kept[depth][:w.size]); err != nil {
		return p, nil, err
	}
	end := p.elementsEnd()
	if p.kind() != branchPage && p.kind() != leafPage || end > p.length {
		return p, nil, fmt.Errorf("page %d: is none of a tree", id)
	}
	if end > w.size {
		all := slices.Grow(p.first, int(end-w.size))[:end]
		if _, err := w.file.ReadAt(all[w.size:], p.at+w.size); err != nil {
			return p, nil, beyond(err)
		}
		w.kept[depth] = all
		p.first = all
	}
	return p, p.first[pageHeader:end], nil
}

// beyond keeps the end of the file from passing for an error of the system.
func beyond(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("file is cut short")
	}
	return err
}

// tree checks the page with an id and all below it.
func (w *pageWalk) tree(id uint64, depth int) error {
	page, elements, err := w.elements(id, depth)
	if err != nil {
		return err
	}
	for at := 0; at < len(elements); at += elementSize {
		field := func(i int) int64 { return int64(binary.NativeEndian.Uint32(elements[at+i:])) }
		from := int64(pageHeader + at) // keys are counted from their elements
		if page.kind() == branchPage {
			if from+field(0)+field(4) > page.length {
				return fmt.Errorf("page %d: a key is beyond it", id)
			}
			if err := w.tree(binary.NativeEndian.Uint64(elements[at+8:]), depth+1); err != nil {
				return err
			}
			continue
		}
		flags, value, length := field(0), from+field(4)+field(8), field(12)
		if value+length > page.length {
			return fmt.Errorf("page %d: a key or a value is beyond it", id)
		}
		if flags&bucketValue == 0 {
			continue
		}
		if length < 16 {
			return fmt.Errorf("page %d: a bucket is cut short", id)
		}
		if err := w.bucket(page.at+value, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// bucket checks the tree of the bucket whose head is at a place of the file.
func (w *pageWalk) bucket(at int64, depth int) error {
	var head [8]byte
	if _, err := w.file.ReadAt(head[:], at); err != nil {
		return beyond(err)
	}
	if root := binary.NativeEndian.Uint64(head[:]); root != 0 { // else it is in the value
		return w.tree(root, depth)
	}
	return nil
}
