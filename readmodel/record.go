package readmodel

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"

	"example.org/registry/events"
)

// Record is a rendered state of one subject, for Model.Apply.
type Record struct {
	Subject  events.Subject
	Sequence uint64 // stream sequence of the event
	Revision int64
	Removed  bool // the state is a removal; its tombstone remains

	views    int64
	row      *Row // of an entry, or its tombstone; without a slot, which Apply gives to a copy of the row
	donation *events.Donation
	digest   Digest // of a view total, without the revision
	hash     events.Hash
}

// Digest returns r's part of a model's digest.
func (r Record) Digest() Digest { return newDigest(r.hash) }

// stateRank returns the rank of r among the states of its subject.
func (r *Record) stateRank() events.Rank {
	return events.Rank{Revision: r.Revision, Removal: r.Removed, Hash: r.hash}
}

// listIndex returns the position of l in events.Lists. It panics for any other list, which no record has.
func listIndex(l events.List) int {
	i, ok := l.Index()
	if !ok {
		panic("readmodel: unknown list " + string(l))
	}
	return i
}

// Digest identifies a content: it is the sum, modulo 2^128, of a hash for each subject that has a state. Two models
// with the same states have the same digest, whatever the order of events, the rendering and the sequences.
type Digest struct{ high, low uint64 }

// StateDigest returns the digest of d.
func StateDigest(d events.Data) Digest { return newDigest(events.RankOf(d).Hash) }

func newDigest(hash events.Hash) Digest {
	return Digest{binary.BigEndian.Uint64(hash[:8]), binary.BigEndian.Uint64(hash[8:])}
}

// String returns d in 32 hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x%016x", d.high, d.low) }

// Add adds o, the digest of other subjects.
func (d *Digest) Add(o Digest) {
	low, carry := bits.Add64(d.low, o.low, 0)
	d.low = low
	d.high += o.high + carry
}

// sub subtracts o, which was added before.
func (d *Digest) sub(o Digest) {
	low, borrow := bits.Sub64(d.low, o.low, 0)
	d.low = low
	d.high -= o.high + borrow
}

// viewsDigest returns the digest of a view total without its revision.
func viewsDigest(k events.Subject, views int64) Digest {
	return hashNamed(k.String(), strconv.FormatInt(views, 10))
}

// hashNamed hashes a name, a line feed (which no name has), and a content. The hash is cryptographic, so
// that no author of an entry can choose its digest.
func hashNamed(name, content string) Digest {
	var room [2048]byte // on the stack, so a text that fits takes no allocation
	sum := sha256.Sum256(append(append(append(room[:0], name...), '\n'), content...))
	return newDigest(events.Hash(sum[:len(events.Hash{})]))
}
