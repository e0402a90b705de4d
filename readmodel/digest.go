package readmodel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// Digest identifies a content: the sum, modulo 2^128, of a hash for each subject that has a
// state. It does not depend on the order of events, on rendering or on sequences, so two models
// of the same content have the same digest wherever and however they were built.
type Digest [16]byte

// String is d in 32 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

func (d *Digest) add(o Digest) {
	lo, carry := bits.Add64(d.low(), o.low(), 0)
	hi, _ := bits.Add64(d.high(), o.high(), carry)
	d.set(hi, lo)
}

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

// hashState is the digest of one subject: subject, a newline (which no subject has), state.
// A cryptographic hash, so that nobody who writes an entry can choose its digest.
func hashState(subject string, state []byte) Digest {
	var buf [1024]byte
	b := append(buf[:0], subject...)
	b = append(b, '\n')
	b = append(b, state...)
	sum := sha256.Sum256(b)
	return Digest(sum[:16])
}
