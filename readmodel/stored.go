package readmodel

import (
	"encoding/binary"
	"fmt"

	"example.org/registry/events"
)

// Digest is what r adds to a content's digest; not of a Removed record, which adds nothing.
func (r Record) Digest() Digest { return r.digest }

// Shown says whether r is an entry that its list shows: legit shows verified ones only.
func (r Record) Shown() bool { return r.row != nil && r.row.shown() }

// Add makes d the digest of both contents together, which have no subject in common.
func (d *Digest) Add(o Digest) { d.add(o) }

// DecodeState reads what the event said out of a stored value, and the digest computed from it; what
// was rendered is not looked at. It keeps nothing of value. An error means that the value is not one
// that this program wrote.
func DecodeState(k Key, value []byte) (events.Data, Digest, error) {
	_, n := binary.Uvarint(value)
	if n <= 0 {
		return nil, Digest{}, fmt.Errorf("%s: %w", k.Subject(), errRow)
	}
	if k.Kind == KindViews {
		r, err := decodeViews(k, 0, value[n:])
		return events.Views{List: k.List, EntryID: k.ID, Views: r.views}, r.digest, err
	}
	size, m := binary.Uvarint(value[n:])
	if m <= 0 || size > uint64(len(value)-n-m) {
		return nil, Digest{}, fmt.Errorf("%s: %w", k.Subject(), errRow)
	}
	return decodeData(k, value[n+m:n+m+int(size)])
}

func decodeData(k Key, state []byte) (events.Data, Digest, error) {
	t := events.TypeListed
	if k.Kind == KindDonation {
		t = events.TypeDonationUpdated
	}
	d, err := events.DecodeData(t, state)
	if err != nil {
		return nil, Digest{}, fmt.Errorf("%s: stored state: %w", k.Subject(), err)
	}
	if KeyOf(d) != k {
		return nil, Digest{}, fmt.Errorf("%s: %w", k.Subject(), errRow)
	}
	return d, hashState(k.Subject(), state), nil
}
