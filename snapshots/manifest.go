package snapshots

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// archiveFormat is the version of an archive's layout: the tables and their checksums (format.go),
// the manifest, and the rest (Manifest.write).
const archiveFormat = 3

// Manifest describes the content of an archive. Its members are those of the JSON line at the
// beginning of the archive, and of the response to POST /snapshots.
type Manifest struct {
	Format int `json:"format"` // archiveFormat

	readmodel.Checkpoint // the position of the content

	Projection uint32 `json:"projection"` // readmodel.ProjectionVersion
	Render     uint32 `json:"render"`     // readmodel.RenderVersion

	Digest  string         `json:"digest"`  // of the content, 32 hexadecimal digits
	Records map[string]int `json:"records"` // by table
	Entries map[string]int `json:"entries"` // shown, by list; lists that show none are omitted

	Time time.Time `json:"time"` // when the archive was made
	Size int64     `json:"size"` // of all records, in bytes
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

// storeSize returns about how long a store of the records is, in bytes.
func (m Manifest) storeSize() int64 { return m.Size + m.Size/8 }

// manifestOf returns the manifest of a store with the meta record m, without Entries and Size.
func manifestOf(m meta, now time.Time) Manifest {
	return Manifest{
		Format: archiveFormat, Checkpoint: m.Checkpoint, Projection: m.Projection, Render: m.Render,
		Digest: m.Digest, Records: m.Counts, Entries: map[string]int{},
		Time: now.UTC().Truncate(time.Millisecond),
	}
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

// maxSize bounds the records of an archive, in bytes.
const maxSize = 1 << 40

func (m Manifest) check() error {
	if m.Format != archiveFormat {
		return fmt.Errorf("archive format %d, not %d", m.Format, archiveFormat)
	}
	if err := (meta{Format: format, Projection: m.Projection}).usable(); err != nil {
		return err
	}
	switch {
	case m.Stream == "" || len(m.Stream) > 256 || len(m.StreamEpoch) > 256 || len(m.History) > 256:
		return errors.New("invalid stream")
	case len(m.Histories) > events.MaxFollows+1 || slices.ContainsFunc(m.Histories, func(name string) bool { return !events.IsHistoryName(name) }):
		return errors.New("invalid histories")
	case !isHex(m.Digest, len(readmodel.Digest{})):
		return errors.New("invalid digest")
	case m.Size < 0 || m.Size > maxSize:
		return errors.New("invalid size")
	}
	return m.checkCounts()
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

// archiveMagic is the first line of every archive.
const archiveMagic = "registry-snapshot\n"

// maxHeader bounds each of the header's lines, in bytes: histories have at most events.MaxFollows
// names of events.MaxHistoryName bytes.
const maxHeader = 512 << 10

// header returns what precedes the records, two lines that zstdcat and head -2 show: the magic word,
// and the manifest.
func (m Manifest) header() ([]byte, error) {
	line, err := json.Marshal(m)
	if err == nil && len(line) >= maxHeader {
		err = fmt.Errorf("manifest takes %d bytes, more than %d", len(line), maxHeader)
	}
	return append(append([]byte(archiveMagic), line...), '\n'), err
}
