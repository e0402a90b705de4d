package snapshots

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// sumSize is the length of the checksum in front of every stored value, in bytes.
const sumSize = 4

var errChecksum = errors.New("checksum does not match")

// summer computes checksums over bucket, key and value: a record under another key or in another
// bucket is as wrong as a changed one. CRC-32C, because processors compute it faster than
// memory delivers the bytes. Safe for concurrent use.
type summer struct{ table *crc32.Table }

func newSummer() summer { return summer{crc32.MakeTable(crc32.Castagnoli)} }

func (s summer) sum(bucket string, key, value []byte) uint32 {
	c := crc32.Update(0, s.table, []byte(bucket))
	c = crc32.Update(c, s.table, key)
	return crc32.Update(c, s.table, value)
}

// seal fills in the checksum of stored, whose first sumSize bytes are room for it.
func (s summer) seal(bucket string, key, stored []byte) {
	binary.BigEndian.PutUint32(stored, s.sum(bucket, key, stored[sumSize:]))
}

// open returns the value of stored, which it does not copy, or errChecksum.
func (s summer) open(bucket string, key, stored []byte) ([]byte, error) {
	if len(stored) < sumSize {
		return nil, errChecksum
	}
	value := stored[sumSize:]
	if binary.BigEndian.Uint32(stored) != s.sum(bucket, key, value) {
		return nil, errChecksum
	}
	return value, nil
}
