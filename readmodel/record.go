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

// Versions that a store saves with its data. events/CHANGING.md#versions says which change raises
// which.
const (
	// ProjectionVersion is the version of decoding and its bounds. A store of another version may
	// differ from the result of a replay, so the stream is replayed.
	ProjectionVersion uint32 = 3
	// RenderVersion is the version of Markdown, collation, folding, look-alike keys, the public
	// JSON and the stored row. Rows of another version are rendered again from the canonical state.
	RenderVersion uint32 = 6
)

// Record is the new rendered state of one subject: the argument of Apply and the content of a
// store. It never changes, except that Load sets the slot of its row.
type Record struct {
	Subject  events.Subject
	Sequence uint64 // stream sequence of the event
	Removed  bool   // the subject no longer has a state

	delisted time.Time // time of a delisting
	views    int64
	row      *Row // without its slot: Apply copies the row, Load uses it
	donation *events.Donation
	state    []byte // canonical data of an entry or donation
	digest   Digest
}

// Digest returns r's part of a content's digest, which is zero for a Removed record.
func (r Record) Digest() Digest { return r.digest }

// Shown reports whether r is an entry that its list shows: legit shows verified entries only.
func (r Record) Shown() bool { return r.row != nil && r.row.shown() }

// Tombstone reports whether r is a delisting, which a store holds as a tombstone.
func (r Record) Tombstone() bool { return r.Removed && r.Subject.Kind == events.KindEntry }

// DelistedAt returns r, a delisting, with t as the time of the delisting.
func (r Record) DelistedAt(t time.Time) Record {
	r.delisted = fromMillis(toMillis(t))
	return r
}

// AppendValue appends the stored form of r: its sequence, its canonical state, and its rendering;
// for a tombstone, the sequence and the time. The removal of a donation has no stored form: a store
// deletes its key.
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

// DecodeRecord is the inverse of AppendValue, except for tombstones. It retains nothing of value,
// which may be memory of the store. With rerender it renders the row again from the canonical
// state, since another RenderVersion wrote it. An error means a value that this program did not
// write.
//
// An entry that is not rendered again has no canonical state: only the store keeps it.
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

// DecodeState reads the event's data from a stored value, and computes its digest. It ignores the
// rendering, and retains nothing of value. An error means a value that this program did not write.
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

// DecodeSequence reads the sequence of the last change from a stored value.
func DecodeSequence(k events.Subject, value []byte) (uint64, error) {
	v, err := parseValue(k.Kind, value)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", k.Masked(), err)
	}
	return v.sequence, nil
}

// storedValue is the parts of a stored value. Its byte slices share the value's memory.
type storedValue struct {
	sequence   uint64
	views      int64 // a view total, which has no other parts
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

// listIndex returns the position of l in events.Lists. Only these lists reach the model.
func listIndex(l events.List) int {
	i, ok := l.Index()
	if !ok {
		panic("readmodel: unknown list " + string(l))
	}
	return i
}

// Digest identifies a content. It is the sum, modulo 2^128, of a hash for each subject that has a
// state. It does not depend on the order of events, on rendering or on sequences. So two models of
// the same content have the same digest, however they were built.
type Digest [16]byte

// String returns d in 32 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Add adds o, the digest of a content that has no subject in common with d's.
func (d *Digest) Add(o Digest) {
	lo, carry := bits.Add64(d.low(), o.low(), 0)
	hi, _ := bits.Add64(d.high(), o.high(), carry)
	d.set(hi, lo)
}

// sub subtracts o, which was added before.
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
// its state. The hash is cryptographic, so that no author of an entry can choose its digest.
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

// StreamIdentity distinguishes streams of the same name. Stored checkpoints and the manifests of
// archives have its JSON members.
type StreamIdentity struct {
	Stream        string    `json:"stream"`                 // its name
	StreamEpoch   string    `json:"streamEpoch"`            // metadata registry-epoch, else the creation time
	StreamCreated time.Time `json:"streamCreated,omitzero"` // as the broker reports it

	// History is the name of the last history that was begun in the stream up to the checkpoint
	// (events/CONTRACT.md#histories). If empty, none was begun, and the stream's epoch is the name.
	History string `json:"history,omitempty"`
}

// HistoryName names the history that the sequences belong to. Comparing the sequences of two states
// tells which is newer only within one history.
func (s StreamIdentity) HistoryName() string { return cmp.Or(s.History, s.StreamEpoch) }

// Checkpoint is a position in a stream: everything up to Sequence has been applied or rejected. The
// zero value is the position before the first message. The projector, stores and manifests all use
// this type.
type Checkpoint struct {
	StreamIdentity
	Sequence    uint64    `json:"sequence"`
	MessageID   string    `json:"messageId,omitempty"`  // Nats-Msg-Id of the message at Sequence; "" when none is known
	MessageTime time.Time `json:"messageTime,omitzero"` // when the broker stored that message; zero if unknown

	// NewestTime is the latest time at which the broker stored any message up to Sequence. If the
	// broker's clock is steady, it equals MessageTime, unless that is unknown. It is zero if
	// unknown.
	NewestTime time.Time `json:"newestTime,omitzero"`

	// Unconfirmed is set when the stream looks shorter than Sequence, or like another stream, and
	// cleared when the message at Sequence is seen there, unchanged.
	Unconfirmed bool `json:"doubted,omitzero"`

	// Erased is the sequence up to which the messages before each tombstone have been deleted from
	// the stream. It is zero if unknown.
	Erased uint64 `json:"erased,omitzero"`
}

// Commit is the content of one transaction of a store. It has the checkpoint and the data together,
// so a crash can repeat work but never lose or double it.
type Commit struct {
	Records    []Record // at most one for each subject
	Checkpoint Checkpoint
	Digest     Digest // of the model at Checkpoint
}
