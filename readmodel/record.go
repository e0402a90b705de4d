package readmodel

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"example.org/registry/events"
)

// Versions that a store saves with its data.
const (
	// ProjectionVersion is the version of decoding and its bounds. A store of another version may
	// differ from the result of a replay, so the stream is replayed.
	ProjectionVersion uint32 = 5
	// RenderVersion is the version of Markdown, collation, folding, look-alike keys, the public
	// JSON and the stored row. Rows of another version are rendered again from the canonical state.
	RenderVersion uint32 = 8
)

// Record is the new rendered state of one subject: the argument of Apply and the content of a
// store. It never changes, except that Load sets the slot of its row.
type Record struct {
	Subject  events.Subject
	Sequence uint64 // stream sequence of the event
	Revision int64
	Removed  bool // the state is a removal; its tombstone remains

	views    int64
	row      *Row // without its slot: Apply copies the row, Load uses it
	donation *events.Donation
	state    []byte // canonical data of an entry or donation
	digest   Digest // of an entry or a view total, without the revision
	hash     events.Hash
}

// Digest returns r's part of a model's digest.
func (r Record) Digest() Digest { return Digest(r.hash) }

// State returns the canonical data of an entry or a donation that Render made a record of, else nil.
func (r Record) State() []byte { return r.state }

// Shown reports whether r is an entry that its list shows: legit shows verified entries only.
func (r Record) Shown() bool { return r.row != nil && r.row.shown() }

// rank returns the rank of r among the states of its subject.
func (r *Record) rank() events.Rank {
	return events.Rank{Revision: r.Revision, Removal: r.Removed, Hash: r.hash}
}

// AppendValue appends the stored form of r: its sequence and revision; then the time of a removal, a
// view total, or the canonical state and its rendering.
func (r Record) AppendValue(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, r.Sequence)
	dst = binary.AppendUvarint(dst, uint64(r.Revision))
	switch {
	case r.Removed:
		return binary.AppendUvarint(dst, 0)
	case r.Subject.Kind == events.KindViews:
		return binary.AppendUvarint(dst, uint64(r.views))
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.state)))
	dst = append(dst, r.state...)
	if r.row != nil {
		dst = appendRow(dst, r.row)
	}
	return dst
}

// ValueSize returns a number of bytes in which AppendValue fits.
func (r Record) ValueSize() int {
	n := 5*binary.MaxVarintLen64 + len(r.state)
	if r.row != nil {
		n += rowHeader + len(r.row.blob)
	}
	return n
}

// DecodeRecord is the inverse of AppendValue; removed says that the value is a removal's. It
// retains nothing of value, which may be memory of the store. With rerender it renders the row again
// from the canonical state, since another RenderVersion wrote it. An error means a value that this
// program did not write.
//
// An entry that is not rendered again has no canonical state: only the store keeps it.
func (r *Renderer) DecodeRecord(k events.Subject, removed bool, value []byte, rerender bool) (Record, error) {
	v, err := parseValue(k.Kind, removed, value)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", k.Masked(), err)
	}
	if removed || k.Kind != events.KindEntry || rerender {
		d, err := v.data(k, removed)
		if err != nil {
			return Record{}, err
		}
		return r.Render(v.sequence, d), nil
	}
	row, err := decodeRow(v.row, k, v.sequence, v.revision)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", k.Masked(), err)
	}
	return Record{Subject: k, Sequence: v.sequence, Revision: v.revision, row: row, digest: row.digest, hash: row.hash}, nil
}

// DecodeState reads the state from a stored value; removed says that it is a removal's. It
// ignores the rendering, and retains nothing of value. An error means a value that this program did
// not write.
func DecodeState(k events.Subject, removed bool, value []byte) (State, error) {
	v, err := parseValue(k.Kind, removed, value)
	if err != nil {
		return State{}, fmt.Errorf("%s: %w", k.Masked(), err)
	}
	d, err := v.data(k, removed)
	return State{v.sequence, d}, err
}

// StateDigest returns the digest of d.
func StateDigest(d events.Data) Digest { return Digest(events.RankOf(d).Hash) }

// contentDigest returns the digest of canonical data without its revision, which is its last member.
func contentDigest(k events.Subject, state []byte) Digest {
	return hashState(k.String(), state[:bytes.LastIndexByte(state, ',')])
}

// storedValue is the parts of a stored value. Its byte slices share the value's memory.
type storedValue struct {
	sequence   uint64
	revision   int64
	number     int64 // a view total, or the time of a removal, which have no other parts
	state, row []byte
}

func parseValue(kind events.Kind, removed bool, b []byte) (v storedValue, err error) {
	var numbers [3]uint64
	for i := range numbers {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			return v, errRow
		}
		numbers[i], b = n, b[size:]
	}
	v.sequence, v.revision = numbers[0], int64(numbers[1])
	last := numbers[2]
	switch {
	case numbers[1] < 1 || numbers[1] > events.MaxRevision:
		return v, errRow
	case removed || kind == events.KindViews:
		if len(b) > 0 || removed && last > 0 || last >= 1<<53 {
			return v, errRow
		}
		v.number = int64(last)
	case last > uint64(len(b)):
		return v, errRow
	default:
		v.state, v.row = b[:last], b[last:]
	}
	return v, nil
}

// data returns the event's data.
func (v *storedValue) data(k events.Subject, removed bool) (d events.Data, err error) {
	t := events.TypeListed
	switch {
	case !events.IsID(k.ID):
		return nil, fmt.Errorf("%s: %w", k.Masked(), errRow)
	case removed && k.Kind == events.KindDonation:
		return events.DonationRemoval{DonationID: k.ID, Revision: v.revision}, nil
	case removed:
		return events.Delisting{List: k.List, EntryID: k.ID, Revision: v.revision}, nil
	case k.Kind == events.KindViews:
		return events.Views{List: k.List, EntryID: k.ID, Revision: v.revision, Views: v.number}, nil
	case k.Kind == events.KindDonation:
		t = events.TypeDonationUpdated
	}
	if d, err = events.DecodeData(t, v.state); err != nil {
		return nil, fmt.Errorf("%s: stored state: %w", k.Masked(), err)
	}
	if d.Subject() != k || events.Revision(d) != v.revision {
		return nil, fmt.Errorf("%s: %w", k.Masked(), errRow)
	}
	return d, nil
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

// viewsDigest returns the digest of a view total.
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

	// History is the name of the newest marker up to the checkpoint (events/CONTRACT.md#another-stream).
	// If empty, there is none, and the stream's epoch is the name.
	History string `json:"history,omitempty"`

	// Demo: the stream is the demonstration's.
	Demo bool `json:"demo,omitempty"`
}

// HistoryName names the history that the sequences belong to.
func (s StreamIdentity) HistoryName() string { return cmp.Or(s.History, s.StreamEpoch) }

// Position is a message that a stream held: its sequence, and when the broker stored it.
type Position struct {
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"`
}

// Checkpoint is a position in a stream: everything up to Sequence has been applied, superseded or
// rejected. The zero value is the position before the first message. The projector, stores and
// manifests all use this type.
//
// A state whose sequence is greater than Sequence is known, and the stream is not known to hold it.
type Checkpoint struct {
	StreamIdentity
	Sequence uint64 `json:"sequence"`

	// Positions are some of the messages up to Sequence, in their order: the last ones, and ever
	// fewer of those before. The newest that a stream holds unchanged proves that it is the same up
	// to there.
	Positions []Position `json:"positions,omitempty"`

	// Histories are all that the states belong to. Two that share none have nothing to do with each
	// other. HistoryRevision is the revision of the newest marker; 0 means that there is none.
	Histories       []string `json:"histories,omitempty"`
	HistoryRevision int64    `json:"historyRevision,omitzero"`

	// Complete means that the states have been complete once; in a first replay they are not.
	Complete bool `json:"complete,omitempty"`

	// Rewound means that the stream lost its end, or came back in an older state, and that no marker
	// has been read since.
	Rewound bool `json:"rewound,omitempty"`

	// Erased is the sequence up to which the messages before each tombstone have been deleted from
	// the stream. It is zero if unknown.
	Erased uint64 `json:"erased,omitzero"`

	// Restored is the sequence up to which each subject's last message has been compared with its
	// state. It is zero if unknown.
	Restored uint64 `json:"restored,omitzero"`
}

// Owed describes the last complete state of a data directory whose store no longer holds it. Until the
// store does, nothing is served: a person who is missing would look clean.
type Owed struct {
	Checkpoint
	Subjects int  `json:"subjects"` // with a state, removals included
	Unknown  bool `json:"-"`        // nothing can be said but that there was a complete state
}

// Newest returns the newest of the positions, or the zero Position.
func (c Checkpoint) Newest() (p Position) {
	if n := len(c.Positions); n > 0 {
		p = c.Positions[n-1]
	}
	return p
}

// The last nearPositions messages are kept; of those before, the distances grow with the distance to
// the end.
const nearPositions = 16

// Passed adds the positions of messages after the others, and drops some of the older ones.
func (c *Checkpoint) Passed(messages []Position) {
	all := slices.Concat(c.Positions, messages[max(0, len(messages)-nearPositions):])
	end := all[len(all)-1].Sequence
	kept := all[:0:0]
	for i, p := range all {
		if n := len(kept); n == 0 || i >= len(all)-nearPositions || all[i+1].Sequence-kept[n-1].Sequence > (end-p.Sequence)/2 {
			kept = append(kept, p)
		}
	}
	c.Positions = kept
}

// Commit is the content of one transaction of a store. It has the checkpoint and the data together,
// so a crash can repeat work but never lose or double it.
type Commit struct {
	Records    []Record         // at most one for each subject
	Lacking    []events.Subject // whose stored states get sequence 0; none is among Records
	Checkpoint Checkpoint
	Digest     Digest // of the model at Checkpoint
}

// Lacking returns r as the state of a subject that the stream is not known to hold.
func (r Record) Lacking() Record {
	r.Sequence = 0
	if r.row != nil {
		row := *r.row
		row.sequence = 0
		r.row = &row
	}
	return r
}

// ClearSequence returns a stored value with sequence 0 (Commit.Lacking).
func ClearSequence(value []byte) []byte {
	_, size := binary.Uvarint(value)
	return append([]byte{0}, value[max(size, 0):]...)
}
