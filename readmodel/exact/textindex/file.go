package textindex

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"example.org/registry/events/failpoint"
)

// Dir is the directory of blocks. Their files have no name, so no other program can damage them,
// and they vanish with the process.
type Dir string

// Open makes an empty directory and deletes what an earlier process left: an index is a cache. An
// existing directory stays, since it may be a mounted disk.
func Open(path string) (Dir, error) {
	err := empty(path)
	if err == nil {
		err = cmp.Or(failpoint.Hit("index/emptied"), os.MkdirAll(path, 0o700))
	}
	if err != nil {
		return "", fmt.Errorf("text index: %w", err)
	}
	return Dir(path), nil
}

func empty(path string) error {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return os.RemoveAll(path) // removes a link, not its target
	}
	inside, err := os.ReadDir(path)
	for _, entry := range inside {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, entry.Name())))
	}
	return err
}

// Write makes a block of the builder's texts, and resets the builder.
func (d Dir) Write(b *Builder) (*Block, error) {
	defer b.Reset()
	data, err := d.mapped(b.writeTo)
	if err != nil {
		return nil, fmt.Errorf("text index: %w", err)
	}
	populate(data)
	_ = failpoint.Hit("index/kept") // a place to die at: mapped memory survives
	b.Vocabulary.publish()
	block := &Block{data: data, vocabulary: b.Vocabulary}
	runtime.AddCleanup(block, func(m []byte) { _ = unix.Munmap(m) }, data) // on an error it stays mapped
	return block, nil
}

// mapped writes a file and maps it.
func (d Dir) mapped(write func(*bufio.Writer) error) (m []byte, err error) {
	f, err := os.CreateTemp(string(d), "block-")
	if err != nil {
		return nil, err
	}
	defer func() {
		// If a mapped file cannot be removed, the next Open does it.
		if rerr := os.Remove(f.Name()); err != nil {
			err = errors.Join(err, rerr)
		}
	}()
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = errors.Join(cerr, unix.Munmap(m))
		}
	}()
	if err := failpoint.Hit("index/before-write"); err != nil {
		return nil, err
	}
	if err := write(bufio.NewWriterSize(f, 1<<16)); err != nil {
		return nil, err
	}
	if err := failpoint.Hit("index/written"); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
}
