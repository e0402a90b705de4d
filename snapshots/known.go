package snapshots

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel"
)

// knownPath returns the path of the file that says what the store at path has held, such as
// registry.known.
func knownPath(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) + ".known" }

// writeKnown writes what a complete store holds, in one step.
func writeKnown(path string, m meta) error {
	b, err := json.Marshal(readmodel.Owed{Checkpoint: m.Checkpoint, Subjects: m.records()})
	if err != nil {
		return err
	}
	temporary := path + newSuffix
	err = func() error {
		f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		return errors.Join(err, f.Sync(), f.Close())
	}()
	if err == nil {
		err = failpoint.Hit("store/before-known")
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(temporary))
	}
	return nil
}

// readKnown reads what writeKnown wrote, or returns nil if nothing did. What cannot be read is of an
// unknown number of subjects, and older than any marker that is made from now on.
func readKnown(path string) *readmodel.Owed {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var had readmodel.Owed
	if err != nil || json.Unmarshal(b, &had) != nil || had.Subjects < 0 {
		had = readmodel.Owed{Unknown: true}
		had.HistoryRevision = time.Now().UnixMilli()
		if info, err := os.Stat(path); err == nil {
			had.HistoryRevision = info.ModTime().UnixMilli()
		}
	}
	return &had
}

// owes returns what the directory has held and the store that was opened does not hold. A store that
// is complete and has as many subjects owes nothing.
func (s *Store) owes() *readmodel.Owed {
	had := readKnown(s.known)
	if had == nil || s.saved.Checkpoint.Complete && s.saved.records() >= had.Subjects || had.Subjects == 0 && !had.Unknown {
		return nil
	}
	return had
}

// keepKnown writes the file after a transaction. A file that cannot be written says less than the
// store holds, and is written again after the next.
func (s *Store) keepKnown() {
	if s.known == "" || !s.saved.Checkpoint.Complete {
		return
	}
	if err := writeKnown(s.known, s.saved); err != nil {
		s.logger.Warn("the file that says what the store holds cannot be written; trying again at the next save", "path", s.known, "error", err)
	}
}
