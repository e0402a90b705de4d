package events

// kind is the shape of an event's data.
type kind uint8

const (
	unknownKind kind = iota
	entryKind
	delistingKind
	viewsKind
	donationKind
	removalKind
)

// dataKind is the shape that a type's data has.
func dataKind(t Type) kind {
	switch t {
	case TypeListed, TypeVerified, TypeAmended:
		return entryKind
	case TypeDelisted:
		return delistingKind
	case TypeViewsCounted:
		return viewsKind
	case TypeDonationUpdated:
		return donationKind
	case TypeDonationRemoved:
		return removalKind
	}
	return unknownKind
}

// kindOf is the shape of d; unknownKind for nil.
func kindOf(d Data) kind {
	switch d.(type) {
	case Entry:
		return entryKind
	case Delisting:
		return delistingKind
	case Views:
		return viewsKind
	case Donation:
		return donationKind
	case DonationRemoval:
		return removalKind
	}
	return unknownKind
}

// Tombstone is true for the types that erase what their subject said before, which are
// published with a roll-up of the subject (API contract, events).
func (t Type) Tombstone() bool { return t == TypeDelisted || t == TypeDonationRemoved }

// Types returns every event type of the contract.
func Types() [7]Type {
	return [7]Type{TypeListed, TypeVerified, TypeAmended, TypeDelisted,
		TypeViewsCounted, TypeDonationUpdated, TypeDonationRemoved}
}
