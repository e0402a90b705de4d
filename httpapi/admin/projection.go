package admin

import (
	"net/http"
	"time"

	"example.org/registry/httpapi/body"
	"example.org/registry/readmodel"
)

// Projection is the document of /projection (httpapi/CONTRACT.md#admin). cmd/registry fills it from
// the projector's progress.
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

	Entries body.Counts `json:"entries"`
	// SnapshotSequence is the checkpoint of the store on disk.
	SnapshotSequence uint64 `json:"snapshotSequence"`
	// IndexSequence is the last sequence that the text index covers; without an index, Checkpoint.
	IndexSequence uint64 `json:"indexSequence"`
	// RankedSequence is the last sequence that the index of ranked search covers, or 0 if there is
	// none.
	RankedSequence uint64 `json:"rankedSequence"`
	// Rebuilding is nil unless a rebuild is running.
	Rebuilding *Rebuilding `json:"rebuilding"`
	// Unpublished counts the states that are known and that the stream lacks; nil until they have been
	// compared.
	Unpublished *int `json:"unpublished"`
	// Rewound: the stream came back in an older state, and no new history has begun since.
	Rewound bool `json:"rewound"`
	// Frozen is why nothing is applied: "missing" or "foreign"; nil if everything is.
	Frozen *string `json:"frozen"`
	// SubjectsNotErased counts the subjects with messages before their tombstone.
	SubjectsNotErased int `json:"subjectsNotErased"`
	// LastError is nil or a sentence.
	LastError *string `json:"lastError"`
}

// Rebuilding is the progress of a rebuild.
type Rebuilding struct {
	Done       uint64  `json:"done"`  // stream sequences dealt with
	Total      uint64  `json:"total"` // to deal with
	PerSecond  float64 `json:"perSecond"`
	ETASeconds float64 `json:"etaSeconds"`
}

// ProjectionOf returns a Projection with the fields that one view determines: checkpoint, digest
// and entries are consistent. It assumes that there is no index.
func ProjectionOf(v *readmodel.View) Projection {
	return Projection{
		Checkpoint:    v.Sequence(),
		IndexSequence: v.Sequence(),
		Digest:        v.Digest().String(),
		Entries:       body.CountsOf(v),
	}
}

func (l *listener) projection(w http.ResponseWriter, r *http.Request) {
	_, _, unready := l.Health.View()
	l.sendJSON(w, r, http.StatusOK, l.document(unready))
}

// document returns the data of /projection and the page. While nothing is served (unready), its
// LastError gives the reason, followed by the cause if Projection has one.
func (l *listener) document(unready error) Projection {
	p := l.Projection()
	if unready != nil {
		reason := unready.Error()
		if cause := p.LastError; cause != nil && *cause != "" && *cause != reason {
			reason += ": " + *cause
		}
		p.LastError = &reason
	}
	return p
}
