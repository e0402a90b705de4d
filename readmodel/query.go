package readmodel

import "example.org/registry/events"

// Sort is the order of a list (API contract, lists). The zero value is Newest.
type Sort uint8

// The orders. Oldest, PopularAsc and AZ ascend; each of the others is the exact reverse of one.
const (
	Newest Sort = iota
	Oldest
	Popular
	PopularAsc
	AZ
	ZA
)

// ByViews says whether the order depends on view totals.
func (s Sort) ByViews() bool { return s == Popular || s == PopularAsc }

// Status filters a list by verification. The zero value is every entry.
type Status uint8

// The status filters.
const (
	StatusAll Status = iota
	StatusVerified
	StatusRisk
)

// Proofs filters a list by proofs. The zero value is every entry.
type Proofs uint8

// The proofs filters.
const (
	ProofsAll Proofs = iota
	ProofsWith
	ProofsPrivate
)

// ListQuery asks for a page of one list. The caller has checked the bounds: Skip is not
// negative, Limit at least 1. ID, when not empty, takes precedence over Search.
type ListQuery struct {
	List   events.List
	Search string // as typed; folded here
	ID     string // chat id, exact
	Sort   Sort
	Status Status // ignored for legit, which shows verified entries only
	Proofs Proofs
	Skip   int
	Limit  int
}

// CheckQuery asks who somebody is, on all lists at once. ID, when not empty, takes precedence.
type CheckQuery struct {
	ID     string
	Search string
}
