package snapshots

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel/fault"
)

// What bbolt writes into a page (go.etcd.io/bbolt/internal/common): the page's number (8 bytes), its
// kind (2), how many elements it has (2), how many pages it goes on for (4), the elements of 16 bytes.
// Numbers are in the machine's order of bytes.
const (
	pageHeader  = 16
	pageElement = 16

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
)

// longestPage bounds the length of a branch with all pages that it goes on for, in bytes, and how far
// into a leaf its first key may be. A key of ours is 64 bytes at most, so one page is enough.
const longestPage = 1 << 20

// checkPages checks how the pages of the file at path belong together, in one pass from its beginning
// to its end. A page is a meta page, or in the free list, or one other leads to it: a branch, whose key
// is the first key there, the name of a table, the meta page, or the page that goes on for it. The
// loading has checked what is in the leaves of its tables. Nothing may be written meanwhile.
func checkPages(tx *bolt.Tx, path string) error {
	err := fault.Catch(func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		size := tx.DB().Info().PageSize
		n := tx.Size() / int64(size)
		p := pages{size: size, free: make([]bool, n), head: make([]bool, n), referred: make([]bool, n), keys: make([]uint32, n)}
		return p.check(tx, f)
	})
	if err != nil {
		return classify(fmt.Errorf("page structure: %w", err))
	}
	return nil
}

// pages is what is known of the pages of a file, by their numbers.
type pages struct {
	size     int      // of one page, in bytes
	free     []bool   // in the free list
	head     []bool   // a branch, a leaf or the free list begins there
	referred []bool   // something leads there
	keys     []uint32 // checksum of a page's first key, xor that of the branch's key for it: 0 if they are equal
}

func (p *pages) check(tx *bolt.Tx, f io.ReaderAt) error {
	freelist, err := p.readFreelist(tx, f)
	if err != nil {
		return err
	}
	if err := p.refer(freelist); err != nil {
		return err
	}
	if err := p.scan(f, freelist); err != nil {
		return err
	}
	if err := p.referRoot(tx.Cursor().Bucket()); err != nil {
		return err
	}
	// Not before the scan, which has found circles.
	err = tx.ForEach(func(_ []byte, table *bolt.Bucket) error { return p.referRoot(table) })
	if err != nil {
		return err
	}
	for id := range p.head {
		switch {
		case p.head[id] && !p.referred[id]:
			return fmt.Errorf("page %d: is in use, and nothing leads to it", id)
		case p.referred[id] && !p.head[id]:
			return fmt.Errorf("page %d: something leads to it, and it is free or part of another", id)
		case p.keys[id] != 0:
			return fmt.Errorf("page %d: does not begin with the key of the branch that leads to it", id)
		}
	}
	return nil
}

// referRoot notes where a table begins, unless it is part of the leaf with its name.
func (p *pages) referRoot(table *bolt.Bucket) error {
	root := uint64(table.Root())
	if root == 0 {
		return nil
	}
	if err := p.refer(root); err != nil {
		return err
	}
	p.keys[root] = 0 // no branch leads to it
	return nil
}

// refer notes that something leads to a page, as nothing else may.
func (p *pages) refer(id uint64) error {
	if id < 2 || id >= uint64(len(p.referred)) || p.referred[id] {
		return fmt.Errorf("page %d: is referred to twice, or does not exist", id)
	}
	p.referred[id] = true
	return nil
}

// readFreelist reads the free list that the meta page of tx leads to, and returns the number of its
// first page.
func (p *pages) readFreelist(tx *bolt.Tx, f io.ReaderAt) (uint64, error) {
	meta := make([]byte, pageHeader+64)
	if _, err := f.ReadAt(meta, int64(tx.ID()%2)*int64(p.size)); err != nil {
		return 0, err
	}
	first := number(meta[pageHeader+32:])
	if first >= uint64(len(p.free)) {
		return 0, fmt.Errorf("page %d, of the free list, does not exist", first)
	}
	list := make([]byte, pageHeader+8*(1+len(p.free))) // there is no longer one
	n, err := f.ReadAt(list, int64(first)*int64(p.size))
	if err != nil && err != io.EOF {
		return 0, err
	}
	end, err := p.end(first, list)
	if err != nil {
		return 0, err
	}
	return first, p.setFree(uint64(elements(list)), list[pageHeader:min(n, int(end-first)*p.size)])
}

// setFree notes the pages of a free list: n of them, or as many as the first number says.
func (p *pages) setFree(n uint64, list []byte) error {
	if n == 0xFFFF {
		n, list = number(list), list[8:]
	}
	if n > uint64(len(list)/8) {
		return fmt.Errorf("the free list has %d pages", n)
	}
	for ; n > 0; n, list = n-1, list[8:] {
		id := number(list)
		if id < 2 || id >= uint64(len(p.free)) || p.free[id] {
			return fmt.Errorf("page %d: is free twice, or does not exist", id)
		}
		p.free[id] = true
	}
	return nil
}

// end returns the number of the page after one with this header and the pages that it goes on for. None
// of them may be free.
func (p *pages) end(id uint64, header []byte) (uint64, error) {
	end := id + 1 + uint64(binary.NativeEndian.Uint32(header[12:]))
	if said := number(header); said != id || end > uint64(len(p.free)) {
		return 0, fmt.Errorf("page %d: says that it is page %d, and the next one %d", id, said, end)
	}
	for i := id; i < end; i++ {
		if p.free[i] {
			return 0, fmt.Errorf("page %d: is free, and in use", i)
		}
	}
	return end, nil
}

// scan reads all pages that are not free.
func (p *pages) scan(f io.ReaderAt, freelist uint64) error {
	n, size := uint64(len(p.free)), int64(p.size)
	in := bufio.NewReaderSize(io.NewSectionReader(f, 2*size, (int64(n)-2)*size), longestPage)
	next := uint64(0)
	for id := uint64(2); id < n; id = next { // 0 and 1 are meta pages
		next = id + 1
		if !p.free[id] {
			header, err := in.Peek(pageHeader)
			if err != nil {
				return err
			}
			if next, err = p.end(id, header); err != nil {
				return err
			}
			kind := binary.NativeEndian.Uint16(header[8:])
			if kind != branchPage && kind != leafPage && (kind != freelistPage || id != freelist) {
				return fmt.Errorf("page %d: is of no known kind: %#x", id, kind)
			}
			p.head[id] = true
			page, err := in.Peek(min(int(next-id)*p.size, longestPage))
			if err != nil {
				return err
			}
			if err := p.read(id, kind, page); err != nil {
				return fmt.Errorf("page %d: %w", id, err)
			}
		}
		if _, err := in.Discard(int(next-id) * p.size); err != nil {
			return err
		}
	}
	return nil
}

// read notes the first key of a page and, of a branch, where it leads.
func (p *pages) read(id uint64, kind uint16, page []byte) error {
	n := elements(page)
	if kind == freelistPage || n == 0 {
		return nil
	}
	if pageHeader+pageElement*n > len(page) {
		return errors.New("its elements do not fit")
	}
	if kind == leafPage {
		first, err := key(page, 0, 4) // after its flags
		p.keys[id] ^= crc32.ChecksumIEEE(first)
		return err
	}
	var last []byte
	for i := range n {
		k, err := key(page, i, 0)
		if err != nil {
			return err
		}
		if bytes.Compare(last, k) >= 0 {
			return errors.New("its keys are out of order")
		}
		child := number(page[pageHeader+pageElement*i+8:])
		if err := p.refer(child); err != nil {
			return err
		}
		sum := crc32.ChecksumIEEE(k)
		if p.keys[child] ^= sum; i == 0 {
			p.keys[id] ^= sum
		}
		last = k
	}
	return nil
}

// key is the key of an element. At place, the element has the key's distance from itself (4 bytes) and
// its length (4).
func key(page []byte, element, place int) ([]byte, error) {
	at := pageHeader + pageElement*element
	from := uint64(at) + uint64(binary.NativeEndian.Uint32(page[at+place:]))
	to := from + uint64(binary.NativeEndian.Uint32(page[at+place+4:]))
	if to > uint64(len(page)) {
		return nil, errors.New("its keys do not fit")
	}
	return page[from:to], nil
}

func number(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

func elements(page []byte) int { return int(binary.NativeEndian.Uint16(page[10:])) }
