package snapshots

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"example.org/registry/readmodel"
)

// archiveFormat is the version of an archive's layout.
const archiveFormat = 1

// Manifest says what an archive holds. Its members are those of the JSON line at the beginning of the
// archive, and of what POST /snapshots answers.
type Manifest struct {
	Format int `json:"format"`

	// The stream that the content was made from, and the position in it.
	Stream        string    `json:"stream"`
	StreamEpoch   string    `json:"streamEpoch"`
	StreamCreated time.Time `json:"streamCreated,omitzero"`
	Sequence      uint64    `json:"sequence"`
	MessageID     string    `json:"messageId,omitempty"`  // Nats-Msg-Id of the message at Sequence
	MessageTime   time.Time `json:"messageTime,omitzero"` // when the broker stored it

	// Versions of the file's layout, of decoding and of rendering.
	Store      int    `json:"store"`
	Projection uint32 `json:"projection"`
	Render     uint32 `json:"render"`

	DataSet string         `json:"dataSet"` // that of the store it was made from; a restore makes a new one
	Digest  string         `json:"digest"`  // of the content, 32 hexadecimal digits
	Records map[string]int `json:"records"` // by table
	Entries map[string]int `json:"entries"` // what each list shows

	Time   time.Time `json:"time"`   // when the archive was made
	Size   int64     `json:"size"`   // bytes of the bbolt file
	Packed int64     `json:"packed"` // bytes that it takes in the archive
	SHA256 string    `json:"sha256"` // of the bbolt file, hexadecimal
}

// Shown is how many entries the lists show in all.
func (m Manifest) Shown() (n int) {
	for _, shown := range m.Entries {
		n += shown
	}
	return n
}

// Checkpoint is the position that the content stands at.
func (m Manifest) Checkpoint() readmodel.Checkpoint {
	return readmodel.Checkpoint{
		Sequence:    m.Sequence,
		Stream:      readmodel.StreamIdentity{Name: m.Stream, Epoch: m.StreamEpoch, Created: m.StreamCreated},
		MessageID:   m.MessageID,
		MessageTime: m.MessageTime,
	}
}

// Usable says why this program cannot use such an archive. Another render version is no reason.
func (m Manifest) Usable() error {
	if m.Format != archiveFormat {
		return fmt.Errorf("archive format %d, not %d", m.Format, archiveFormat)
	}
	return meta{Format: m.Store, Projection: m.Projection}.usable()
}

// manifestOf describes the file that m is the meta record of. Entries, size, packed size and checksum are left.
func manifestOf(m meta, now time.Time) Manifest {
	at := m.Checkpoint
	return Manifest{
		Format: archiveFormat,
		Stream: at.Stream, StreamEpoch: at.StreamEpoch, StreamCreated: at.StreamCreated,
		Sequence: at.Sequence, MessageID: at.MessageID, MessageTime: at.MessageTime,
		Store: m.Format, Projection: m.Projection, Render: m.Render,
		DataSet: m.DataSet, Digest: m.Digest, Records: m.Counts,
		Time: now.UTC().Truncate(time.Millisecond),
	}
}

// describes says whether m is the manifest of the file that f is the meta record of.
func (m Manifest) describes(f meta) error {
	is := manifestOf(f, m.Time)
	is.Entries, is.Size, is.Packed, is.SHA256 = m.Entries, m.Size, m.Packed, m.SHA256
	a, err := json.Marshal(m)
	if err != nil {
		return err
	}
	b, err := json.Marshal(is)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return errors.New("manifest is not that of the file")
	}
	return nil
}
