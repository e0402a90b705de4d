package events

import "time"

// Event is one CloudEvent of the registry. By convention, Data is no pointer and is never changed, so any
// number of goroutines may share an Event.
type Event struct {
	ID     string    // for people; nothing relies on it
	Source string    // CloudEvents source: who publishes
	Type   Type      // decides which Data is allowed
	Time   time.Time // CloudEvents time; zero if the event has none
	Data   Data
}

// ExportSource is the source of events that registry export writes.
const ExportSource = "urn:registry:export"

// Type is a CloudEvents type (events/CONTRACT.md#subjects).
type Type string

// The event types. The first three all set an entry's whole state.
const (
	TypeListed          Type = "registry.entry.listed"
	TypeVerified        Type = "registry.entry.verified"
	TypeAmended         Type = "registry.entry.amended"
	TypeDelisted        Type = "registry.entry.delisted"
	TypeViewsCounted    Type = "registry.views.counted"
	TypeDonationUpdated Type = "registry.donation.updated"
	TypeDonationRemoved Type = "registry.donation.removed"
)

// The types of the first and the last line of a snapshot or an export. These lines are no events: they
// change no state, and registry publish passes over them.
const (
	TypeSnapshotBegun = "registry.snapshot.begun"
	TypeSnapshotEnded = "registry.snapshot.ended"
)

// Types returns every event type of the contract.
func Types() [7]Type {
	return [7]Type{TypeListed, TypeVerified, TypeAmended, TypeDelisted, TypeViewsCounted, TypeDonationUpdated, TypeDonationRemoved}
}

// Removes reports whether events of type t remove the state of their subject. A server then purges
// the subject's earlier messages (events/CONTRACT.md#erasing).
func (t Type) Removes() bool { return t == TypeDelisted || t == TypeDonationRemoved }

// List is the name of a public list.
type List string

// The lists, in the order in which a check reports them.
const (
	Scammers List = "scammers"
	Servers  List = "servers"
	Legit    List = "legit"
)

// NumLists is the number of lists.
const NumLists = 3

// Lists returns every list in the order in which a check reports them.
func Lists() [NumLists]List { return [NumLists]List{Scammers, Servers, Legit} }

// Trusted reports whether l is the list of trusted persons. Its entries are shown only if they are
// verified. Entries of the other lists are reports, and shown at once.
func (l List) Trusted() bool { return l == Legit }

// Index returns the position of l in Lists. ok is false if l is not a list.
func (l List) Index() (i int, ok bool) {
	switch l { // every lookup calls Index, and a loop over Lists would take longer
	case Scammers:
		return 0, true
	case Servers:
		return 1, true
	case Legit:
		return 2, true
	}
	return 0, false
}

// Data is the content of an event: an Entry, Delisting, Views, Donation or DonationRemoval.
type Data interface {
	// Subject returns the event's subject, which is also the NATS subject to publish it on.
	Subject() Subject

	// eventTypes returns the types that an event with this kind of data may have. The first type fits
	// any valid data of the kind.
	eventTypes() []Type

	stateRevision() int64
	withRevision(revision int64) Data
	checkBounds() error // of all members but the revision, which Validate checks
	appendTo(w *writer)
}

// Entry is the whole state of one record of a list. Strings are valid UTF-8 without NUL.
type Entry struct {
	List       List
	EntryID    string // [A-Za-z0-9_-]{1,64}
	ChatID     string // 1 to 64 characters
	Name       string // 1 to 200 characters
	Reason     string // Markdown, at most 20,000 bytes, may be empty
	Verified   bool
	Proofs     Proofs
	ReportID   string    // 1 to 64 characters
	ReportedAt time.Time // UTC in whole milliseconds, years 1970 to 2200
	Revision   int64     // 1 to MaxRevision
}

// Proofs describes an entry's proofs: a public page, private proofs, or none.
type Proofs struct {
	ID      string // [A-Za-z0-9_-]{1,64}; "" stands for null, and is required when Private
	Private bool
}

// Subject returns the subject of the entry.
func (e Entry) Subject() Subject { return Subject{KindEntry, e.List, e.EntryID} }

func (e Entry) eventTypes() []Type               { return []Type{TypeListed, TypeVerified, TypeAmended} }
func (e Entry) stateRevision() int64             { return e.Revision }
func (e Entry) withRevision(revision int64) Data { e.Revision = revision; return e }

// Delisting removes an entry from its list.
type Delisting struct {
	List     List
	EntryID  string
	Revision int64 // 1 to MaxRevision
}

// Subject returns the subject of the delisted entry.
func (d Delisting) Subject() Subject { return Subject{KindEntry, d.List, d.EntryID} }

func (d Delisting) eventTypes() []Type               { return []Type{TypeDelisted} }
func (d Delisting) stateRevision() int64             { return d.Revision }
func (d Delisting) withRevision(revision int64) Data { d.Revision = revision; return d }

// Views is the absolute view total of an entry, listed or not.
type Views struct {
	List     List
	EntryID  string
	Revision int64 // 1 to MaxRevision
	Views    int64 // 0 to 2⁵³−1
}

// Subject returns the subject of the view total, which differs from the entry's.
func (v Views) Subject() Subject { return Subject{KindViews, v.List, v.EntryID} }

func (v Views) eventTypes() []Type               { return []Type{TypeViewsCounted} }
func (v Views) stateRevision() int64             { return v.Revision }
func (v Views) withRevision(revision int64) Data { v.Revision = revision; return v }

// Donation is the whole state of one donation.
type Donation struct {
	DonationID            string // [A-Za-z0-9_-]{1,64}
	Status                DonationStatus
	Amount                string // [0-9]{1,18}(\.[0-9]{1,18})?
	Currency              string // [A-Z0-9]{2,10}
	Confirmations         int64  // 0 to 2⁵³−1
	RequiredConfirmations int64  // 0 to 2⁵³−1
	CreatedAt             time.Time
	UpdatedAt             time.Time
	Revision              int64 // 1 to MaxRevision
}

// DonationStatus is the state of a donation.
type DonationStatus string

// The states of a donation.
const (
	DonationPending    DonationStatus = "pending"
	DonationConfirming DonationStatus = "confirming"
	DonationConfirmed  DonationStatus = "confirmed"
	DonationFailed     DonationStatus = "failed"
	DonationExpired    DonationStatus = "expired"
)

// DonationStatuses returns every state of a donation.
func DonationStatuses() [5]DonationStatus {
	return [5]DonationStatus{DonationPending, DonationConfirming, DonationConfirmed, DonationFailed, DonationExpired}
}

// Subject returns the subject of the donation.
func (d Donation) Subject() Subject { return Subject{KindDonation, "", d.DonationID} }

func (d Donation) eventTypes() []Type               { return []Type{TypeDonationUpdated} }
func (d Donation) stateRevision() int64             { return d.Revision }
func (d Donation) withRevision(revision int64) Data { d.Revision = revision; return d }

// DonationRemoval removes a donation.
type DonationRemoval struct {
	DonationID string
	Revision   int64 // 1 to MaxRevision
}

// Subject returns the subject of the removed donation.
func (d DonationRemoval) Subject() Subject { return Subject{KindDonation, "", d.DonationID} }

func (d DonationRemoval) eventTypes() []Type               { return []Type{TypeDonationRemoved} }
func (d DonationRemoval) stateRevision() int64             { return d.Revision }
func (d DonationRemoval) withRevision(revision int64) Data { d.Revision = revision; return d }
