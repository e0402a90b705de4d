package snapshots

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
)

// Mark tells which message the stream had at a sequence.
type Mark struct {
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"` // when the broker stored it
}

// Meta is the position of a store, a model or a snapshot in its stream, and the digest of its states.
type Meta struct {
	stream.Identity
	Sequence uint64 `json:"checkpoint"`         // everything up to it has been read
	Marks    []Mark `json:"marks,omitempty"`    // the last messages read, by which the stream is recognized
	Erased   uint64 `json:"erased,omitempty"`   // no removal up to this sequence waits for a purge
	Complete bool   `json:"complete,omitempty"` // a process has read the stream up to its end
	Rewound  bool   `json:"rewound,omitempty"`  // the stream came back in an older state
	Digest   string `json:"digest,omitempty"`   // hexadecimal, of all states
}

// State is the latest state of a subject.
type State struct {
	Sequence uint64 // of the last message with this state; 0 if the stream may lack it
	Line     []byte // the event, as EncodeState writes it
}

// EncodeState returns the line of a state.
func EncodeState(d events.Data) ([]byte, error) { return events.Encode(events.StateEvent(d)) }

// Commit is the content of one transaction.
type Commit struct {
	States  map[events.Subject]State
	Lacking []events.Subject // their states get the sequence 0, before States are written
	Meta    Meta
}

// ErrDamaged means that the content of a store's file is wrong: another store must replace it.
var ErrDamaged = errors.New("the file is damaged")

// Store is an open store. Any goroutine may call its methods, but no two call Save at the same time.
type Store struct {
	db   *bolt.DB
	meta atomic.Pointer[Meta] // as saved

	writing sync.Mutex // held by transactions that write; guards path and erased
	path    string     // changes in Replace
	erased  time.Time  // when free pages were last erased

	damaged atomic.Bool // bbolt has panicked in a transaction that writes, and may hold its locks forever
}

var errDamagedStore = fmt.Errorf("store: %w; restart the server, which makes another one", ErrDamaged)

// The buckets of the file.
var (
	statesBucket = []byte("states")
	metaBucket   = []byte("meta")
	metaKey      = []byte("meta")
)

// Open opens or makes the file at path, whose directory the caller has locked (LockDir), and loads it into a new
// model. If the file is damaged, the error matches ErrDamaged. Any other error comes from ctx, or names the remedy.
func Open(ctx context.Context, path string) (*Store, *readmodel.Model, error) {
	s, err := openStore(path)
	if err != nil {
		return nil, nil, explainOpen(ctx, path, err)
	}

	model, err := s.loadModel(ctx)
	if err != nil {
		_ = s.Close() // err is more specific
		return nil, nil, explainOpen(ctx, path, err)
	}
	return s, model, nil
}

// explainOpen tells a damaged file from a canceled load and from a failing disk.
func explainOpen(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if isSystemError(err) {
		return fmt.Errorf("store %s: %w; %s", path, err, findRemedy(err))
	}
	return fmt.Errorf("store %s: %w: %w", path, ErrDamaged, err)
}

// openStore opens or makes the file, and reads its meta record.
func openStore(path string) (*Store, error) {
	db, err := openBolt(path)
	if err != nil {
		return nil, err
	}

	s := &Store{db: db, path: path}
	err = s.update(func(tx *bolt.Tx) error {
		if err := ensureBuckets(tx); err != nil {
			return err
		}
		meta, err := getMeta(tx)
		s.meta.Store(&meta)
		return err
	})
	if err != nil {
		_ = s.Close() // err is more specific
		return nil, err
	}
	return s, nil
}

// ensureBuckets makes the buckets of an empty file.
func ensureBuckets(tx *bolt.Tx) error {
	if first, _ := tx.Cursor().First(); first != nil {
		if tx.Bucket(metaBucket) == nil || tx.Bucket(statesBucket) == nil {
			return errors.New("not a store of the registry")
		}
		return nil
	}

	for _, name := range [][]byte{statesBucket, metaBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return putMeta(tx, Meta{Digest: readmodel.Digest{}.String()})
}

func putMeta(tx *bolt.Tx, m Meta) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return tx.Bucket(metaBucket).Put(metaKey, text)
}

func getMeta(tx *bolt.Tx) (m Meta, err error) {
	return m, json.Unmarshal(tx.Bucket(metaBucket).Get(metaKey), &m)
}

// view runs a read transaction. If bbolt panics over a damaged page, view returns an error.
func (s *Store) view(read func(*bolt.Tx) error) error {
	if s.damaged.Load() {
		return errDamagedStore
	}
	return fault.Catch(func() error { return s.db.View(read) })
}

// update runs a transaction that writes. If bbolt panics over a damaged page, this and every later transaction fails.
func (s *Store) update(write func(*bolt.Tx) error) error {
	if s.damaged.Load() {
		return errDamagedStore
	}

	err := fault.Catch(func() error { return s.db.Update(write) })
	if errors.Is(err, fault.Err) {
		s.damaged.Store(true)
		return fmt.Errorf("%w: %w", errDamagedStore, err)
	}
	return err
}

// Meta returns the meta record as saved. It never waits.
func (s *Store) Meta() Meta { return *s.meta.Load() }

// Save writes c in one transaction and returns when c is on the disk. After an error the file may have c or not, so
// the caller saves c again. After an error that matches ErrDamaged, every Save fails.
func (s *Store) Save(c Commit) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.writeAndErase(func(tx *bolt.Tx) error { return writeCommit(tx, c) }); err != nil {
		return err
	}
	s.meta.Store(&c.Meta)
	return nil
}

// Probe reports whether the store can be read and written, by a transaction that changes nothing.
// During a Save it returns nil at once.
func (s *Store) Probe() error {
	if !s.writing.TryLock() {
		return nil
	}
	defer s.writing.Unlock()
	return s.writeAndErase(func(tx *bolt.Tx) error {
		m, err := getMeta(tx)
		if err != nil {
			return err
		}
		return putMeta(tx, m)
	})
}

// writeAndErase runs a transaction and then, once in eraseEvery, erases free pages. The caller holds s.writing. An
// error names the remedy.
func (s *Store) writeAndErase(write func(*bolt.Tx) error) error {
	err := s.update(write)
	hasReaders := s.db.Stats().OpenTxN > 0 // they may still read free pages
	if err == nil && !hasReaders && time.Since(s.erased) >= eraseEvery {
		s.erased = time.Now()
		err = eraseFree(s.db, s.path)
	}
	if err != nil && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("store: %w; %s", err, findRemedy(err))
	}
	return err
}

func writeCommit(tx *bolt.Tx, c Commit) error {
	// First write sequence 0 to the states that the stream lacks. If a subject is also in c.States, its state was read
	// again: the sequence that is written below then counts.
	states := tx.Bucket(statesBucket)
	for _, subject := range c.Lacking {
		stored := states.Get(keyOf(subject))
		if len(stored) < sequenceSize { // the store has no state of this subject
			continue
		}
		if err := states.Put(keyOf(subject), encodeStored(State{0, stored[sequenceSize:]})); err != nil {
			return err
		}
	}

	// Write in the order of the keys, so that bbolt splits few pages.
	byKey := make(map[string]State, len(c.States))
	for subject, state := range c.States {
		byKey[string(keyOf(subject))] = state
	}

	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		if err := states.Put([]byte(key), encodeStored(byKey[key])); err != nil {
			return err
		}
	}

	return putMeta(tx, c.Meta)
}

// State returns the saved state of a subject. ok is false if there is none.
func (s *Store) State(k events.Subject) (state State, ok bool, err error) {
	var stored []byte
	err = s.view(func(tx *bolt.Tx) error {
		stored = bytes.Clone(tx.Bucket(statesBucket).Get(keyOf(k))) // bbolt's memory is valid only in the transaction
		return nil
	})
	if err != nil || stored == nil {
		return State{}, false, err
	}

	state, err = decodeStored(stored)
	return state, true, err
}

// Each calls begin, which may be nil, with the meta record and the number of states, and then visit with
// each state, in the order of the keys. One transaction reads all of them. The memory of a line is valid only
// during the call of visit.
func (s *Store) Each(begin func(m Meta, count int) error, visit func(State) error) error {
	return s.view(func(tx *bolt.Tx) error {
		// Counting reads all pages, so count only for a caller that passes begin.
		states := tx.Bucket(statesBucket)
		if begin != nil {
			meta, err := getMeta(tx)
			if err != nil {
				return err
			}
			if err := begin(meta, states.Stats().KeyN); err != nil {
				return err
			}
		}

		return states.ForEach(func(_, stored []byte) error {
			state, err := decodeStored(stored)
			if err != nil {
				return err
			}
			return visit(state)
		})
	})
}

// Close closes the file, once no transaction runs. Further calls do nothing.
func (s *Store) Close() error {
	if s.damaged.Load() {
		return nil // bbolt may hold its locks forever
	}
	return s.db.Close()
}

// Replace renames the file of s, the store of a rebuild, over the file of old. Nothing may be saved in old any more.
func (s *Store) Replace(old *Store) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := RenameDurably(s.path, old.path); err != nil {
		return err
	}
	s.path = old.path
	return nil
}

// In the order of the keys, an entry comes directly before its view total, as Model.Load requires.
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

// sequenceSize is the length of the sequence before a stored line.
const sequenceSize = 8

func encodeStored(s State) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, sequenceSize+len(s.Line)), s.Sequence), s.Line...)
}

func decodeStored(stored []byte) (State, error) {
	if len(stored) < sequenceSize {
		return State{}, errors.New("a state is cut short")
	}
	return State{binary.BigEndian.Uint64(stored), stored[sequenceSize:]}, nil
}
