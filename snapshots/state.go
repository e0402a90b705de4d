package snapshots

import (
	"fmt"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
)

// State returns the state of one subject as of the last transaction. ok is false if there is none.
// Any goroutine may call it. A Save waits for it.
func (s *Store) State(k events.Subject) (state readmodel.State, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return state, false, err
	}
	err = fault.Catch(func() error {
		return s.db.View(func(tx *bolt.Tx) (err error) {
			state, ok, err = stateOf(tx, k)
			return err
		})
	})
	if err != nil {
		return readmodel.State{}, false, fmt.Errorf("store: %w", err)
	}
	return state, ok, nil
}

// find returns the value of a subject, which has a state in at most one table, and where it is. The
// bucket is nil if there is none.
func find(tx *bolt.Tx, k events.Subject) (t table, b *bolt.Bucket, value []byte, err error) {
	for _, t := range tables() {
		if !t.holds(k) {
			continue
		}
		b, err := t.bucket(tx)
		if err != nil {
			return t, nil, nil, fmt.Errorf("%s: %w", t.name, err)
		}
		key := []byte(k.ID)
		if stored := b.Get(key); stored != nil {
			if value, err = unseal(t.name, key, stored); err != nil {
				err = fmt.Errorf("%s: %s: %w", t.name, t.record(key), err)
			}
			return t, b, value, err
		}
	}
	return table{}, nil, nil, nil
}

func stateOf(tx *bolt.Tx, k events.Subject) (state readmodel.State, ok bool, err error) {
	t, b, value, err := find(tx, k)
	if err != nil || b == nil {
		return state, false, err
	}
	if state, err = readmodel.DecodeState(k, t.tombstones, value); err != nil {
		return state, false, fmt.Errorf("%s: %s: %w", t.name, t.record([]byte(k.ID)), err)
	}
	return state, true, nil
}

// clearSequences sets the sequence of some subjects' states to 0.
func clearSequences(tx *bolt.Tx, subjects []events.Subject) error {
	for _, k := range subjects {
		t, b, value, err := find(tx, k)
		if err != nil {
			return damage{err}
		}
		if b == nil {
			continue
		}
		cleared := append(make([]byte, sumSize), readmodel.ClearSequence(value)...)
		seal(t.name, []byte(k.ID), cleared)
		if err := b.Put([]byte(k.ID), cleared); err != nil {
			return err
		}
	}
	return nil
}
