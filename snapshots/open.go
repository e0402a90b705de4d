package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel"
)

// Open loads the store into a new model, and publishes the model's view. If there is no store, it
// calls cfg.Restore to get one, and otherwise makes an empty one. The caller ends the store with
// Close.
//
// A store that does not load is no store: it is renamed (see the package's promises), and Open
// continues as if there had been none. An error is the system's (permission, no space, a lock), in
// one line with the remedy, or that of ctx or cfg.Restore; nothing has been renamed then.
func Open(ctx context.Context, cfg Config) (*Store, *readmodel.Model, error) {
	s := newStore(cfg.Path, cfg.Logger)
	s.known = knownPath(cfg.Path)
	model, err := s.load(ctx)
	if errors.Is(err, fs.ErrNotExist) && cfg.Restore != nil {
		if err := cfg.Restore(ctx); err != nil {
			return nil, nil, err
		}
		model, err = s.load(ctx)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.create(); err != nil {
			return nil, nil, storeError(err)
		}
		model, err = readmodel.New(), nil
	}
	if err != nil {
		return nil, nil, err
	}
	s.owed = s.owes()
	return s, model, nil
}

// load loads the file. If there is none, or it had to be renamed aside, the error matches
// fs.ErrNotExist.
func (s *Store) load(ctx context.Context) (*readmodel.Model, error) {
	unfinished, err := s.unmark()
	switch {
	case err != nil:
		return nil, storeError(err)
	case !isThere(s.path):
		return nil, fs.ErrNotExist
	case unfinished:
		return nil, s.setAside(s.path+whileLoading, errors.New("an earlier process ended while it loaded the store"))
	}
	writeMarker(s.path + loadingSuffix)
	model, err := s.loadFile(ctx)
	_, markErr := s.unmark()
	if err = cmp.Or(err, markErr); err == nil {
		return model, nil
	}
	_ = s.closeFile() // err is more specific
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !errors.As(err, &damage{}):
		return nil, storeError(err)
	}
	aside, nameErr := freeName(s.path, damagedLabel, time.Now())
	if nameErr != nil {
		return nil, storeError(nameErr)
	}
	return nil, s.setAside(aside, err)
}

// writeMarker makes a file that is left over if the process ends before it removes it. If it cannot be
// made, because the disk is full, loading continues. It need not survive a power failure.
func writeMarker(path string) {
	if f, err := os.Create(path); err == nil {
		_ = f.Close()
	}
}

// unmark removes the mark and reports whether there was one.
func (s *Store) unmark() (marked bool, err error) {
	marked = isThere(s.path + loadingSuffix)
	return marked, removeIfThere(s.path + loadingSuffix)
}

// loadFile opens the file and loads its content.
func (s *Store) loadFile(ctx context.Context) (*readmodel.Model, error) {
	start := time.Now()
	readAhead(s.path)
	if err := s.openSaved(); err != nil {
		return nil, err
	}
	l := &loader{workers: runtime.GOMAXPROCS(0), rerender: s.saved.Render != readmodel.RenderVersion}
	model := readmodel.New()
	rendered, err := s.fill(ctx, l, model)
	if err != nil {
		return nil, err
	}
	if l.rerender {
		s.saveRendered(rendered)
	}
	s.logger.Info("store loaded", "path", s.path, "checkpoint", s.saved.Checkpoint.Sequence,
		"digest", s.saved.Digest, "records", s.saved.records(), "rerendered", l.rerender,
		"took", time.Since(start).Round(time.Millisecond).String())
	return model, nil
}

// create makes an empty file and opens it.
func (s *Store) create() error {
	if err := createFile(s.path, newMeta()); err != nil {
		return err
	}
	return s.openSaved()
}

// openSaved opens the file and reads its meta record.
func (s *Store) openSaved() (err error) {
	if s.db, s.file, err = openFile(s.path); err != nil {
		return err
	}
	m, err := metaOf(s.db)
	if err == nil {
		err = current(m.Projection)
	}
	if err != nil {
		return classify(err)
	}
	s.setSaved(m)
	return nil
}

// fill fills a model with the store's records and compares it with the saved digest and counts
// (promise 4, readmodel/doc.go). If l renders again, fill also returns the rendered records.
func (s *Store) fill(ctx context.Context, l *loader, model *readmodel.Model) (rendered []readmodel.Record, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		model.BeginBulk()
		model.Load(nil, s.saved.Checkpoint.Sequence) // what has been read may have left no record
		counts, err := l.read(ctx, walk(tx), func(b *batch) error {
			model.Load(b.records, s.saved.Checkpoint.Sequence)
			if l.rerender {
				rendered = append(rendered, b.records...)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := s.saved.matches(counts, model.Digest()); err != nil {
			return err
		}
		model.EndBulk()
		return nil
	})
	return rendered, err
}

// saveRenderedPart is how many records one transaction of saveRendered writes.
const saveRenderedPart = 20_000

// saveRendered replaces every rendering after a load of a store of another render version. The last
// transaction writes the new version, so after a crash or an error, such as a full disk, all of it
// is repeated. An error does not prevent the start.
func (s *Store) saveRendered(records []readmodel.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.saved
	next.Counts = maps.Clone(next.Counts)
	err := func() error {
		if err := s.ready(); err != nil {
			return err
		}
		for part := range slices.Chunk(records, saveRenderedPart) {
			if err := s.commit(next, func(tx *bolt.Tx) error { return writeRecords(tx, part, next) }); err != nil {
				return err
			}
		}
		next.Render = readmodel.RenderVersion
		return s.commit(next, next.write)
	}()
	if err != nil {
		s.logger.Warn("store keeps an older rendering; the next start renders it again", "error", err)
	}
}

// setAside renames a file that does not load. Its error matches fs.ErrNotExist: there is no store
// any more.
func (s *Store) setAside(aside string, reason error) error {
	if err := rename(s.path, aside); err != nil {
		return fmt.Errorf("store: set aside (%w): %w; %s", reason, err, remedy(err))
	}
	s.logger.Error("store set aside; starting as without one",
		"path", s.path, "aside", filepath.Base(aside), "reason", reason.Error())
	return fs.ErrNotExist
}
