package snapshots

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel/fault"
)

// erasePages is how many pages eraseFree checks.
const erasePages = 1024

// EraseFree overwrites the free pages of the store's file with zeros, since bbolt leaves deleted
// data in them. done is false if an archive was being copied, whose pages may be among the free
// ones; try again later. Saves wait at most for a part of the work.
func (s *Store) EraseFree(ctx context.Context, cfg ArchiveConfig) (done bool, err error) {
	pace := &throttle{rest: cfg.Rest}
	for page := 0; page >= 0; {
		if err := pace.wait(ctx); err != nil {
			return false, err
		}
		if page, done, err = s.erasePart(page); err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// erasePart erases free pages from page on. done is false if a read transaction is open.
func (s *Store) erasePart(page int) (next int, done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return 0, false, err
	}
	if s.readers.Load() > 0 {
		return 0, false, nil
	}
	err = fault.Catch(func() error {
		next, err = eraseFree(s.db, s.file, page)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("store: erase free pages: %w", err)
	}
	return next, true, nil
}

// eraseFree overwrites the free ones among the pages from page on with zeros. When they are on the
// disk, it returns the start of the next part, or -1 after the last. file is the one that db has
// open: its name may belong to another file by now. db must have no reader. At each moment the file
// is as consistent as during a transaction of bbolt: the pages are those that bbolt would use next.
func eraseFree(db *bolt.DB, file *os.File, page int) (next int, err error) {
	tx, err := db.Begin(true) // releases the pages that earlier transactions have freed
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written in it
	size := db.Info().PageSize
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	last := int((info.Size() + int64(size) - 1) / int64(size))
	next = min(last, page+erasePages)
	zero, content := make([]byte, size), make([]byte, size)
	wrote := false
	for page = max(page, 2); page < next; page++ { // the first two are meta pages
		p, err := tx.Page(page)
		if err != nil {
			return 0, err
		}
		if p != nil && p.Type != "free" { // nil: beyond the end, maybe of a failed transaction
			continue
		}
		at := int64(page) * int64(size)
		n, err := file.ReadAt(content, at)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if bytes.Equal(content[:n], zero[:n]) {
			continue
		}
		wrote = true
		if _, err := file.WriteAt(zero[:n], at); err != nil {
			return 0, err
		}
	}
	if next == last {
		next = -1
	}
	if wrote {
		return next, file.Sync()
	}
	return next, nil
}
