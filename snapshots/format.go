package snapshots

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// format is the version of the file's layout: the tables, the checksums and the meta record, all in
// this source file. readmodel.ProjectionVersion is that of the values.
const format = 4

// table is a bbolt bucket of records of one kind, and of one list if the kind has lists. Tombstones
// have tables of their own; a subject is in at most one of the two.
type table struct {
	number     byte // position in tables, from 1: its name in archives
	name       string
	kind       events.Kind
	list       events.List
	tombstones bool
}

// entriesPrefix precedes a list in the name of a table of entries.
const entriesPrefix = "entries-"

// tables returns every table, grouped by list, because the tables of a list are read together.
func tables() (all []table) {
	for _, l := range events.Lists() {
		all = append(all,
			table{0, entriesPrefix + string(l), events.KindEntry, l, false},
			table{0, "views-" + string(l), events.KindViews, l, false},
			table{0, "tombstones-" + string(l), events.KindEntry, l, true})
	}
	all = append(all,
		table{0, "donations", events.KindDonation, "", false},
		table{0, "tombstones-donations", events.KindDonation, "", true})
	for i := range all {
		all[i].number = byte(i + 1)
	}
	return all
}

// bucket returns the table's bucket, which every store has.
func (t table) bucket(tx *bolt.Tx) (*bolt.Bucket, error) {
	if b := tx.Bucket([]byte(t.name)); b != nil {
		return b, nil
	}
	return nil, errors.New("missing")
}

// record names the record with this key in errors. Errors are logged, so it omits the id of a
// donation.
func (t table) record(key []byte) string {
	if t.kind == events.KindDonation {
		return "a record"
	}
	return fmt.Sprintf("record %.80q", key)
}

func (t table) holds(k events.Subject) bool { return t.kind == k.Kind && t.list == k.List }

// sumSize is the length of the checksum in front of every stored value, in bytes.
const sumSize = 4

var errChecksum = errors.New("checksum does not match")

// checksum covers bucket, key and value, so it also detects a record under another key or in
// another bucket. It is a CRC-32C, which CPUs compute faster than memory delivers the bytes.
func checksum(bucket string, key, value []byte) uint32 {
	castagnoli := crc32.MakeTable(crc32.Castagnoli) // made once, by the library
	c := crc32.Update(0, castagnoli, []byte(bucket))
	c = crc32.Update(c, castagnoli, key)
	return crc32.Update(c, castagnoli, value)
}

// seal writes the checksum into the first sumSize bytes of stored, which the caller has reserved.
func seal(bucket string, key, stored []byte) {
	binary.BigEndian.PutUint32(stored, checksum(bucket, key, stored[sumSize:]))
}

// unseal verifies the checksum and returns the value, a part of stored, or errChecksum.
func unseal(bucket string, key, stored []byte) (value []byte, err error) {
	if len(stored) < sumSize {
		return nil, errChecksum
	}
	value = stored[sumSize:]
	if binary.BigEndian.Uint32(stored) != checksum(bucket, key, value) {
		return nil, errChecksum
	}
	return value, nil
}

// metaBucket holds metaKey alone, so that tables contain only records.
const (
	metaBucket = "meta"
	metaKey    = "meta"
)

// meta is a store's description of its content. Each transaction that changes the content also
// writes it.
type meta struct {
	Format     int    `json:"format"`
	Projection uint32 `json:"projection"` // readmodel.ProjectionVersion
	Render     uint32 `json:"render"`     // readmodel.RenderVersion

	// DataSet distinguishes stores: 32 hexadecimal digits, random for every new store, whether
	// empty, from a rebuild or from a restore.
	DataSet string `json:"dataSet"`

	Checkpoint readmodel.Checkpoint `json:"checkpoint"`
	Digest     string               `json:"digest"` // hexadecimal
	Counts     map[string]int       `json:"counts"` // records by table
}

// newMeta returns the meta record of an empty store.
func newMeta() meta {
	return meta{
		Format:     format,
		Projection: readmodel.ProjectionVersion,
		Render:     readmodel.RenderVersion,
		DataSet:    newDataSet(),
		Digest:     readmodel.Digest{}.String(),
		Counts:     map[string]int{},
	}
}

func newDataSet() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails (crypto/rand)
	return hex.EncodeToString(id)
}

// readMeta reads and verifies the meta record. An error means damage or another format. The caller
// catches faults.
func readMeta(tx *bolt.Tx) (meta, error) {
	b := tx.Bucket([]byte(metaBucket))
	if b == nil {
		return meta{}, errors.New("no meta record: not a store of the registry")
	}
	value, err := unseal(metaBucket, []byte(metaKey), b.Get([]byte(metaKey)))
	if err != nil {
		return meta{}, fmt.Errorf("meta record: %w", err)
	}
	var m meta
	if err := json.Unmarshal(value, &m); err != nil {
		return meta{}, fmt.Errorf("meta record: %w", err)
	}
	return m, m.usable()
}

// usable returns why this program cannot read such a store. Another render version is no reason:
// the store also holds the source of the rendering.
func (m meta) usable() error {
	if m.Format != format {
		return fmt.Errorf("format %d, not %d", m.Format, format)
	}
	if m.Projection == 0 || m.Projection > readmodel.ProjectionVersion {
		return fmt.Errorf("projection version %d, later than %d", m.Projection, readmodel.ProjectionVersion)
	}
	return nil
}

// current returns why a store of this projection must not be served, although it can be read: a
// replay, whose bounds may be stricter now, may give other content.
func current(projection uint32) error {
	if projection != readmodel.ProjectionVersion {
		return fmt.Errorf("projection version %d, not %d: an earlier program made it; registry recover publishes what it holds",
			projection, readmodel.ProjectionVersion)
	}
	return nil
}

// write writes the meta record.
func (m meta) write(tx *bolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists([]byte(metaBucket))
	if err != nil {
		return err
	}
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	stored := append(make([]byte, sumSize), value...)
	seal(metaBucket, []byte(metaKey), stored)
	return b.Put([]byte(metaKey), stored)
}

// same reports whether m and o describe one state of one store.
func (m meta) same(o meta) bool {
	return m.DataSet == o.DataSet && m.Digest == o.Digest && m.Checkpoint.Sequence == o.Checkpoint.Sequence
}

// matches compares the content that was read with m.
func (m meta) matches(counts map[string]int, d readmodel.Digest) error {
	for _, t := range tables() {
		if counts[t.name] != m.Counts[t.name] {
			return damage{fmt.Errorf("%s: %d records, not %d", t.name, counts[t.name], m.Counts[t.name])}
		}
	}
	if d.String() != m.Digest {
		return damage{fmt.Errorf("digest of the records is %s, not %s", d, m.Digest)}
	}
	return nil
}

func (m meta) records() (n int) {
	for _, c := range m.Counts {
		n += c
	}
	return n
}
