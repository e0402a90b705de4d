package projector

import (
	"sync"
	"sync/atomic"
	"time"

	"example.org/registry/events/stream"
)

// Why a Projector applies nothing (Progress.Frozen).
const (
	FrozenMissing = "missing" // there is no stream
	FrozenForeign = "foreign" // the stream is another registry's
)

// Progress is the state of a Projector at one moment.
type Progress struct {
	// Identity has the configured name, and the rest once it is known.
	stream.Identity

	// Checkpoint is the sequence that the model has reached. LastSequence is the stream's last
	// sequence, at most a second old while Connected. Lag is their difference.
	Checkpoint, LastSequence, Lag uint64

	// LagSeconds is 0 while Lag is 0 and nothing is Frozen, else the time since AsOf, or since New
	// if AsOf is unknown.
	LagSeconds float64

	// AsOf is the last moment at which the model is known to be complete, and never goes back: the
	// time before the request that returned the stream's end. It is zero if unknown.
	AsOf time.Time

	// CaughtUp means that the model may be served. Once true it stays true.
	CaughtUp bool

	// Connected means that the broker answers about the stream.
	Connected bool

	// Frozen is why nothing is applied: FrozenMissing, FrozenForeign, or empty.
	Frozen string

	// Rewound: the stream came back in an older state, and nobody has recovered it since. Reading:
	// it is being read again from its beginning, beside what is shown.
	Rewound, Reading bool

	// Unpublished counts the known states that the stream is not known to hold.
	Unpublished int

	// WaitingPurges counts the removals whose earlier messages this server is yet to purge.
	WaitingPurges int

	// PeersMissing counts the copies of the stream that it lacks or that are not current.
	PeersMissing int

	// Saved is the checkpoint in the store.
	Saved uint64

	// Done of Total sequences have been dealt with in the catch-up at start; both are 0 until the
	// stream has answered.
	Done, Total uint64

	// Counts of messages, since New: Applied ones were applied or rejected. Superseded ones lost
	// against a greater revision. Unheeded ones are removals that were rejected because a greater
	// revision is shown. PutBack are states that were published again.
	Applied, Superseded, Unheeded, PutBack, RejectedHere uint64

	// Rejected counts the copies in the stream of rejected events.
	Rejected uint64

	// LastError is a sentence about the most important problem, or empty.
	LastError string
}

// Status is the part of Progress that every response depends on.
type Status struct {
	CaughtUp, Frozen bool
	AsOf             time.Time
	LastError        string
}

// trouble is a source of LastError, in order of importance.
type trouble int

const (
	troubleFrozen trouble = iota
	troubleStream         // it cannot be reached, or must not be followed
	troubleStore
	troubleCopies
	troubleFull // the stream takes in nothing
	troubleLacking
	troublePurges
	troubles // their number
)

// tracker holds the Progress. Any goroutine may change it, under mu, and read it by an atomic load.
type tracker struct {
	began time.Time

	mu        sync.Mutex
	progress  Progress
	sentences [troubles]string

	published atomic.Pointer[Progress]
}

// update changes the progress and publishes it.
func (t *tracker) update(change func(p *Progress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.progress)
	t.publish()
}

// setTrouble sets the sentence about a problem, or clears it if empty, and reports whether it is
// new.
func (t *tracker) setTrouble(source trouble, sentence string) (isNew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sentences[source] == sentence {
		return false
	}
	t.sentences[source] = sentence
	t.publish()
	return true
}

// sentence returns the sentence about a problem, or "".
func (t *tracker) sentence(source trouble) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sentences[source]
}

func (t *tracker) publish() {
	p := t.progress
	p.Lag = p.LastSequence - min(p.Checkpoint, p.LastSequence)
	p.LastError = t.lastError()
	t.published.Store(&p)
}

func (t *tracker) lastError() string {
	for _, sentence := range t.sentences {
		if sentence != "" {
			return sentence
		}
	}
	switch {
	case t.progress.CaughtUp:
		return ""
	case !t.progress.Connected:
		return "Waiting for the broker."
	}
	return "Catching up with the stream."
}

// Progress returns the current Progress. Any goroutine may call it.
func (p *Projector) Progress() Progress {
	now := *p.tracker.published.Load()
	if now.Lag > 0 || now.Frozen != "" {
		since := now.AsOf
		if since.IsZero() {
			since = p.tracker.began
		}
		now.LagSeconds = max(0, time.Since(since).Seconds())
	}
	return now
}

// Status returns the part of Progress that every response depends on, at the cost of an atomic load.
func (p *Projector) Status() Status {
	now := p.tracker.published.Load()
	return Status{now.CaughtUp, now.Frozen != "", now.AsOf, now.LastError}
}

// show publishes what follows from the position and the model. Only Run's goroutine calls it, and
// New. change may be nil.
func (p *Projector) show(change func(s *Progress)) {
	lacking := p.cfg.Model.View().Lacking()
	waiting := len(p.pending.purges)
	if p.saving != nil {
		waiting += p.saving.waiting
	}

	sentence := ""
	switch {
	case p.phase != caughtUp || p.reading:
	case p.meta.Rewound:
		sentence = "The stream came back in an older state; registry recover publishes what it has lost."
	case lacking > 0:
		sentence = "The stream lacks states that this server knows; registry recover publishes them."
	}
	p.tracker.setTrouble(troubleLacking, sentence)

	p.tracker.update(func(s *Progress) {
		s.Identity = p.meta.Identity
		s.Stream = p.cfg.Stream
		s.Checkpoint, s.LastSequence = p.meta.Sequence, max(s.LastSequence, p.meta.Sequence)
		s.CaughtUp = p.phase == caughtUp
		s.Rewound, s.Reading = p.meta.Rewound, p.reading
		s.Unpublished, s.WaitingPurges = lacking, waiting
		s.Applied, s.Superseded, s.Unheeded = p.counts.applied, p.counts.superseded, p.counts.unheeded
		s.PutBack, s.RejectedHere = p.counts.restored, p.counts.rejected
		if p.reading { // not compared yet
			s.Unpublished = 0
		}
		if s.CaughtUp {
			s.Done = s.Total
		} else if s.Total > 0 {
			s.Done = min(s.Total, p.meta.Sequence-min(p.meta.Sequence, p.from))
		}
		if change != nil {
			change(s)
		}
	})
}
