package admin

import (
	"net/http"

	"example.org/registry/httpapi"
	"example.org/registry/readmodel"
)

// Projection is the document of /projection (httpapi/CONTRACT.md#admin). cmd/registry fills it from the projector's progress.
type Projection struct {
	Stream           string         `json:"stream"`
	Epoch            string         `json:"epoch"`
	Checkpoint       uint64         `json:"checkpoint"`
	LastSequence     uint64         `json:"lastSequence"` // of the stream, at most 1 s old
	Lag              uint64         `json:"lag"`          // in events
	LagSeconds       float64        `json:"lagSeconds"`
	CaughtUp         bool           `json:"caughtUp"`
	Frozen           *string        `json:"frozen"`        // why nothing is applied: "missing" or "foreign"; else nil
	Rewound          bool           `json:"rewound"`       // the stream came back in an older state, and nobody has recovered it
	Unpublished      int            `json:"unpublished"`   // known states that the stream lacks
	WaitingPurges    int            `json:"waitingPurges"` // removals whose earlier messages are yet to be purged
	Rejected         uint64         `json:"rejected"`      // copies in the stream of rejected events
	Digest           string         `json:"digest"`        // hexadecimal
	Entries          httpapi.Counts `json:"entries"`
	SnapshotSequence uint64         `json:"snapshotSequence"` // the checkpoint of the store on disk
	RankedSequence   uint64         `json:"rankedSequence"`   // of the last event in the index of ranked search; 0 for no index
	Rebuilding       *Rebuilding    `json:"rebuilding"`       // nil unless a rebuild is running
	LastError        *string        `json:"lastError"`        // nil or a sentence
}

// Rebuilding is the progress of a rebuild.
type Rebuilding struct {
	Done       uint64  `json:"done"`  // stream sequences that are dealt with
	Total      uint64  `json:"total"` // stream sequences to deal with in all
	PerSecond  float64 `json:"perSecond"`
	ETASeconds float64 `json:"etaSeconds"`
}

// ProjectionOf returns a Projection with only the checkpoint, the digest and the entries, which are consistent, being of one view.
func ProjectionOf(v *readmodel.View) Projection {
	return Projection{Checkpoint: v.Sequence(), Digest: v.Digest().String(), Entries: httpapi.CountsOf(v)}
}

// caution returns the warning that /readyz adds to "ok" while the stream is missing, another one or rewound, else "".
func (p Projection) caution() string {
	if p.Frozen != nil {
		streamIs := "another one"
		if *p.Frozen == "missing" {
			streamIs = "missing"
		}
		return ", but frozen: the stream is " + streamIs + "; the last state is served, and nothing is applied until the stream is back or registry recover has run"
	}

	if p.Rewound {
		return ", but rewound: the stream came back in an older state; registry recover publishes what it has lost"
	}
	return ""
}

// sendProjection sends the document. While lists and checks are not served, LastError begins with the reason that /readyz gives.
// The projector's own error follows, since it may be the cause.
func (l *listener) sendProjection(w http.ResponseWriter, _ *http.Request) {
	p := l.Projection()
	if _, _, err := l.Health.View(); err != nil {
		reason := err.Error()
		if cause := p.LastError; cause != nil && *cause != "" && *cause != reason {
			reason += ": " + *cause
		}
		p.LastError = &reason
	}
	sendJSON(w, http.StatusOK, p)
}
