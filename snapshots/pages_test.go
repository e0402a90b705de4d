package snapshots

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// checked is what checkPages says of a file.
func checked(t testing.TB, file []byte) error {
	t.Helper()
	path := place(t, file)
	db, err := openToRead(path)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(func(tx *bolt.Tx) error { return checkPages(tx, path) })
}

// inUse returns where the pages of a kind that are in use begin in a good file, and all that are free.
func inUse(file []byte, kind uint16) (places, free []int) {
	size := os.Getpagesize()
	newest := 0
	if number(file[size+pageHeader+48:]) > number(file[pageHeader+48:]) {
		newest = size
	}
	list := file[int(number(file[newest+pageHeader+32:]))*size:]
	isFree := map[int]bool{}
	for i := range int(binary.NativeEndian.Uint16(list[10:])) {
		at := int(number(list[pageHeader+8*i:])) * size
		free, isFree[at] = append(free, at), true
	}
	for at := 2 * size; at < len(file); at += size {
		if !isFree[at] && int(number(file[at:]))*size == at && binary.NativeEndian.Uint16(file[at+8:]) == kind {
			places = append(places, at)
		}
	}
	return places, free
}

// Whatever is wrong with how pages belong together is found.
func TestCheckPages(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 3000)
	for range 3 { // leave free pages
		if err := s.Save(feed(m, sample(30)...)); err != nil {
			t.Fatal(err)
		}
	}
	file := readFile(t, copyOf(t, s))
	size := os.Getpagesize()
	branches, free := inUse(file, branchPage)
	leaves, _ := inUse(file, leafPage)
	lists, _ := inUse(file, freelistPage)
	if len(branches) < 1 || len(leaves) < 10 || len(lists) != 1 || len(free) < 3 {
		t.Fatalf("%d branches, %d leaves, %d free lists, %d free pages", len(branches), len(leaves), len(lists), len(free))
	}
	branch, leaf, list := branches[0]+pageHeader, leaves[len(leaves)/2], lists[0]
	put16 := func(b []byte, at, v int) { binary.NativeEndian.PutUint16(b[at:], uint16(v)) }
	put32 := func(b []byte, at, v int) { binary.NativeEndian.PutUint32(b[at:], uint32(v)) }
	put64 := func(b []byte, at, v int) { binary.NativeEndian.PutUint64(b[at:], uint64(v)) }
	beforeFree := slices.IndexFunc(leaves, func(at int) bool { return slices.Contains(free, at+size) })
	beforeLeaf := slices.IndexFunc(leaves, func(at int) bool { return slices.Contains(leaves, at+size) })
	beforeList := 0
	for _, at := range leaves {
		if at < list {
			beforeList = at
		}
	}
	if beforeFree < 0 || beforeLeaf < 0 || beforeList == 0 {
		t.Fatal("no leaf before a free page, another leaf and the free list")
	}
	for what, c := range map[string]struct {
		spoil func(b []byte)
		want  string
	}{
		"nothing":                           {func([]byte) {}, ""},
		"free list too long":                {func(b []byte) { put16(b, list+10, 5000) }, "the free list has"},
		"free list much too long":           {func(b []byte) { put16(b, list+10, 0xFFFF); put64(b, list+pageHeader, 500000) }, "the free list has 500000"},
		"free list too short":               {func(b []byte) { put16(b, list+10, len(free)-1) }, "page "}, // a branch or a leaf of before
		"free twice":                        {func(b []byte) { put64(b, list+pageHeader, free[1]/size) }, "is free twice"},
		"free beyond the end":               {func(b []byte) { put64(b, list+pageHeader, len(b)/size) }, "does not exist"},
		"a leaf is free":                    {func(b []byte) { put16(b, list+10, len(free)+1); put64(b, list+pageHeader+8*len(free), leaf/size) }, "it is free or part of another"},
		"a leaf goes on into a free page":   {func(b []byte) { put32(b, leaves[beforeFree]+12, 1) }, "is free, and in use"},
		"a leaf goes on into the free list": {func(b []byte) { put32(b, beforeList+12, (list-beforeList)/size) }, "page "},
		"the free list is free":             {func(b []byte) { put16(b, list+10, len(free)+1); put64(b, list+pageHeader+8*len(free), list/size) }, "it is free or part of another"},
		"the free list goes on":             {func(b []byte) { put32(b, list+12, 1<<30) }, "and the next one"},
		"a key that is not the leaf's": {func(b []byte) {
			b[branch+int(binary.NativeEndian.Uint32(b[branch:])+binary.NativeEndian.Uint32(b[branch+4:]))-1]++
		}, "does not begin with the key"},
		"a leaf goes on into the next one": {func(b []byte) { put32(b, leaves[beforeLeaf]+12, 1) }, "it is free or part of another"},
		"a leaf goes on beyond the end":    {func(b []byte) { put32(b, leaf+12, 1<<20) }, "and the next one"},
		"a leaf of another number":         {func(b []byte) { put64(b, leaf, 7) }, "says that it is page 7"},
		"a leaf of another kind":           {func(b []byte) { put16(b, leaf+8, 3) }, "is of no known kind: 0x3"},
		"a branch into a free page":        {func(b []byte) { put64(b, branch+8, free[0]/size) }, "page "},
		"a branch into one page twice":     {func(b []byte) { put64(b, branch+8, int(number(b[branch+24:]))) }, "is referred to twice"},
		"a branch beyond the end":          {func(b []byte) { put64(b, branch+8, len(b)/size) }, "does not exist"},
		"more elements than fit":           {func(b []byte) { put16(b, branch-pageHeader+10, size) }, "its elements do not fit"},
		"a key beyond the branch":          {func(b []byte) { put32(b, branch, 1<<20) }, "its keys do not fit"},
		"keys out of order":                {func(b []byte) { put32(b, branch+16+4, 0) }, "its keys are out of order"},
	} {
		b := bytes.Clone(file)
		c.spoil(b)
		err := checked(t, b)
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &damage{}) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A long free list has its length in front.
func TestLongFreeList(t *testing.T) {
	t.Parallel()
	const n = 70_000
	list := binary.NativeEndian.AppendUint64(nil, n)
	for id := range uint64(n) {
		list = binary.NativeEndian.AppendUint64(list, id+2)
	}
	p := pages{free: make([]bool, n+3)}
	if err := p.setFree(0xFFFF, list); err != nil || slices.Contains(p.free[2:n+2], false) || p.free[n+2] {
		t.Errorf("%v", err)
	}
}

// FuzzCheckPages: whatever a file says, checkPages returns, and says that it is damaged or nothing.
func FuzzCheckPages(f *testing.F) {
	s, _ := filled(f, 50)
	file := readFile(f, copyOf(f, s))
	f.Add(uint32(0), byte(0))
	for _, at := range []uint32{0, 10, 12, 16, 24} {
		for page := 2; page < len(file)/os.Getpagesize(); page += 3 {
			f.Add(uint32(page*os.Getpagesize())+at, byte(2))
		}
	}
	f.Fuzz(func(t *testing.T, at uint32, flip byte) {
		b := bytes.Clone(file)
		b[int(at)%len(b)] ^= flip
		if err := checked(t, b); err != nil && (flip == 0 || !errors.As(err, &damage{})) {
			t.Error(err)
		}
	})
}
