package events

import (
	"bytes"
	"cmp"
	"strconv"
	"time"
)

// MaxRevision is the end of the year 2200 in milliseconds since 1970. The best revision is the clock
// in milliseconds (events/CONTRACT.md#revisions), so one beyond it is a mistake.
const MaxRevision = 7_289_654_399_999

// Revision returns the revision of d.
func Revision(d Data) int64 {
	switch d := d.(type) {
	case Entry:
		return d.Revision
	case Delisting:
		return d.Revision
	case Views:
		return d.Revision
	case Donation:
		return d.Revision
	case DonationRemoval:
		return d.Revision
	}
	return 0
}

// Revised returns d with another revision.
func Revised(d Data, revision int64) Data {
	switch d := d.(type) {
	case Entry:
		d.Revision = revision
		return d
	case Delisting:
		d.Revision = revision
		return d
	case Views:
		d.Revision = revision
		return d
	case Donation:
		d.Revision = revision
		return d
	case DonationRemoval:
		d.Revision = revision
		return d
	}
	return d
}

// CheckRevision returns an *Error if the revision of d is more than a day ahead of now and greater than
// known, the greatest known of its subject or 0. Such a number is a mistake, such as microseconds. A
// projector does not use it, so that no clock decides what is true.
func CheckRevision(d Data, known int64, now time.Time) error {
	if r := Revision(d); r > now.Add(24*time.Hour).UnixMilli() && r > known {
		return wrong("data.revision", "more than a day ahead of the clock, in milliseconds since 1970")
	}
	return nil
}

// StateID returns a good id for an event that carries d: its subject, @ and its revision.
func StateID(d Data) string {
	return d.Subject().String() + "@" + strconv.FormatInt(Revision(d), 10)
}

// StateEvent returns an event that sets the state d, whatever was there, as registry export writes it.
func StateEvent(d Data) Event {
	e := Event{ID: StateID(d), Source: ExportSource, Type: TypeListed, Data: d}
	switch d.(type) {
	case Delisting:
		e.Type = TypeDelisted
	case Views:
		e.Type = TypeViewsCounted
	case Donation:
		e.Type = TypeDonationUpdated
	case DonationRemoval:
		e.Type = TypeDonationRemoved
	}
	return e
}

// RemovedAt returns when a removal was decided, or the zero time for other data.
func RemovedAt(d Data) time.Time {
	switch d := d.(type) {
	case Delisting:
		return d.Time
	case DonationRemoval:
		return d.Time
	}
	return time.Time{}
}

// removedAt returns d, with at as the time of a removal.
func removedAt(d Data, at time.Time) Data {
	switch d := d.(type) {
	case Delisting:
		d.Time = at
		return d
	case DonationRemoval:
		d.Time = at
		return d
	}
	return d
}

// Rank decides between two states of a subject, apart from their data: the state with the greater one
// is true.
type Rank struct {
	Revision int64
	Safety   Safety // decides between equal revisions
	Number   int64  // decides between equal safeties: of view totals the larger, of removals the earlier
}

// Safety orders the states that may harm a person: the safest is the greatest.
type Safety uint8

const (
	shownAs    Safety = iota // verified: it accuses, or vouches for a trusted person
	unverified               // it warns, or is not shown
	removed
)

// RankOf returns the rank of d.
func RankOf(d Data) Rank {
	r := Rank{Revision: Revision(d)}
	switch d := d.(type) {
	case Entry:
		if !d.Verified {
			r.Safety = unverified
		}
	case Views:
		r.Number = d.Views
	case Delisting, DonationRemoval:
		return RemovalRank(r.Revision, RemovedAt(d))
	}
	return r
}

// RemovalRank returns the rank of a removal.
func RemovalRank(revision int64, at time.Time) Rank {
	return Rank{Revision: revision, Safety: removed, Number: -at.UnixMilli()}
}

// EntryRank returns the rank of an entry.
func EntryRank(revision int64, verified bool) Rank {
	return RankOf(Entry{Revision: revision, Verified: verified})
}

// Compare orders by rank.
func (r Rank) Compare(o Rank) int {
	return cmp.Or(cmp.Compare(r.Revision, o.Revision), cmp.Compare(r.Safety, o.Safety), cmp.Compare(r.Number, o.Number))
}

// Compare orders two states of one subject: the greater one is true, wherever it comes from
// (events/CONTRACT.md#revisions). It returns 0 only for equal states, and is total: by revision, by
// rank, and last by the bytes of the data.
func Compare(a, b Data) int {
	if c := RankOf(a).Compare(RankOf(b)); c != 0 {
		return c
	}
	return bytes.Compare(AppendData(nil, a), AppendData(nil, b))
}

// LooksEqual reports whether lists show the same for both states of one subject: the same data, or
// both times nothing, as of a removal or an unverified trusted person.
func LooksEqual(a, b Data) bool {
	return hidden(a) && hidden(b) || !hidden(a) && !hidden(b) && Compare(a, b) == 0
}

func hidden(d Data) bool {
	switch d := d.(type) {
	case Entry:
		return d.List.Trusted() && !d.Verified
	case Delisting, DonationRemoval:
		return true
	}
	return false
}
