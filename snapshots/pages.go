package snapshots

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel/fault"
)

// What bbolt writes into a page (go.etcd.io/bbolt/internal/common): the page's number (8 bytes), its
// kind (2), how many elements it has (2), how many pages it goes on for (4), the elements. Numbers are
// in the machine's order of bytes.
const (
	pageHeader = 16

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
)

// longestPage bounds the length of a branch with all pages that it goes on for, in bytes. A key of ours
// is 64 bytes at most, so one page is enough.
const longestPage = 1 << 20

// checkPages checks how the pages of the file at path belong together, in one pass from its beginning
// to its end. Each is in the free list, or one other page leads to it. What is in the leaves, and in
// which order, the loading has checked. Nothing may be written meanwhile.
func checkPages(tx *bolt.Tx, path string) error {
	err := fault.Catch(func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		size := tx.DB().Info().PageSize
		n := tx.Size() / int64(size)
		p := pages{size: size, free: make([]bool, n), head: make([]bool, n), referred: make([]bool, n)}
		return p.check(tx, f)
	})
	if err != nil {
		return classify(fmt.Errorf("page structure: %w", err))
	}
	return nil
}

// pages is what is known of the pages of a file, by their numbers.
type pages struct {
	size     int    // of one page, in bytes
	free     []bool // in the free list
	head     []bool // a branch or a leaf begins there
	referred []bool // a branch or the name of a table leads there
}

func (p *pages) check(tx *bolt.Tx, f io.ReaderAt) error {
	freelist, err := p.readFreelist(tx, f)
	if err != nil {
		return err
	}
	if err := p.refer(uint64(tx.Cursor().Bucket().Root())); err != nil {
		return err
	}
	err = tx.ForEach(func(_ []byte, table *bolt.Bucket) error {
		if root := uint64(table.Root()); root != 0 { // else the table is part of the leaf with its name
			return p.refer(root)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := p.scan(f, freelist); err != nil {
		return err
	}
	for id := range p.head {
		if p.head[id] && !p.referred[id] {
			return fmt.Errorf("page %d: is in use, and nothing leads to it", id)
		}
		if p.referred[id] && !p.head[id] {
			return fmt.Errorf("page %d: something leads to it, and it is free or part of another", id)
		}
	}
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
	for id := range 2 {
		meta := make([]byte, pageHeader+64)
		if _, err := f.ReadAt(meta, int64(id*p.size)); err != nil {
			return 0, err
		}
		if number(meta[pageHeader+48:]) != uint64(tx.ID()) {
			continue
		}
		first := number(meta[pageHeader+32:])
		header := make([]byte, pageHeader)
		if _, err := f.ReadAt(header, int64(first)*int64(p.size)); err != nil {
			return 0, err
		}
		end, err := p.end(first, header)
		if err != nil {
			return 0, err
		}
		list := make([]byte, int(end-first)*p.size)
		if _, err := f.ReadAt(list, int64(first)*int64(p.size)); err != nil {
			return 0, err
		}
		return first, p.setFree(uint64(binary.NativeEndian.Uint16(header[10:])), list[pageHeader:])
	}
	return 0, errors.New("no meta page is that of the last transaction")
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

// end returns the number of the page after one with this header and those that it goes on for, which
// must not be free.
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

// scan reads the headers of all pages that are not free, and the branches.
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
			switch kind := binary.NativeEndian.Uint16(header[8:]); {
			case kind == leafPage:
				p.head[id] = true
			case kind == branchPage:
				p.head[id] = true
				page, err := in.Peek(int(next-id) * p.size)
				if err == nil {
					err = p.branch(page)
				}
				if err != nil {
					return fmt.Errorf("page %d: %w", id, err)
				}
			case kind != freelistPage || id != freelist:
				return fmt.Errorf("page %d: is of no known kind: %#x", id, kind)
			}
		}
		if _, err := in.Discard(int(next-id) * p.size); err != nil {
			return err
		}
	}
	return nil
}

// branch notes where a branch leads. Its elements have where their key is (4 bytes, from the element
// on), the length of that (4) and a page (8), in the order of the keys.
func (p *pages) branch(page []byte) error {
	n := int(binary.NativeEndian.Uint16(page[10:]))
	if pageHeader+16*n > len(page) {
		return errors.New("its elements do not fit")
	}
	var last []byte
	for i := range n {
		at := pageHeader + 16*i
		from := uint64(at) + uint64(binary.NativeEndian.Uint32(page[at:]))
		to := from + uint64(binary.NativeEndian.Uint32(page[at+4:]))
		if to > uint64(len(page)) {
			return errors.New("its keys do not fit")
		}
		key := page[from:to]
		if i > 0 && bytes.Compare(last, key) >= 0 {
			return errors.New("its keys are out of order")
		}
		last = key
		if err := p.refer(number(page[at+8:])); err != nil {
			return err
		}
	}
	return nil
}

func number(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }
