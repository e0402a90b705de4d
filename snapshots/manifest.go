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

// archiveFormat is the version of an archive's layout.
const archiveFormat = 1

// Manifest describes the content of an archive. Its members are those of the JSON line at the
// beginning of the archive, and of the response to POST /snapshots.
type Manifest struct {
	Format int `json:"format"` // archiveFormat

	// The position of the content. Unconfirmed is omitted: the store in the archive has it.
	readmodel.Checkpoint

	Store      int    `json:"store"`      // version of the file's layout
	Projection uint32 `json:"projection"` // readmodel.ProjectionVersion
	Render     uint32 `json:"render"`     // readmodel.RenderVersion

	DataSet string         `json:"dataSet"` // of the archived store; a restored store gets its own
	Digest  string         `json:"digest"`  // of the content, 32 hexadecimal digits
	Records map[string]int `json:"records"` // by table
	Entries map[string]int `json:"entries"` // shown, by list

	Time   time.Time `json:"time"`   // when the archive was made
	Size   int64     `json:"size"`   // of the bbolt file, in bytes
	Packed int64     `json:"packed"` // of its packed form in the archive, in bytes
	SHA256 string    `json:"sha256"` // of the bbolt file, hexadecimal
}

// EntryCount returns how many entries the lists show in all.
func (m Manifest) EntryCount() (n int) {
	for _, shown := range m.Entries {
		n += shown
	}
	return n
}

// RecordCount returns how many records all tables have.
func (m Manifest) RecordCount() (n int) {
	for _, records := range m.Records {
		n += records
	}
	return n
}

// manifestOf returns the manifest of a file with the meta record m, without Entries, Size, Packed
// and SHA256.
func manifestOf(m meta, now time.Time) Manifest {
	at := m.Checkpoint
	at.Unconfirmed = false
	return Manifest{
		Format: archiveFormat, Checkpoint: at,
		Store: m.Format, Projection: m.Projection, Render: m.Render,
		DataSet: m.DataSet, Digest: m.Digest, Records: m.Counts,
		Time: now.UTC().Truncate(time.Millisecond),
	}
}

// describes returns an error unless m is the manifest of a file with the meta record f.
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
		return errors.New("manifest does not match the file")
	}
	return nil
}

// ParseManifest reads a manifest's JSON. It returns an error for a manifest that no usable archive
// can have.
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

// Bounds of a manifest. minSize is the size of a bbolt file of two meta pages. A file longer than
// smallSize whose compression ratio exceeds maxRatio was made to fill a disk.
const (
	minSize   = 2 * 1024
	maxSize   = 1 << 40
	smallSize = 16 << 20
	// Each record has a digest, which does not compress, and is little more than twice a reason's
	// HTML.
	maxRatio = 3 * readmodel.MaxReasonHTML / len(readmodel.Digest{})
)

func (m Manifest) check() error {
	if err := m.usable(); err != nil {
		return err
	}
	switch {
	case m.Stream == "" || len(m.Stream) > 256 || len(m.StreamEpoch) > 256 || len(m.History) > 256 || len(m.MessageID) > 4096:
		return errors.New("invalid stream or message")
	case !isHex(m.Digest, len(readmodel.Digest{})), !isHex(m.SHA256, sha256.Size), !isHex(m.DataSet, 16):
		return errors.New("invalid digest, checksum or data-set id")
	case m.Packed <= 0 || m.Packed > maxSize || m.Size < minSize || m.Size > maxSize:
		return errors.New("invalid size")
	case m.Size > smallSize && m.Size/int64(maxRatio) > m.Packed:
		return fmt.Errorf("%d bytes cannot hold %d", m.Packed, m.Size)
	}
	return m.checkCounts()
}

// usable returns why this program cannot use such an archive. Another render version is no reason.
func (m Manifest) usable() error {
	if m.Format != archiveFormat {
		return fmt.Errorf("archive format %d, not %d", m.Format, archiveFormat)
	}
	return meta{Format: m.Store, Projection: m.Projection}.usable()
}

func (m Manifest) checkCounts() error {
	known := map[string]bool{}
	for _, t := range tables() {
		known[t.name] = true
	}
	for name, n := range m.Records {
		if !known[name] || n < 0 || int64(n) > m.Size {
			return errors.New("records of an unknown table, or an invalid number")
		}
	}
	for list, n := range m.Entries {
		if n < 0 || n > m.Records[entriesPrefix+list] {
			return errors.New("more entries than records, or an invalid number")
		}
	}
	return nil
}

// isHex reports whether s is size bytes in lower-case hexadecimal digits.
func isHex(s string, size int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == size && strings.ToLower(s) == s
}

const (
	// archiveMagic begins every archive.
	archiveMagic = "registry-snapshot"
	// maxHeader bounds the text before the packed file, in bytes.
	maxHeader = 64 << 10
)

// header returns the text before the packed file, two lines that head -2 shows: the magic word, the
// format and the SHA-256 of the second line; and the manifest.
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

// ReadManifest reads the header of an archive and leaves r at the packed file. The manifest is the
// archive's own description: only Unpack and Restore verify it.
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

// headerLine reads a line of at most limit bytes and returns it without its newline.
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
