package events

import "time"

// List names one of the three public lists (API contract, words).
type List string

// The lists, in the order in which a check reports them.
const (
	Scammers List = "scammers"
	Servers  List = "servers"
	Legit    List = "legit"
)

// Lists returns every list in the order in which a check reports them.
func Lists() [3]List { return [3]List{Scammers, Servers, Legit} }

// Type is a CloudEvents type of the contract (API contract, events).
type Type string

// The event types. The first three set an entry's whole state, whatever was there.
const (
	TypeListed          Type = "registry.entry.listed"
	TypeVerified        Type = "registry.entry.verified"
	TypeAmended         Type = "registry.entry.amended"
	TypeDelisted        Type = "registry.entry.delisted"
	TypeViewsCounted    Type = "registry.views.counted"
	TypeDonationUpdated Type = "registry.donation.updated"
	TypeDonationRemoved Type = "registry.donation.removed"
)

// Event is one CloudEvent of the registry. Data is by value and immutable by convention:
// any number of goroutines may share an Event.
type Event struct {
	ID     string    // unique across all sources, never reused; also the Nats-Msg-Id
	Source string    // CloudEvents source: who says so
	Type   Type      // decides which Data is allowed
	Time   time.Time // CloudEvents time; zero when the event had none
	Data   Data
}

// Data is the payload of an event: Entry, Delisting, Views, Donation or DonationRemoval.
type Data interface {
	// Subject is the NATS subject that the event belongs on.
	Subject() string
	data() // closed set
}

// Entry is the whole state of one record of a list. Strings are valid UTF-8 without NUL.
type Entry struct {
	List       List
	EntryID    string // [A-Za-z0-9_-]{1,64}
	ChatID     string // 1 to 64 characters
	Name       string // 1 to 200 characters
	Reason     string // Markdown, at most 20 000 bytes, may be empty
	Verified   bool
	Proofs     Proofs
	ReportID   string    // 1 to 64 characters
	ReportedAt time.Time // UTC, years 1970 to 2200
}

// Proofs says whether an entry has a public proofs page, private proofs, or none.
type Proofs struct {
	ID      string // [A-Za-z0-9_-]{1,64}; "" stands for null, and is required when Private
	Private bool
}

// Delisting says that an entry leaves its list.
type Delisting struct {
	List    List
	EntryID string
}

// Views is the absolute view total of an entry, listed or not.
type Views struct {
	List    List
	EntryID string
	Views   int64 // 0 to 2⁵³−1
}

// Donation is the whole state of one donation.
type Donation struct {
	DonationID            string // as Entry.EntryID
	Status                DonationStatus
	Amount                string // [0-9]{1,18}(\.[0-9]{1,18})?
	Currency              string // [A-Z0-9]{2,10}
	Confirmations         int64  // 0 to 2⁵³−1
	RequiredConfirmations int64  // 0 to 2⁵³−1
	CreatedAt             time.Time
	UpdatedAt             time.Time
}

// DonationStatus is where a donation stands (API contract, donations).
type DonationStatus string

// The states of a donation.
const (
	DonationPending    DonationStatus = "pending"
	DonationConfirming DonationStatus = "confirming"
	DonationConfirmed  DonationStatus = "confirmed"
	DonationFailed     DonationStatus = "failed"
	DonationExpired    DonationStatus = "expired"
)

// DonationRemoval erases a donation.
type DonationRemoval struct{ DonationID string }

// Subject is registry.<list>.<entryId>.
func (e Entry) Subject() string { return "registry." + string(e.List) + "." + e.EntryID }

// Subject is that of the entry which leaves.
func (d Delisting) Subject() string { return "registry." + string(d.List) + "." + d.EntryID }

// Subject is registry.views.<list>.<entryId>.
func (v Views) Subject() string { return "registry.views." + string(v.List) + "." + v.EntryID }

// Subject is registry.donations.<donationId>.
func (d Donation) Subject() string { return "registry.donations." + d.DonationID }

// Subject is that of the donation which is removed.
func (d DonationRemoval) Subject() string { return "registry.donations." + d.DonationID }

func (Entry) data()           {}
func (Delisting) data()       {}
func (Views) data()           {}
func (Donation) data()        {}
func (DonationRemoval) data() {}
