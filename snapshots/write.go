package snapshots

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel"
)

// fullPages is how full pages are made in a table that was empty: its records come in
// order of their keys, and leaving half of each page free would double the file.
const fullPages = 0.95

// An arena holds some hundred values; few are larger than what is left when the next one is begun.
const (
	arenaSize  = 1 << 20
	arenaSpare = 8 << 10
)

// write puts every record and the meta record; next.Counts becomes true.
func (s *Store) write(tx *bolt.Tx, records []readmodel.Record, next meta) error {
	sorted := slices.Clone(records)
	slices.SortStableFunc(sorted, func(a, b readmodel.Record) int { return cmp.Compare(a.Key.ID, b.Key.ID) })
	w := writer{sum: s.sum}
	for _, t := range tables() {
		added, err := w.table(tx, t, sorted)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		next.Counts[t.name] += added
	}
	return next.write(tx, s.sum)
}

// writer puts records into tables. Its arena holds values, which bbolt does not copy, until the
// transaction ends; when it is nearly full a new one is begun, since growing it would copy them.
type writer struct {
	sum   summer
	arena []byte
}

// table writes those of the sorted records which belong into t and returns by how many t has grown.
// Sorted keys visit each page once.
func (w *writer) table(tx *bolt.Tx, t table, sorted []readmodel.Record) (added int, err error) {
	bucket := tx.Bucket([]byte(t.name))
	if k, _ := bucket.Cursor().First(); k == nil {
		bucket.FillPercent = fullPages
	}
	for i := range sorted {
		if r := &sorted[i]; t.holds(r.Key) {
			n, err := w.record(bucket, t, r)
			if err != nil {
				return 0, fmt.Errorf("record %.80q: %w", r.Key.ID, err)
			}
			added += n
		}
	}
	return added, nil
}

// record writes one record and returns 1 when it is new, -1 when it is gone, else 0.
func (w *writer) record(bucket *bolt.Bucket, t table, r *readmodel.Record) (int, error) {
	key := []byte(r.Key.ID)
	before := bucket.Get(key)
	if r.Removed {
		if before == nil {
			return 0, nil
		}
		return -1, bucket.Delete(key)
	}
	stored := w.value(t, key, r)
	if before == nil {
		return 1, bucket.Put(key, stored)
	}
	if bytes.Equal(before, stored) {
		return 0, nil // a replay: do not touch the page
	}
	return 0, bucket.Put(key, stored)
}

func (w *writer) value(t table, key []byte, r *readmodel.Record) []byte {
	if cap(w.arena)-len(w.arena) < arenaSpare {
		w.arena = make([]byte, 0, arenaSize)
	}
	start := len(w.arena)
	w.arena = append(w.arena, make([]byte, sumSize)...)
	w.arena = r.AppendValue(w.arena)
	stored := w.arena[start:len(w.arena):len(w.arena)]
	w.sum.seal(t.name, key, stored)
	return stored
}
