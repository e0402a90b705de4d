package gramindex

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/edsrzf/mmap-go"
)

// Dir is where blocks are kept: in files without a name, which nobody can damage and which are
// gone when the process is. One goroutine owns it.
type Dir struct {
	path    string
	scratch []byte
}

// Open makes an empty directory. What is there is removed: an index is a cache.
func Open(path string) (*Dir, error) {
	err := os.RemoveAll(path)
	if err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("text index: %w", err)
	}
	return &Dir{path: path}, nil
}

// Shrunk is d without the memory that Keep works in. Nil is nil.
func (d *Dir) Shrunk() *Dir {
	if d != nil {
		d.scratch = nil
	}
	return d
}

// Keep makes a block of what the builder has, and resets the builder.
func (d *Dir) Keep(b *Builder) (*Block, error) {
	defer b.Reset()
	d.scratch = b.appendBlock(d.scratch[:0])
	data, err := d.mapped(d.scratch)
	if err != nil {
		return nil, fmt.Errorf("text index: %w", err)
	}
	block := &Block{data: data, n: len(b.lists)}
	runtime.AddCleanup(block, func(m mmap.MMap) { _ = m.Unmap() }, data) // an error would leave it mapped
	return block, nil
}

// mapped writes data into a file and maps it.
func (d *Dir) mapped(data []byte) (m mmap.MMap, err error) {
	f, err := os.CreateTemp(d.path, "block-")
	if err != nil {
		return nil, err
	}
	defer func() {
		// Where a mapped file cannot be removed, the next Open does it.
		if rerr := os.Remove(f.Name()); err != nil {
			err = errors.Join(err, rerr)
		}
	}()
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = errors.Join(cerr, m.Unmap())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return nil, err
	}
	return mmap.Map(f, mmap.RDONLY, 0)
}
