package recovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

// Known has the states that are to be in the stream.
type Known struct {
	Source
	Stream readmodel.StreamIdentity // that a server follows, if it is well; its store may be behind
	At     readmodel.Checkpoint     // of the source
	States States
}

// Source is where a checkpoint is from.
type Source int

// The sources.
const (
	Snapshot  Source = iota
	Frozen           // a server that has no stream to go on with
	Following        // a server that is well on a stream
)

// Options are an operator's decisions.
type Options struct {
	NewHistory bool   // a new history begins in any case
	Adopt      string // epoch of a foreign stream that is to get what is known
}

// Plan has the changes that a stream lacks.
type Plan struct {
	Changes []Change       // by subject
	Newer   int            // subjects whose state in the stream wins
	Begins  bool           // a new history begins first
	Missing bool           // there is no stream
	history events.History // if Begins, unless Missing
	last    uint64         // sequence of the last message on the subject of the markers
}

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

// ForeignError is the error for a stream of another registry than the known states.
type ForeignError struct {
	Epoch  string // of the stream
	Demo   bool   // one of the two is a demonstration, and they are never mixed
	Reason string
	Known  States
	Stream States
}

func (e *ForeignError) Error() string {
	remedy := "if both are to become one registry: --adopt " + e.Epoch
	if e.Demo {
		remedy = "a demonstration is never mixed with a registry"
	}
	return fmt.Sprintf("nothing was sent: %s; known: %s; the stream: %s; correct --nats-url, --stream or --admin-addr; %s", e.Reason, e.Known, e.Stream, remedy)
}

// Compare reads the stream and says what it lacks of known. A missing stream lacks everything. The
// error is a *ForeignError for a stream of another registry that o does not adopt.
func Compare(ctx context.Context, s leader.Stream, known *Known, o Options) (*Plan, error) {
	info, err := s.Info(ctx)
	found := &Scanned{}
	if missing := errors.Is(err, jetstream.ErrStreamNotFound); missing && known.At.Demo {
		return nil, &ForeignError{Demo: true, Reason: "what is known is a demonstration", Known: known.States}
	} else if missing {
		p := &Plan{Missing: true, Begins: true}
		p.add(known, found)
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	marker, last, err := lineage.Newest(ctx, s, math.MaxUint64)
	if err != nil {
		return nil, err
	}
	proven, rewound, err := lineage.Prove(ctx, s, info, known.At)
	if err != nil {
		return nil, err
	}
	if found, err = Scan(ctx, s, func(events.Subject) bool { return true }); err != nil {
		return nil, err
	}
	id, empty, newest := lineage.Of(info), info.State.LastSeq == 0, known.At.Newest().Sequence
	foreign := &ForeignError{Epoch: id.StreamEpoch, Known: known.States, Stream: found.States}
	switch {
	case id.Demo != known.At.Demo:
		foreign.Demo, foreign.Reason = true, "the stream or what is known is a demonstration"
	case empty:
	case known.Source == Following && !lineage.Same(known.Stream, id) && (newest == 0 || proven != newest):
		foreign.Reason = "the server is well on another stream, and this one does not hold the last message that it has read"
	case !lineage.Share(known.At.Histories, marker.Names(id)):
		foreign.Reason = "the stream shares no history with what is known"
	}
	adopts := foreign.Reason != "" && o.Adopt == id.StreamEpoch && !foreign.Demo
	if foreign.Reason != "" && !adopts {
		return nil, foreign
	}
	p := &Plan{last: last}
	p.add(known, found)
	displaced := known.Source == Snapshot && proven != newest && len(p.Changes) > 0 // or lost: nobody can tell
	follows := marker.Revision > known.At.HistoryRevision && slices.Contains(marker.Follows, known.At.HistoryName())
	p.Begins = o.NewHistory || !follows && known.At.StreamEpoch != "" && (empty || adopts || known.Source == Frozen || known.At.Rewound || rewound || displaced)
	p.history = follow(events.HistoryNew, max(known.At.HistoryRevision, marker.Revision), known.At.Histories, marker.Names(id))
	return p, nil
}

// add adds what the stream lacks.
func (p *Plan) add(known *Known, found *Scanned) {
	var lacks []readmodel.State
	lacks, p.Newer = Wins(maps.Values(known.States), found.States.Data)
	for _, s := range lacks {
		p.Changes = append(p.Changes, Change{s.Data, found.Last[s.Data.Subject()]})
	}
}

// follow returns a new history that follows others, and is newer than a revision.
func follow(kind string, after int64, followed ...[]string) events.History {
	h := events.History{Name: events.NewEpoch(), Kind: kind, Revision: max(after+1, time.Now().UnixMilli())}
	for _, name := range slices.Concat(followed...) {
		if events.IsHistoryName(name) && !slices.Contains(h.Follows, name) && len(h.Follows) < events.MaxFollows {
			h.Follows = append(h.Follows, name)
		}
	}
	return h
}

// Fork makes the stream, a copy for tests, a history of its own: its readers go on, and share
// no earlier history with anybody. It returns the name.
func Fork(ctx context.Context, s leader.Stream) (string, error) {
	info, err := s.Info(ctx)
	if err != nil {
		return "", err
	}
	marker, last, err := lineage.Newest(ctx, s, math.MaxUint64)
	if err != nil {
		return "", err
	}
	h := follow(events.HistoryFork, marker.Revision, marker.Names(lineage.Of(info)))
	_, err = lineage.Begin(ctx, s, h, last)
	return h.Name, err
}
