package readmodel

import "example.org/registry/events"

// filterBits is what the filters of a list ask about an entry.
type filterBits uint8

const (
	bitVerified filterBits = 1 << iota
	bitProofs              // has a public proofs page
	bitPrivate             // has private proofs
	bitShown               // its list shows it at all: legit shows verified entries only
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
	return f.in(listIndex(e.List))
}

// in is f with the bit that depends on the list.
func (f filterBits) in(list int) filterBits {
	if events.Lists()[list] != events.Legit || f&bitVerified != 0 {
		return f | bitShown
	}
	return f &^ bitShown
}

// shown says whether the list shows the row at all.
func (r *Row) shown() bool { return r.filter&bitShown != 0 }

func (r *Row) matches(s Status, p Proofs) bool { return r.filter.match(s, p) }

// match says whether an entry of these bits is let through. The zero value, no entry, never is.
func (f filterBits) match(s Status, p Proofs) bool {
	return f&bitShown != 0 && f.hasStatus(s) && f.hasProofs(p)
}

func (f filterBits) hasStatus(s Status) bool {
	return s == StatusAll || (f&bitVerified != 0) == (s == StatusVerified)
}

func (f filterBits) hasProofs(p Proofs) bool {
	switch p {
	case ProofsWith:
		return f&bitProofs != 0
	case ProofsPrivate:
		return f&bitPrivate != 0
	default:
		return true
	}
}
