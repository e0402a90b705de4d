package recovery

import (
	"context"
	"errors"
	"slices"
	"strings"

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
	Newer     int      // subjects whose state in the stream wins

	history string // that a marker has to follow; empty: none is needed, or the last one does
}

// Begins reports whether publishing the plan makes the stream another history.
func (p *Plan) Begins() bool { return p.history != "" }

// Change is an event to publish.
type Change struct {
	Data events.Data
	Last uint64 // sequence of the subject's last message; 0: none
}

// Counts counts changes by what they do.
type Counts struct{ Listings, Amendments, Delistings, Donations, Views int }

// Counts counts the changes of p.
func (p *Plan) Counts() (n Counts) {
	for _, c := range p.Changes {
		switch c.Data.(type) {
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
	checked := lineage.Check(ctx, s, known.At)
	var other *lineage.Error
	if checked != nil && !errors.As(checked, &other) {
		return nil, checked
	}
	found, err := Scan(ctx, s, nil)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		found, err = &Scanned{}, nil
	}
	if err != nil {
		return nil, err
	}
	p := &Plan{Continues: checked == nil}
	// Where the markers are erased, a replay would count all sequences to the first history.
	name := known.At.HistoryName()
	if !p.Continues && found.Follows != name || found.Identity.HistoryName() != name && found.Follows == "" && known.At.Sequence > 0 {
		p.history = name
	}
	for subject, k := range known.States {
		p.add(k, found.States[subject])
	}
	slices.SortFunc(p.Changes, func(a, b Change) int { return strings.Compare(a.Data.Subject().String(), b.Data.Subject().String()) })
	return p, nil
}

func (p *Plan) add(k readmodel.State, t Streamed) {
	order := 1
	if t.Data != nil {
		order = events.Compare(k.Data, t.Data)
	}
	switch {
	case order > 0:
		p.Changes = append(p.Changes, Change{k.Data, t.Last})
	case order < 0:
		p.Newer++
	}
}
