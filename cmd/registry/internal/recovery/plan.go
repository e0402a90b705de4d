package recovery

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

// Plan is what a stream lacks.
type Plan struct {
	Changes   []Change // by subject
	Continues bool     // the stream continues what is known
	Newer     int      // subjects whose state in the stream is newer, or overruled by nothing known
	Unknown   int      // subjects that both sides have changed

	history string // that a marker has to follow; empty: none is needed, or the last one does
}

// Begins reports whether publishing the plan makes the stream another history.
func (p *Plan) Begins() bool { return p.history != "" }

// Change is an event to publish.
type Change struct {
	Subject events.Subject
	State   State
	Last    uint64 // sequence of the subject's last message; 0: none
}

// Counts counts changes by what they do.
type Counts struct{ Listings, Amendments, Delistings, Donations, Views int }

// Counts counts the changes of p.
func (p *Plan) Counts() (n Counts) {
	for _, c := range p.Changes {
		switch c.State.Data.(type) {
		case events.Views:
			n.Views++
		case events.Donation, events.DonationRemoval:
			n.Donations++
		case events.Delisting:
			n.Delistings++
		default:
			if c.Last == 0 {
				n.Listings++
			} else {
				n.Amendments++
			}
		}
	}
	return n
}

// Compare reads the stream and says what it lacks of known. A missing stream lacks everything.
func Compare(ctx context.Context, s leader.Stream, known *Known) (*Plan, error) {
	e := evidence{known: known, seen: known.At.History == ""}
	checked := lineage.Check(ctx, s, known.At)
	var other *lineage.Error
	if checked != nil && !errors.As(checked, &other) {
		return nil, checked
	}
	found, err := Scan(ctx, s, e.message)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		found, err = &Scanned{}, nil
	}
	if err != nil {
		return nil, err
	}
	e.finish(found, checked == nil)
	p := &Plan{Continues: e.continues}
	// Where the markers are erased, a replay would give the stream's sequences the first name.
	name := known.At.HistoryName()
	if !p.Continues && found.Follows != name || found.Identity.HistoryName() != name && e.markers == 0 && known.At.Sequence > 0 {
		p.history = name
	}
	for subject, k := range known.States {
		p.add(subject, k, found.States[subject], &e)
	}
	for subject, t := range found.States {
		if _, ok := known.States[subject]; !ok && subject.Kind == events.KindDonation && t.Data != nil && safety(t.Data) == 0 && e.side(t.Sequence, t) == common {
			p.Changes = append(p.Changes, Change{subject, State{Data: events.DonationRemoval{DonationID: subject.ID}}, t.Last})
		}
	}
	slices.SortFunc(p.Changes, func(a, b Change) int { return strings.Compare(a.Subject.String(), b.Subject.String()) })
	return p, nil
}

func (p *Plan) add(subject events.Subject, k State, t Streamed, e *evidence) {
	if t.Data == nil {
		p.Changes = append(p.Changes, Change{subject, k, t.Last})
		return
	}
	if equal(k.Data, t.Data) {
		return
	}
	takes, known := e.knownIsNewer(k, t)
	if !known {
		p.Unknown++
		takes = overrules(k.Data, t.Data, takes)
	}
	if takes {
		p.Changes = append(p.Changes, Change{subject, k, t.Last})
	} else {
		p.Newer++
	}
}

// overrules reports whether the known state k replaces the stream's state t where it is not known
// which is newer. likely says which one the clock takes for newer.
func overrules(k, t events.Data, likely bool) bool {
	if order := cmp.Compare(safety(k), safety(t)); order != 0 {
		return order > 0
	}
	if a, ok := k.(events.Views); ok {
		return a.Views > t.(events.Views).Views
	}
	return likely
}

// side is where a message or state is: before the end of what is common, or after it.
type side int

const (
	unknown side = iota
	common
	after // new in the stream, or lost with the known one
)

// evidence finds the end of what the stream and the known one have in common. message is called with
// every message of the stream in order, then finish.
type evidence struct {
	known     *Known
	commonTo  uint64 // a sequence that is common; 0: none is known
	newFrom   uint64 // the first sequence that is not; 0: none is known
	markers   int    // that are in the stream
	seen      bool   // the marker of the known history has come, or there is none
	continues bool
	fileTo    uint64 // the last tombstone of the file that is in the stream; 0: none is
}

func (e *evidence) differs(sequence uint64) {
	if e.newFrom == 0 || sequence < e.newFrom {
		e.newFrom = sequence
	}
}

func (e *evidence) message(m leader.Message) {
	at := e.known.At
	if m.Subject == events.HistorySubject {
		e.marker(m)
		return
	}
	event, err := m.Event()
	if err != nil {
		return
	}
	subject := event.Data.Subject()
	if t, named := e.known.file[subject]; named && m.Sequence == t.Sequence && withdraws(event.Data, m.Time, t) {
		e.fileTo = max(e.fileTo, m.Sequence)
	}
	k, ok := e.known.read[subject]
	switch {
	case m.Sequence > at.Sequence:
		e.differs(m.Sequence)
	case ok && m.Sequence == k.Sequence && equal(k.Data, event.Data):
		if !m.Time.After(lineage.NewestTime(at)) {
			e.commonTo = max(e.commonTo, m.Sequence)
		}
	case ok && m.Sequence >= k.Sequence, !ok && subject.Kind != events.KindDonation:
		e.differs(m.Sequence)
	}
}

// withdraws reports whether an event that was stored at the time is the one that t was made of.
func withdraws(d events.Data, at time.Time, t readmodel.Tombstone) bool {
	if _, delisted := d.(events.Delisting); delisted {
		return at.Truncate(time.Millisecond).Equal(t.Time.Truncate(time.Millisecond))
	}
	return safety(d) > 0
}

// marker notes the marker of a history. Those up to the one of the known history are common.
func (e *evidence) marker(m leader.Message) {
	h, err := events.DecodeHistory(m.Data)
	if err != nil {
		return
	}
	e.markers++
	name := e.known.At.HistoryName()
	switch {
	case h.Name == name:
		e.seen = true
		e.commonTo = max(e.commonTo, m.Sequence)
	case e.seen, h.Previous == name:
		e.differs(m.Sequence)
	}
}

// finish draws the conclusions.
func (e *evidence) finish(found *Scanned, checked bool) {
	at := e.known.At
	if found.Identity.StreamEpoch != at.StreamEpoch {
		e.commonTo, e.newFrom = 0, 1
		return
	}
	for subject, k := range e.known.read {
		if t, ok := found.States[subject]; ok && t.Data != nil && t.Last < k.Sequence {
			e.differs(k.Sequence)
		}
	}
	if checked && (e.newFrom == 0 || e.newFrom > at.Sequence) {
		e.continues, e.commonTo = true, at.Sequence
	}
	if e.newFrom == 0 {
		e.newFrom = math.MaxUint64
	}
}

// side returns where sequence is. t, if it has a time, is the stream's message there.
func (e *evidence) side(sequence uint64, t Streamed) side {
	switch {
	case sequence >= e.newFrom, !t.Time.IsZero() && sequence > e.known.At.Sequence:
		return after
	case sequence <= e.commonTo:
		return common
	}
	return unknown
}

// knownIsNewer compares a known state with the stream's. Where known is false it is only likely.
func (e *evidence) knownIsNewer(k State, t Streamed) (newer, known bool) {
	if k.fromFile {
		known = k.Sequence > 0 && k.Sequence <= e.fileTo
		return known && k.Sequence > t.Sequence, known
	}
	switch e.side(t.Sequence, t) {
	case common:
		return k.Sequence > t.Sequence, true
	case after:
		return false, e.side(k.Sequence, Streamed{}) == common
	}
	return k.Sequence > t.Sequence && !t.Time.After(lineage.NewestTime(e.known.At)), false
}
