package events

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"strconv"
	"time"
)

// MaxRevision is the end of the year 2200 in milliseconds since 1970. The best revision is the clock
// in milliseconds (events/CONTRACT.md#revisions), so a greater revision is a mistake.
const MaxRevision = 7_289_654_399_999

// Revision returns the revision of d.
func Revision(d Data) int64 { return d.stateRevision() }

// Revised returns d with another revision.
func Revised(d Data, revision int64) Data { return d.withRevision(revision) }

// CheckRevision returns an *Error if the revision of d is more than a day ahead of now, usually from a clock in
// microseconds. known is the greatest known revision of the subject, or 0; no revision up to known is an error. A
// projector does not call CheckRevision, so that no clock decides which state is the latest.
func CheckRevision(d Data, known int64, now time.Time) error {
	if r := Revision(d); r > now.Add(24*time.Hour).UnixMilli() && r > known {
		return newDataError("revision", "more than a day ahead of the clock, in milliseconds since 1970")
	}
	return nil
}

// StateID returns a good id for an event that carries d: its subject, @ and its revision.
func StateID(d Data) string {
	return d.Subject().String() + "@" + strconv.FormatInt(Revision(d), 10)
}

// StateEvent returns the event that registry export writes for d.
func StateEvent(d Data) Event {
	return Event{ID: StateID(d), Source: ExportSource, Type: d.eventTypes()[0], Data: d}
}

// IsRemoval reports whether d removes the state of its subject.
func IsRemoval(d Data) bool { return d.eventTypes()[0].Removes() }

// Rank orders the states of one subject: the state with the greatest rank is the latest. Equal ranks
// belong to equal states.
type Rank struct {
	Revision int64
	Removal  bool
	Hash     Hash
}

// Hash is the first half of the SHA-256 of a state's canonical JSON (AppendData). The JSON has the
// subject and the revision, too, so that a hash can stand for a state in digests.
type Hash [16]byte

// RankOf returns the rank of d.
func RankOf(d Data) Rank {
	return Rank{Revision(d), IsRemoval(d), HashJSON(AppendData(nil, d))}
}

// HashJSON returns the hash of a state. canonical is the JSON that AppendData has written.
func HashJSON(canonical []byte) Hash {
	sum := sha256.Sum256(canonical)
	return Hash(sum[:len(Hash{})])
}

// Compare orders ranks by revision. If the revisions are equal, a removal is greater; if that does not
// decide either, the greater hash does (events/CONTRACT.md#revisions).
func (r Rank) Compare(o Rank) int {
	if order := cmp.Compare(r.Revision, o.Revision); order != 0 {
		return order
	}

	if r.Removal != o.Removal {
		if r.Removal {
			return 1
		}
		return -1
	}
	return bytes.Compare(r.Hash[:], o.Hash[:])
}

// Compare orders two states of one subject: the greater one is the latest, wherever it comes from. It
// returns 0 only for equal states.
func Compare(a, b Data) int { return RankOf(a).Compare(RankOf(b)) }
