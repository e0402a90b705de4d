package snapshots

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel"
)

// format is the version of the file's layout: buckets, checksums, meta record.
const format = 1

// meta is what a store says about its content. It is written in the transaction of the content.
type meta struct {
	Format     int            `json:"format"`
	Projection uint32         `json:"projection"` // readmodel.ProjectionVersion
	Render     uint32         `json:"render"`     // readmodel.RenderVersion
	DataSet    string         `json:"dataSet"`    // random, new for every new store
	Checkpoint checkpoint     `json:"checkpoint"`
	Digest     string         `json:"digest"` // hexadecimal
	Counts     map[string]int `json:"counts"` // records by table
}

// checkpoint is readmodel.Checkpoint as stored.
type checkpoint struct {
	Sequence      uint64    `json:"sequence"`
	Stream        string    `json:"stream,omitempty"`
	StreamEpoch   string    `json:"streamEpoch,omitempty"`
	StreamCreated time.Time `json:"streamCreated,omitzero"`
	MessageID     string    `json:"messageId,omitempty"`
	MessageTime   time.Time `json:"messageTime,omitzero"`
	Doubted       bool      `json:"doubted,omitzero"`
}

// newMeta is that of a store which holds nothing.
func newMeta() meta {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails (crypto/rand)
	return meta{
		Format:     format,
		Projection: readmodel.ProjectionVersion,
		Render:     readmodel.RenderVersion,
		DataSet:    hex.EncodeToString(id),
		Digest:     readmodel.Digest{}.String(),
		Counts:     map[string]int{},
	}
}

// readMeta reads and verifies the meta record. An error means damage or another format.
func readMeta(tx *bolt.Tx, s summer) (meta, error) {
	b := tx.Bucket([]byte(metaBucket))
	if b == nil {
		return meta{}, errors.New("no meta record: not a store of the registry")
	}
	value, err := s.open(metaBucket, []byte(metaKey), b.Get([]byte(metaKey)))
	if err != nil {
		return meta{}, fmt.Errorf("meta record: %w", err)
	}
	var m meta
	if err := json.Unmarshal(value, &m); err != nil {
		return meta{}, fmt.Errorf("meta record: %w", err)
	}
	return m, m.usable()
}

// usable says why this program cannot load a store with this meta record. Another render version
// is no reason: what is rendered can be rendered again from what is stored beside it.
func (m meta) usable() error {
	if m.Format != format {
		return fmt.Errorf("format %d, not %d", m.Format, format)
	}
	if m.Projection != readmodel.ProjectionVersion {
		return fmt.Errorf("projection version %d, not %d", m.Projection, readmodel.ProjectionVersion)
	}
	return nil
}

// write puts the meta record into its bucket.
func (m meta) write(tx *bolt.Tx, s summer) error {
	b, err := tx.CreateBucketIfNotExists([]byte(metaBucket))
	if err != nil {
		return err
	}
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	stored := append(make([]byte, sumSize), value...)
	s.seal(metaBucket, []byte(metaKey), stored)
	return b.Put([]byte(metaKey), stored)
}

// same says whether m and o describe one state of one store.
func (m meta) same(o meta) bool {
	return m.DataSet == o.DataSet && m.Digest == o.Digest && m.Checkpoint.Sequence == o.Checkpoint.Sequence
}

func storedCheckpoint(c readmodel.Checkpoint) checkpoint {
	return checkpoint{
		Sequence:      c.Sequence,
		Stream:        c.Stream.Name,
		StreamEpoch:   c.Stream.Epoch,
		StreamCreated: c.Stream.Created,
		MessageID:     c.MessageID,
		MessageTime:   c.MessageTime,
		Doubted:       c.Doubted,
	}
}

func (c checkpoint) model() readmodel.Checkpoint {
	return readmodel.Checkpoint{
		Sequence:    c.Sequence,
		Stream:      readmodel.StreamIdentity{Name: c.Stream, Epoch: c.StreamEpoch, Created: c.StreamCreated},
		MessageID:   c.MessageID,
		MessageTime: c.MessageTime,
		Doubted:     c.Doubted,
	}
}

// fileMeta reads the meta record of a file that nobody has open.
func fileMeta(path string) (meta, error) {
	db, err := openFile(path)
	if err != nil {
		return meta{}, err
	}
	defer db.Close()
	return metaOf(db, newSummer())
}

// metaOf reads the meta record of an open file, whose pages may be damaged.
func metaOf(db *bolt.DB, s summer) (m meta, err error) {
	err = guard(func() error {
		return db.View(func(tx *bolt.Tx) (err error) {
			m, err = readMeta(tx, s)
			return err
		})
	})
	return m, err
}

func (m meta) records() (n int) {
	for _, c := range m.Counts {
		n += c
	}
	return n
}
