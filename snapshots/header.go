package snapshots

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// archiveMagic begins every archive.
	archiveMagic = "registry-snapshot"
	// maxHeader bounds what stands before the packed file, in bytes.
	maxHeader = 64 << 10
)

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
