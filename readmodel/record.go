package readmodel

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strconv"
	"strings"

	"example.org/registry/events"
)

// Record is the new rendered state of one subject: the argument of Apply. It never changes.
type Record struct {
	Subject  events.Subject
	Sequence uint64 // stream sequence of the event
	Revision int64
	Removed  bool // the state is a removal; its tombstone remains

	views    int64
	row      *Row // without its slot: Apply copies the row
	donation *events.Donation
	digest   Digest // of a view total, without the revision
	hash     events.Hash
}

// Digest returns r's part of a model's digest.
func (r Record) Digest() Digest { return Digest(r.hash) }

// rank returns the rank of r among the states of its subject.
func (r *Record) rank() events.Rank {
	return events.Rank{Revision: r.Revision, Removal: r.Removed, Hash: r.hash}
}

// newRow returns a row of its own for a model: the row of an entry, or a tombstone.
func (r *Record) newRow() *Row {
	if r.Removed {
		return &Row{
			id:   strings.Clone(r.Subject.ID), // may be a part of a longer string
			list: uint8(listIndex(r.Subject.List)), revision: r.Revision, hash: r.hash, removed: true,
		}
	}
	row := *r.row
	return &row
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

// StateDigest returns the digest of d.
func StateDigest(d events.Data) Digest { return Digest(events.RankOf(d).Hash) }

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

// contentDigest returns the digest of canonical data without its revision, which is its last member.
func contentDigest(k events.Subject, canonical []byte) Digest {
	return hashContent(k, canonical[:bytes.LastIndexByte(canonical, ',')])
}

// viewsDigest returns the digest of a view total without its revision.
func viewsDigest(k events.Subject, views int64) Digest {
	var room [20]byte
	return hashContent(k, strconv.AppendInt(room[:0], views, 10))
}

// hashContent hashes the name of a subject, a newline (which no subject has), and its content. The hash
// is cryptographic, so that no author of an entry can choose its digest.
func hashContent(k events.Subject, content []byte) Digest {
	var room [1024]byte
	b := append(append(room[:0], k.String()...), '\n')
	sum := sha256.Sum256(append(b, content...))
	return Digest(sum[:len(Digest{})])
}
