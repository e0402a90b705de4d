package httpapi

import (
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// Projection is the document of /projection (API contract, operators). cmd/registry fills it
// from what the projector says of itself.
type Projection struct {
	Stream        string    `json:"stream"`
	StreamEpoch   string    `json:"streamEpoch"`
	StreamCreated time.Time `json:"streamCreated"`
	Checkpoint    uint64    `json:"checkpoint"`
	LastSequence  uint64    `json:"lastSequence"` // of the stream, at most 1 s old
	Lag           uint64    `json:"lag"`          // events
	LagSeconds    float64   `json:"lagSeconds"`
	CaughtUp      bool      `json:"caughtUp"`
	Rejected      uint64    `json:"rejected"` // copies in the stream of rejected events
	Digest        string    `json:"digest"`   // hexadecimal
	Entries       Entries   `json:"entries"`
	// SnapshotSequence is what the store on disk holds.
	SnapshotSequence uint64 `json:"snapshotSequence"`
	// IndexSequence is the last sequence that the text index covers; without one, Checkpoint.
	IndexSequence uint64 `json:"indexSequence"`
	// Rebuilding is nil while no rebuild runs.
	Rebuilding                *Rebuilding `json:"rebuilding"`
	SubjectsWithoutValidEvent []string    `json:"subjectsWithoutValidEvent"`
	// LastError is nil, or a sentence.
	LastError *string `json:"lastError"`
}

// Entries counts what the lists show.
type Entries struct {
	Scammers int `json:"scammers"`
	Servers  int `json:"servers"`
	Legit    int `json:"legit"`
}

// Rebuilding is how far a rebuild is.
type Rebuilding struct {
	Done       uint64  `json:"done"`  // stream sequences dealt with
	Total      uint64  `json:"total"` // to deal with
	PerSecond  float64 `json:"perSecond"`
	ETASeconds float64 `json:"etaSeconds"`
}

// ProjectionOf is the part of a Projection that one view determines: checkpoint, digest and
// entries belong together. No index is assumed, and no subject without a valid event.
func ProjectionOf(v *readmodel.View) Projection {
	return Projection{
		Checkpoint:    v.Sequence(),
		IndexSequence: v.Sequence(),
		Digest:        v.Digest().String(),
		Entries: Entries{
			Scammers: v.Entries(events.Scammers),
			Servers:  v.Entries(events.Servers),
			Legit:    v.Entries(events.Legit),
		},
		SubjectsWithoutValidEvent: []string{},
	}
}
