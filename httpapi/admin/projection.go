package admin

import (
	"net/http"

	"example.org/registry/httpapi"
	"example.org/registry/readmodel"
)

// Projection is the document of /projection (httpapi/CONTRACT.md#admin). cmd/registry fills it from
// the projector's progress.
type Projection struct {
	Stream       string  `json:"stream"`
	Epoch        string  `json:"epoch"`
	Checkpoint   uint64  `json:"checkpoint"`
	LastSequence uint64  `json:"lastSequence"` // of the stream, at most 1 s old
	Lag          uint64  `json:"lag"`          // events
	LagSeconds   float64 `json:"lagSeconds"`
	CaughtUp     bool    `json:"caughtUp"`
	// Frozen is why nothing is applied: "missing" or "foreign"; nil if everything is.
	Frozen *string `json:"frozen"`
	// Rewound: the stream came back in an older state, and nobody has recovered it since.
	Rewound bool `json:"rewound"`
	// Unpublished counts the states that are known and that the stream lacks.
	Unpublished int `json:"unpublished"`
	// WaitingPurges counts the removals whose earlier messages are yet to be purged.
	WaitingPurges int            `json:"waitingPurges"`
	Rejected      uint64         `json:"rejected"` // copies in the stream of rejected events
	Digest        string         `json:"digest"`   // hexadecimal
	Entries       httpapi.Counts `json:"entries"`
	// SnapshotSequence is the checkpoint of the store on disk.
	SnapshotSequence uint64 `json:"snapshotSequence"`
	// RankedSequence is the last sequence that the index of ranked search covers, or 0 if there is
	// none.
	RankedSequence uint64 `json:"rankedSequence"`
	// Rebuilding is nil unless a rebuild is running.
	Rebuilding *Rebuilding `json:"rebuilding"`
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
// and entries are consistent.
func ProjectionOf(v *readmodel.View) Projection {
	return Projection{Checkpoint: v.Sequence(), Digest: v.Digest().String(), Entries: httpapi.CountsOf(v)}
}

// caution returns what an operator must know of a server that answers, for /readyz, or "".
func (p Projection) caution() string {
	const frozen = "; the last state is served, and nothing is applied until the stream is back or registry recover has run"

	switch {
	case p.Frozen != nil && *p.Frozen == "missing":
		return ", but frozen: the stream is missing" + frozen
	case p.Frozen != nil:
		return ", but frozen: the stream is another one" + frozen
	case p.Rewound:
		return ", but rewound: the stream came back in an older state; registry recover publishes what it has lost"
	}
	return ""
}

// projection sends the document. While nothing is served, its LastError gives the reason, followed
// by the cause if there is one.
func (l *listener) projection(w http.ResponseWriter, r *http.Request) {
	p := l.Projection()
	if _, _, err := l.Health.View(); err != nil {
		reason := err.Error()
		if cause := p.LastError; cause != nil && *cause != "" && *cause != reason {
			reason += ": " + *cause
		}
		p.LastError = &reason
	}
	l.sendJSON(w, r, http.StatusOK, p)
}
