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

// stateOf looks into each table that may hold k, which has a state in at most one.
func stateOf(tx *bolt.Tx, k events.Subject) (state readmodel.State, ok bool, err error) {
	for _, t := range tables() {
		if !t.holds(k) {
			continue
		}
		bucket, err := t.bucket(tx)
		if err != nil {
			return state, false, fmt.Errorf("%s: %w", t.name, err)
		}
		stored := bucket.Get([]byte(k.ID))
		if stored == nil {
			continue
		}
		value, err := unseal(t.name, []byte(k.ID), stored)
		if err == nil {
			state, err = readmodel.DecodeState(k, t.tombstones, value)
		}
		if err != nil {
			return state, false, fmt.Errorf("%s: %s: %w", t.name, t.record([]byte(k.ID)), err)
		}
		return state, true, nil
	}
	return state, false, nil
}

// clearSequences sets the sequence of some subjects' states to 0.
func clearSequences(tx *bolt.Tx, subjects []events.Subject) error {
	for _, k := range subjects {
		for _, t := range tables() {
			if !t.holds(k) {
				continue
			}
			bucket, err := t.bucket(tx)
			if err != nil {
				return damage{err}
			}
			key := []byte(k.ID)
			stored := bucket.Get(key)
			if stored == nil {
				continue
			}
			value, err := unseal(t.name, key, stored)
			if err != nil {
				return damage{fmt.Errorf("%s: %s: %w", t.name, t.record(key), err)}
			}
			cleared := append(make([]byte, sumSize), readmodel.ClearSequence(value)...)
			seal(t.name, key, cleared)
			if err := bucket.Put(key, cleared); err != nil {
				return err
			}
		}
	}
	return nil
}
