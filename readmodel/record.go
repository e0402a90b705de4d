package readmodel

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"example.org/registry/events"
)

// Versions that a store keeps with what it holds.
const (
	// ProjectionVersion changes when decoding or a bound does: what a store of another version
	// holds may not be what a replay would give, so it is replayed from the stream.
	ProjectionVersion uint32 = 1
	// RenderVersion changes when Markdown, collation, folding, look-alike keys or the public JSON do
	// (a golden test notices): rows of another version are rendered anew from the canonical state.
	RenderVersion uint32 = 3
)

// Record is one subject's new state, rendered: what Apply takes and what a store keeps.
// It is immutable but for the number that Apply gives its row, so it is applied to one Model only.
type Record struct {
	Key      Key
	Sequence uint64 // stream sequence of the event
	Removed  bool   // the subject has no state any more

	views    int64
	row      *Row
	donation *events.Donation
	state    []byte // canonical data of an entry or donation
	digest   Digest
}

// viewsDigest is the digest of a view total; its canonical state is the decimal number.
func viewsDigest(k Key, views int64) Digest {
	var buf [20]byte
	return hashState(k.Subject(), strconv.AppendInt(buf[:0], views, 10))
}

// AppendValue appends the stored form of r: its sequence, then the canonical state, then what
// was rendered from it. A Removed record has none: a store deletes its key.
func (r Record) AppendValue(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, r.Sequence)
	if r.Key.Kind == KindViews {
		return binary.AppendUvarint(dst, uint64(r.views))
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.state)))
	dst = append(dst, r.state...)
	if r.row != nil {
		dst = appendRow(dst, r.row)
	}
	return dst
}

// DecodeRecord is the inverse of AppendValue. It keeps nothing of value, which may be memory of
// the store. With rerender the row is made anew from the canonical state (another RenderVersion).
// An error means that the value is not one that this program wrote.
func (r *Renderer) DecodeRecord(k Key, value []byte, rerender bool) (Record, error) {
	seq, n := binary.Uvarint(value)
	if n <= 0 {
		return Record{}, fmt.Errorf("%s: %w", k.Subject(), errRow)
	}
	if k.Kind == KindViews {
		return decodeViews(k, seq, value[n:])
	}
	size, m := binary.Uvarint(value[n:])
	if m <= 0 || size > uint64(len(value)-n-m) {
		return Record{}, fmt.Errorf("%s: %w", k.Subject(), errRow)
	}
	state, row := value[n+m:n+m+int(size)], value[n+m+int(size):]
	if k.Kind == KindEntry && !rerender {
		return decodeEntry(k, seq, row)
	}
	return r.decodeState(k, seq, state)
}

func decodeViews(k Key, seq uint64, b []byte) (Record, error) {
	views, n := binary.Uvarint(b)
	if n <= 0 || n != len(b) || views >= 1<<53 {
		return Record{}, fmt.Errorf("%s: %w", k.Subject(), errRow)
	}
	return Record{Key: k, Sequence: seq, views: int64(views), digest: viewsDigest(k, int64(views))}, nil
}

// decodeEntry leaves the canonical state behind: the store has it, memory does without.
func decodeEntry(k Key, seq uint64, b []byte) (Record, error) {
	row, err := decodeRow(b, seq)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", k.Subject(), err)
	}
	if row.ID() != k.ID || int(row.list) != listIndex(k.List) {
		return Record{}, fmt.Errorf("%s: %w", k.Subject(), errRow)
	}
	return Record{Key: k, Sequence: seq, row: row, digest: row.digest}, nil
}

func (r *Renderer) decodeState(k Key, seq uint64, state []byte) (Record, error) {
	d, _, err := decodeData(k, state)
	if err != nil {
		return Record{}, err
	}
	return r.Render(seq, d), nil
}
