package readmodel

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strconv"
	"time"

	"example.org/registry/events"
)

// Versions that a store keeps with what it holds. events/CHANGING.md#versions says which change
// raises which.
const (
	// ProjectionVersion is the version of decoding and its bounds. What a store of another version
	// holds may not be what a replay would give, so the stream is replayed.
	ProjectionVersion uint32 = 2
	// RenderVersion is the version of Markdown, collation, folding, look-alike keys, the public
	// JSON and the stored row. Rows of another version are rendered again from the canonical state.
	RenderVersion uint32 = 5
)

// Record is one subject's new state, rendered: what Apply takes and what a store keeps. It never
// changes, but that Load sets the slot of its row.
type Record struct {
	Subject  events.Subject
	Sequence uint64 // stream sequence of the event
	Removed  bool   // the subject has no state any more

	delisted time.Time // of a delisting: when
	views    int64
	row      *Row // its slot is not set: Apply takes a copy, Load this very row
	donation *events.Donation
	state    []byte // canonical data of an entry or donation
	digest   Digest
}

// Digest returns what r adds to a content's digest. A Removed record adds nothing and has none.
func (r Record) Digest() Digest { return r.digest }

// Shown reports whether r is an entry that its list shows: legit shows verified entries only.
func (r Record) Shown() bool { return r.row != nil && r.row.shown() }

// Tombstone reports whether r is a delisting, which a store keeps as a tombstone.
func (r Record) Tombstone() bool { return r.Removed && r.Subject.Kind == events.KindEntry }

// DelistedAt returns r, a delisting, with the time at which it happened.
func (r Record) DelistedAt(t time.Time) Record {
	r.delisted = fromMillis(toMillis(t))
	return r
}

// AppendValue appends the stored form of r: its sequence, its canonical state, and what was
// rendered from that; of a tombstone, the sequence and the time. The removal of a donation has
// none: a store deletes its key.
func (r Record) AppendValue(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, r.Sequence)
	if r.Tombstone() {
		return binary.AppendUvarint(dst, uint64(toMillis(r.delisted)))
	}
	if r.Subject.Kind == events.KindViews {
		return binary.AppendUvarint(dst, uint64(r.views))
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.state)))
	dst = append(dst, r.state...)
	if r.row != nil {
		dst = appendRow(dst, r.row)
	}
	return dst
}

// DecodeTombstone is the inverse of AppendValue for the tombstone of an entry. An error means a
// value that this program did not write.
func DecodeTombstone(k events.Subject, value []byte) (Tombstone, error) {
	sequence, n := binary.Uvarint(value)
	if n <= 0 {
		return Tombstone{}, fmt.Errorf("%s: %w", k, errRow)
	}
	ms, size := binary.Uvarint(value[n:])
	if size <= 0 || n+size != len(value) || ms > maxMillis || !events.IsID(k.ID) {
		return Tombstone{}, fmt.Errorf("%s: %w", k, errRow)
	}
	return Tombstone{List: k.List, EntryID: k.ID, Sequence: sequence, Time: fromMillis(int64(ms))}, nil
}

// Record returns the delisting that left the tombstone.
func (t Tombstone) Record() Record {
	return Record{Subject: t.Subject(), Sequence: t.Sequence, Removed: true, delisted: t.Time}
}

// DecodeRecord is the inverse of AppendValue, but for tombstones. It keeps nothing of value, which
// may be memory of the store. With rerender it renders the row again from the canonical state,
// since another RenderVersion wrote it. An error means a value that this program did not write.
//
// An entry that is not rendered again has no canonical state: the store has it, memory does
// without.
func (r *Renderer) DecodeRecord(k events.Subject, value []byte, rerender bool) (Record, error) {
	v, err := parseValue(k.Kind, value)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", k.Masked(), err)
	}
	switch {
	case k.Kind == events.KindViews:
		return Record{Subject: k, Sequence: v.sequence, views: v.views, digest: viewsDigest(k, v.views)}, nil
	case k.Kind == events.KindEntry && !rerender:
		row, err := decodeRow(v.row, v.sequence)
		if err == nil && (row.ID() != k.ID || int(row.list) != listIndex(k.List)) {
			err = errRow
		}
		if err != nil {
			return Record{}, fmt.Errorf("%s: %w", k.Masked(), err)
		}
		return Record{Subject: k, Sequence: v.sequence, row: row, digest: row.digest}, nil
	default:
		d, _, err := decodeState(k, v.state)
		if err != nil {
			return Record{}, err
		}
		return r.Render(v.sequence, d), nil
	}
}

// DecodeState reads the event's data out of a stored value, and computes its digest. It does not
// look at what was rendered, and keeps nothing of value. An error means a value that this program
// did not write.
func DecodeState(k events.Subject, value []byte) (events.Data, Digest, error) {
	v, err := parseValue(k.Kind, value)
	if err != nil {
		return nil, Digest{}, fmt.Errorf("%s: %w", k.Masked(), err)
	}
	if k.Kind == events.KindViews {
		return events.Views{List: k.List, EntryID: k.ID, Views: v.views}, viewsDigest(k, v.views), nil
	}
	return decodeState(k, v.state)
}

// DecodeSequence reads the sequence of the last change out of a stored value.
func DecodeSequence(k events.Subject, value []byte) (uint64, error) {
	v, err := parseValue(k.Kind, value)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", k.Masked(), err)
	}
	return v.sequence, nil
}

// storedValue is the parts of a stored value. Those that are bytes are parts of it.
type storedValue struct {
	sequence   uint64
	views      int64 // of a view total, which has no other parts
	state, row []byte
}

func parseValue(kind events.Kind, b []byte) (v storedValue, err error) {
	sequence, n := binary.Uvarint(b)
	if n <= 0 {
		return v, errRow
	}
	v.sequence, b = sequence, b[n:]
	number, n := binary.Uvarint(b)
	switch {
	case n <= 0:
		return v, errRow
	case kind == events.KindViews:
		if n != len(b) || number >= 1<<53 {
			return v, errRow
		}
		v.views = int64(number)
	case number > uint64(len(b)-n):
		return v, errRow
	default:
		v.state, v.row = b[n:n+int(number)], b[n+int(number):]
	}
	return v, nil
}

func decodeState(k events.Subject, state []byte) (events.Data, Digest, error) {
	t := events.TypeListed
	if k.Kind == events.KindDonation {
		t = events.TypeDonationUpdated
	}
	d, err := events.DecodeData(t, state)
	if err != nil {
		return nil, Digest{}, fmt.Errorf("%s: stored state: %w", k.Masked(), err)
	}
	if d.Subject() != k {
		return nil, Digest{}, fmt.Errorf("%s: %w", k.Masked(), errRow)
	}
	return d, hashState(k.String(), state), nil
}

// listIndex returns the position of l in events.Lists. Every list that reaches the model is one of
// them.
func listIndex(l events.List) int {
	i, ok := l.Index()
	if !ok {
		panic("readmodel: unknown list " + string(l))
	}
	return i
}

// Digest identifies a content: the sum, modulo 2^128, of a hash for each subject that has a state.
// It does not depend on the order of events, on rendering or on sequences, so two models of the
// same content have the same digest wherever and however they were built.
type Digest [16]byte

// String returns d in 32 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Add makes d the digest of both contents together, which have no subject in common.
func (d *Digest) Add(o Digest) {
	lo, carry := bits.Add64(d.low(), o.low(), 0)
	hi, _ := bits.Add64(d.high(), o.high(), carry)
	d.set(hi, lo)
}

// sub takes o, which was added before, out of d.
func (d *Digest) sub(o Digest) {
	lo, borrow := bits.Sub64(d.low(), o.low(), 0)
	hi, _ := bits.Sub64(d.high(), o.high(), borrow)
	d.set(hi, lo)
}

func (d *Digest) high() uint64 { return binary.BigEndian.Uint64(d[:8]) }
func (d *Digest) low() uint64  { return binary.BigEndian.Uint64(d[8:]) }

func (d *Digest) set(hi, lo uint64) {
	binary.BigEndian.PutUint64(d[:8], hi)
	binary.BigEndian.PutUint64(d[8:], lo)
}

// hashState returns the digest of one subject: of its name, a newline (which no subject has), and
// its state. The hash is a cryptographic one, so that nobody who writes an entry can choose its
// digest.
func hashState(subject string, state []byte) Digest {
	var buf [1024]byte
	b := append(buf[:0], subject...)
	b = append(b, '\n')
	b = append(b, state...)
	sum := sha256.Sum256(b)
	return Digest(sum[:16])
}

// viewsDigest returns the digest of a view total. Its canonical state is the decimal number.
func viewsDigest(k events.Subject, views int64) Digest {
	var buf [20]byte
	return hashState(k.String(), strconv.AppendInt(buf[:0], views, 10))
}

// StreamIdentity tells one stream from another of the same name. Its JSON members are those of
// stored checkpoints and of archives' manifests.
type StreamIdentity struct {
	Stream        string    `json:"stream"`                 // its name
	StreamEpoch   string    `json:"streamEpoch"`            // metadata registry-epoch, else the creation time
	StreamCreated time.Time `json:"streamCreated,omitzero"` // as the broker reports it

	// History is the name of the last history that was begun in the stream up to the checkpoint
	// (events/CONTRACT.md#histories). Empty: none was, and the stream's epoch is the name.
	History string `json:"history,omitempty"`
}

// HistoryName names the history that the sequences belong to. Only within one history do sequences
// tell which of two states is newer.
func (s StreamIdentity) HistoryName() string { return cmp.Or(s.History, s.StreamEpoch) }

// Checkpoint is a position in a stream: everything up to Sequence has been applied or rejected. The
// zero value means that nothing has been. It is the one shape of a checkpoint: the projector
// follows it, a store keeps it, and a manifest embeds it.
type Checkpoint struct {
	StreamIdentity
	Sequence    uint64    `json:"sequence"`
	MessageID   string    `json:"messageId,omitempty"`  // Nats-Msg-Id of the message at Sequence; "" when none is known
	MessageTime time.Time `json:"messageTime,omitzero"` // when the broker stored that message; zero when none is known

	// NewestTime is the latest time at which the broker stored any message up to Sequence. With one
	// clock that is MessageTime, where there is one. Zero when it is not known.
	NewestTime time.Time `json:"newestTime,omitzero"`

	// Unconfirmed says that the stream once looked shorter than Sequence, or like another stream,
	// and that the message at Sequence has not been seen there, unchanged, since.
	Unconfirmed bool `json:"doubted,omitzero"`

	// Erased is the sequence up to which the messages before each tombstone have been erased from
	// the stream. Zero when it is not known.
	Erased uint64 `json:"erased,omitzero"`
}

// Commit is what one transaction of a store holds. The checkpoint travels with the data, so that a
// crash can repeat work but never lose or double it.
type Commit struct {
	Records    []Record // at most one a subject
	Checkpoint Checkpoint
	Digest     Digest // of the model at Checkpoint
}
