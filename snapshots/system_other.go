//go:build !linux

package snapshots

import bolt "go.etcd.io/bbolt"

// initialMmap is the address space reserved for the map of a store, in bytes. Some systems make the
// file as long.
const initialMmap = 1 << 30

// readAhead does nothing: this system has no such advice.
func readAhead(string) {}

// adviseNormal does nothing.
func adviseNormal(*bolt.DB, int64) {}

// checkSpace does nothing: a write fails if there is no room.
func checkSpace(string, int64) error { return nil }
