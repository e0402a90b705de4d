package snapshots

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"example.org/registry/readmodel"
)

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
