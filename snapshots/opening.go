package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
)

// openingSuffix follows the store's name in that of the mark. The mark is a file that stands while the
// store is being opened, so that it is left over if the process dies of what it reads. It also stands
// after the check has found damage ("How damage is found" in the package's documentation).
const openingSuffix = ".opening"

const (
	// maxDeaths is how many openings may fail to end. Then the store is set aside.
	maxDeaths = 2
	// foundDamage stands in the mark in place of a number of deaths: the check has found damage.
	foundDamage = maxDeaths + 1
)

// died returns how many openings of this very file have begun and not ended, or foundDamage. The mark
// names the file by its length and time: it says nothing about one that somebody has put in its place
// since.
func (s *Store) died() int {
	info, err := os.Stat(s.path)
	if err != nil {
		return 0
	}
	var size, changed int64
	var n int
	text, _ := os.ReadFile(s.path + openingSuffix) // without one, none has died
	_, err = fmt.Sscanln(string(text), &size, &changed, &n)
	if err != nil || size != info.Size() || changed != info.ModTime().UnixNano() {
		return 0
	}
	return n
}

// mark writes that n openings have not ended, or foundDamage; for 0 it removes the mark. It does what it can: on a
// full disk there is no mark, which is no reason not to open. It need not survive a power failure.
func (s *Store) mark(n int) {
	if n == 0 {
		_ = os.Remove(s.path + openingSuffix)
		return
	}
	if info, err := os.Stat(s.path); err == nil {
		text := fmt.Sprintln(info.Size(), info.ModTime().UnixNano(), n)
		_ = os.WriteFile(s.path+openingSuffix, []byte(text), 0o600)
	}
}

// guarded runs open, which reads the file, so that a death in it does not happen again and again.
func (s *Store) guarded(ctx context.Context, open func() error) (err error) {
	died := s.died()
	switch {
	case died == foundDamage:
		s.mark(0)
		return damage{errors.New("its page structure is damaged, as the check after an earlier start has found")}
	case died >= maxDeaths:
		s.mark(0)
		return damage{errors.New("the process crashed while opening the file, and again while copying its records")}
	}
	s.mark(died + 1)
	if died > 0 {
		err = s.renew(ctx)
		s.mark(died + 1) // the file is a new one
	}
	if err == nil {
		err = open()
	}
	if err != nil && !errors.As(err, &damage{}) {
		s.mark(died) // the system or the caller ended it, so the file is as suspect as before
		return err
	}
	s.mark(0)
	return err
}

// renew copies the store's records into a new file and puts that in its place: what is wrong with
// the pages of the old one stays behind. It reads in this goroutine and the loader's, whose faults
// are caught, and never the free list.
func (s *Store) renew(ctx context.Context) error {
	start := time.Now()
	temporary := s.path + newSuffix
	err := removeIfThere(temporary)
	if err == nil {
		err = copyFile(ctx, s.path, temporary)
	}
	if err == nil {
		err = os.Rename(temporary, s.path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(temporary))
	}
	s.logger.Warn("the process crashed while opening the store; its records are good and have been copied into a new file",
		"path", s.path, "took", time.Since(start).Round(time.Millisecond).String())
	return syncDir(filepath.Dir(s.path))
}

// copyFile copies records and notes of the store at path into a new file, verifies that and syncs
// it.
func copyFile(ctx context.Context, path, to string) error {
	from, err := openToRead(path)
	if err != nil {
		return err
	}
	defer from.Close()
	var m meta
	err = from.View(func(tx *bolt.Tx) error {
		m, err = copyRecords(ctx, tx, to, &throttle{}, true)
		return err
	})
	if err == nil {
		_, err = verifyFile(ctx, to, m, ArchiveConfig{})
	}
	if err != nil && ctx.Err() == nil {
		return classify(err)
	}
	return cmp.Or(ctx.Err(), err, syncFile(to))
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
