package readmodel

import "example.org/registry/events"

// filterBits is what the filters of a list ask about an entry.
type filterBits uint8

const (
	bitVerified filterBits = 1 << iota
	bitProofs              // has a public proofs page
	bitPrivate             // has private proofs
)

func filterOf(e *events.Entry) filterBits {
	var f filterBits
	if e.Verified {
		f |= bitVerified
	}
	if e.Proofs.ID != "" {
		f |= bitProofs
	}
	if e.Proofs.Private {
		f |= bitPrivate
	}
	return f
}

// shown says whether the list shows the row at all: legit shows verified entries only.
func (r *Row) shown() bool {
	return r.list != uint8(listIndex(events.Legit)) || r.filter&bitVerified != 0
}

func (r *Row) matches(s Status, p Proofs) bool {
	return r.shown() && r.hasStatus(s) && r.hasProofs(p)
}

func (r *Row) hasStatus(s Status) bool {
	verified := r.filter&bitVerified != 0
	return s == StatusAll || verified == (s == StatusVerified)
}

func (r *Row) hasProofs(p Proofs) bool {
	switch p {
	case ProofsWith:
		return r.filter&bitProofs != 0
	case ProofsPrivate:
		return r.filter&bitPrivate != 0
	default:
		return true
	}
}
