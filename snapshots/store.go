package snapshots

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
)

// ErrDamaged matches errors of a store's file itself: another store must replace it.
var ErrDamaged = errors.New("the file is damaged")

// Store is an open store. Any goroutine may call its methods; one at a time calls Save.
type Store struct {
	meta atomic.Pointer[Meta] // as saved

	mu     sync.Mutex
	path   string // changes in Replace
	db     *bolt.DB
	failed error     // of the last transaction
	erased time.Time // when free pages were erased
	closed bool
}

const (
	statesBucket = "states"
	metaBucket   = "meta"
	metaKey      = "meta"
)

// Open opens or makes the file at path, whose directory the caller has locked (LockDir), and loads it
// into a new model. An error that matches ErrDamaged is the file's own fault. Any other error is that of
// ctx, or names the remedy.
func Open(ctx context.Context, path string) (*Store, *readmodel.Model, error) {
	s, model, err := openStore(ctx, path)
	switch {
	case err == nil:
		return s, model, nil
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case isSystems(err):
		return nil, nil, fmt.Errorf("store %s: %w; %s", path, err, remedy(err))
	}
	return nil, nil, fmt.Errorf("store %s: %w: %w", path, ErrDamaged, err)
}

func openStore(ctx context.Context, path string) (*Store, *readmodel.Model, error) {
	if err := compact(path); err != nil {
		return nil, nil, err
	}
	s, err := openFile(path)
	if err != nil {
		return nil, nil, err
	}
	model, err := s.load(ctx)
	if err != nil {
		_ = s.Close() // err is more specific
		return nil, nil, err
	}
	return s, model, nil
}

// openFile opens or makes the file, and reads its meta record. A file that it cannot make is not left.
func openFile(path string) (*Store, error) {
	_, statErr := os.Stat(path)
	s := &Store{path: path}
	if err := s.open(); err != nil {
		if errors.Is(statErr, fs.ErrNotExist) {
			_ = removeIfThere(path) // err is more specific
		}
		return nil, err
	}
	meta, err := s.readMeta()
	if err != nil {
		_ = s.Close() // err is more specific
		return nil, err
	}
	s.meta.Store(&meta)
	return s, nil
}

// open opens the file, and gives a new one its buckets.
func (s *Store) open() (err error) {
	if s.db, err = openBolt(s.path); err != nil {
		return err
	}
	err = fault.Catch(func() error {
		isNew := false
		err := s.db.View(func(tx *bolt.Tx) error {
			first, _ := tx.Cursor().First()
			isNew = first == nil
			if !isNew && (tx.Bucket([]byte(metaBucket)) == nil || tx.Bucket([]byte(statesBucket)) == nil) {
				return errors.New("not a store of the registry")
			}
			return nil
		})
		if err == nil && isNew {
			err = s.db.Update(createBuckets)
		}
		return err
	})
	if err != nil {
		_ = closeBolt(s.db, err) // err is more specific
	}
	return err
}

func createBuckets(tx *bolt.Tx) error {
	if _, err := tx.CreateBucket([]byte(statesBucket)); err != nil {
		return err
	}
	if _, err := tx.CreateBucket([]byte(metaBucket)); err != nil {
		return err
	}
	return putMeta(tx, Meta{Digest: readmodel.Digest{}.String()})
}

func putMeta(tx *bolt.Tx, m Meta) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return tx.Bucket([]byte(metaBucket)).Put([]byte(metaKey), text)
}

func getMeta(tx *bolt.Tx) (m Meta, err error) {
	return m, json.Unmarshal(tx.Bucket([]byte(metaBucket)).Get([]byte(metaKey)), &m)
}

func (s *Store) readMeta() (m Meta, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		m, err = getMeta(tx)
		return err
	})
	return m, err
}

// view runs a read transaction. Damage of a page is an error.
func (s *Store) view(read func(*bolt.Tx) error) error {
	return fault.Catch(func() error {
		tx, err := s.begin()
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // a reader's rollback cannot fail
		return read(tx)
	})
}

func (s *Store) begin() (*bolt.Tx, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return nil, err
	}
	return s.db.Begin(false)
}

// Meta returns the meta record as saved. It never waits.
func (s *Store) Meta() Meta { return *s.meta.Load() }

// Path returns the file's name.
func (s *Store) Path() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.path
}

// Save writes c in one transaction and returns when it is on the disk. After an error the file may hold
// c or what it held before: the caller saves everything again, for which Save opens the file again.
// After an error that matches ErrDamaged, every Save fails.
func (s *Store) Save(c Commit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	err := s.update(func(tx *bolt.Tx) error { return write(tx, c) })
	if err == nil {
		s.meta.Store(&c.Meta)
	}
	return err
}

// Probe reports whether the store can be read and written, by a transaction that changes nothing.
// During a Save it returns the outcome of the transaction before, at once.
func (s *Store) Probe() error {
	if !s.mu.TryLock() {
		return nil
	}
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	return s.update(func(tx *bolt.Tx) error {
		m, err := getMeta(tx)
		if err != nil {
			return err
		}
		return putMeta(tx, m)
	})
}

// ready opens the file again if the last transaction failed: what is in memory of it cannot be trusted.
func (s *Store) ready() error {
	switch {
	case s.closed:
		return errors.New("store: closed")
	case s.failed == nil, errors.Is(s.failed, ErrDamaged):
		return s.failed
	}
	_ = s.db.Close() // failed already
	if err := s.open(); err != nil {
		return fmt.Errorf("store: open again after a failed write: %w; %s", err, remedy(err))
	}
	s.failed = nil
	return nil
}

// update runs a transaction and records whether it failed. Now and then it erases free pages.
func (s *Store) update(write func(*bolt.Tx) error) error {
	err := fault.Catch(func() error {
		if err := s.db.Update(write); err != nil {
			return err
		}
		if time.Since(s.erased) < eraseEvery || s.db.Stats().OpenTxN > 0 { // a reader may read them
			return nil
		}
		s.erased = time.Now()
		return eraseFree(s.db, s.path)
	})
	if errors.Is(err, fault.Err) { // bbolt panics on inconsistent pages, and may hold its locks for ever
		err = fmt.Errorf("store: %w: %w; restart the server, which makes another one", ErrDamaged, err)
	} else if err != nil {
		err = fmt.Errorf("store: %w; %s", err, remedy(err))
	}
	s.failed = err
	return err
}

func write(tx *bolt.Tx, c Commit) error {
	states := tx.Bucket([]byte(statesBucket))
	for _, subject := range c.Lacking {
		key := keyOf(subject)
		if stored := states.Get(key); len(stored) >= sequenceSize {
			if err := states.Put(key, encode(State{0, stored[sequenceSize:]})); err != nil {
				return err
			}
		}
	}

	// In order: bbolt then splits few pages.
	keys := make(map[string]State, len(c.States))
	for subject, state := range c.States {
		keys[string(keyOf(subject))] = state
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if err := states.Put([]byte(key), encode(keys[key])); err != nil {
			return err
		}
	}
	return putMeta(tx, c.Meta)
}

// State returns the saved state of a subject. ok is false if there is none.
func (s *Store) State(k events.Subject) (state State, ok bool, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		stored := tx.Bucket([]byte(statesBucket)).Get(keyOf(k))
		if stored == nil {
			return nil
		}
		state, err = decode(stored)
		state.Line, ok = bytes.Clone(state.Line), err == nil
		return err
	})
	return state, ok, err
}

// Each calls begin with the meta record and the number of states, and then visit with each state, in
// the order of their keys. All of it is from one moment. The memory of a line is valid during its call.
func (s *Store) Each(begin func(m Meta, count int) error, visit func(State) error) error {
	return s.view(func(tx *bolt.Tx) error {
		meta, err := getMeta(tx)
		if err != nil {
			return err
		}
		states := tx.Bucket([]byte(statesBucket))
		if err := begin(meta, states.Stats().KeyN); err != nil {
			return err
		}
		return states.ForEach(func(_, stored []byte) error {
			state, err := decode(stored)
			if err != nil {
				return err
			}
			return visit(state)
		})
	})
}

// Close closes the file, once no transaction runs. Further calls do nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return closeBolt(s.db, s.failed)
}

// Replace gives s, the store of a rebuild, the name of old in one step. old must save no more.
func (s *Store) Replace(old *Store) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old.mu.Lock()
	defer old.mu.Unlock()
	if err := rename(s.path, old.path); err != nil {
		return err
	}
	s.path, old.path = old.path, "" // old must not open what is not its own
	return nil
}

// Keys order an entry directly before its view total, as Model.Load needs it.
const (
	entrySuffix     = "/e"
	viewsSuffix     = "/v"
	donationsPrefix = "~/"
)

func keyOf(k events.Subject) []byte {
	switch k.Kind {
	case events.KindDonation:
		return []byte(donationsPrefix + k.ID)
	case events.KindViews:
		return []byte(string(k.List) + "/" + k.ID + viewsSuffix)
	}
	return []byte(string(k.List) + "/" + k.ID + entrySuffix)
}

// compareSubjects orders subjects as their keys.
func compareSubjects(a, b events.Subject) int { return bytes.Compare(keyOf(a), keyOf(b)) }

// isViews reports whether a key is that of a view total.
func isViews(key []byte) bool { return bytes.HasSuffix(key, []byte(viewsSuffix)) }

// sequenceSize is the length of the sequence before a stored line.
const sequenceSize = 8

func encode(s State) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, sequenceSize+len(s.Line)), s.Sequence), s.Line...)
}

func decode(stored []byte) (State, error) {
	if len(stored) < sequenceSize {
		return State{}, errors.New("a state is cut short")
	}
	return State{binary.BigEndian.Uint64(stored), stored[sequenceSize:]}, nil
}
