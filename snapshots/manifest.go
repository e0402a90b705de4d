package snapshots

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"example.org/registry/readmodel"
)

const (
	// archiveFormat is the version of an archive's layout.
	archiveFormat = 1
	// archiveMagic begins every archive.
	archiveMagic = "registry-snapshot"
	// maxHeader bounds what stands before the packed file, in bytes.
	maxHeader = 64 << 10
)

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

// header is what stands before the packed file: a line with the magic word, the format and the
// SHA-256 of the second line, which is the manifest. Both are text: head -2 shows them.
func (m Manifest) header() ([]byte, error) {
	line, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(line)
	b := fmt.Appendf(nil, "%s %d %x\n%s\n", archiveMagic, archiveFormat, sum, line)
	if len(b) > maxHeader {
		return nil, fmt.Errorf("manifest takes %d bytes, more than %d", len(b), maxHeader)
	}
	return b, nil
}

// ReadManifest reads the beginning of an archive and nothing behind it: r is left at the packed file. The
// manifest is what the archive says of itself: only Unpack proves it.
func ReadManifest(r *bufio.Reader) (Manifest, error) {
	first, err := headerLine(r, maxHeader)
	if err != nil {
		return Manifest{}, err
	}
	rest, ok := strings.CutPrefix(string(first), archiveMagic+" ")
	if !ok {
		return Manifest{}, errors.New("not a snapshot of the registry")
	}
	version, sum, _ := strings.Cut(rest, " ")
	if version != fmt.Sprint(archiveFormat) {
		return Manifest{}, fmt.Errorf("archive format %.20q, not %d", version, archiveFormat)
	}
	line, err := headerLine(r, maxHeader-len(first))
	if err != nil {
		return Manifest{}, err
	}
	if got := sha256.Sum256(line); hex.EncodeToString(got[:]) != sum {
		return Manifest{}, errors.New("manifest: checksum does not match")
	}
	return ParseManifest(line)
}

// headerLine reads a line of at most limit bytes, without its end.
func headerLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for len(line) < limit {
		c, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("not a snapshot of the registry, or cut short")
		}
		if err != nil {
			return nil, err
		}
		if c == '\n' {
			return line, nil
		}
		line = append(line, c)
	}
	return nil, errors.New("not a snapshot of the registry")
}

// ParseManifest reads a manifest's JSON and checks that it could be one.
func ParseManifest(line []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(line, &m); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if err := m.check(); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

// The bounds of what a manifest may say. minSize is a bbolt file of two meta pages; a file that packs better
// than maxRatio to one, beyond smallSize, was made to fill a disk.
const (
	minSize   = 2 * 1024
	maxSize   = 1 << 40
	smallSize = 16 << 20
	maxRatio  = 200
)

func (m Manifest) check() error {
	if err := m.Usable(); err != nil {
		return err
	}
	switch {
	case m.Stream == "" || len(m.Stream) > 256 || len(m.StreamEpoch) > 256 || len(m.MessageID) > 4096:
		return errors.New("no such stream or message")
	case !isHex(m.Digest, len(readmodel.Digest{})), !isHex(m.SHA256, sha256.Size), !isHex(m.DataSet, 16):
		return errors.New("no such digest")
	case m.Packed <= 0 || m.Packed > maxSize || m.Size < minSize || m.Size > maxSize:
		return errors.New("no such size")
	case m.Size > smallSize && m.Size/maxRatio > m.Packed:
		return fmt.Errorf("%d bytes cannot hold %d", m.Packed, m.Size)
	}
	return m.checkRecords()
}

func (m Manifest) checkRecords() error {
	known := map[string]bool{}
	for _, t := range tables() {
		known[t.name] = true
	}
	for name, n := range m.Records {
		if !known[name] || n < 0 || int64(n) > m.Size {
			return errors.New("no such records")
		}
	}
	for list, n := range m.Entries {
		if n < 0 || n > m.Records[entriesPrefix+list] {
			return errors.New("no such entries")
		}
	}
	return nil
}

// isHex is true for size bytes in hexadecimal digits.
func isHex(s string, size int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == size && strings.ToLower(s) == s
}
