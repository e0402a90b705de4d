package projector

import (
	"errors"
	"fmt"
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

	// Rewound means that the stream came back in an older state, and nobody has recovered it since.
	// Reading means that it is being read again from its beginning, beside the model that is shown.
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

	// Numbers of messages since New.
	Applied        uint64 // applied or rejected
	Superseded     uint64 // lost against a greater revision
	Unheeded       uint64 // removals that were rejected because a greater revision is shown
	RestoredStates uint64 // published again, since other messages had displaced them
	RejectedHere   uint64

	// Rejected counts the copies in the stream of rejected events.
	Rejected uint64

	// LastError is a sentence about the most important problem, or empty.
	LastError string

	unsaved string // why the store cannot be written
}

// problem is a source of LastError, in order of importance.
type problem int

const (
	frozenProblem problem = iota
	streamProblem         // it cannot be reached, or must not be followed
	storeProblem
	fullProblem // the stream takes in nothing
	lackingProblem
	purgesProblem
	problems // their number
)

// tracker holds the Progress. Run's goroutine changes it, and any goroutine calls current.
type tracker struct {
	began     time.Time
	progress  Progress
	sentences [problems]string
	published atomic.Pointer[Progress]
}

// setProblem sets the sentence about a problem, "" if there is no problem, and reports whether the sentence is new.
func (t *tracker) setProblem(source problem, sentence string) (isNew bool) {
	if t.sentences[source] == sentence {
		return false
	}
	t.sentences[source] = sentence
	t.publish()
	return true
}

func (t *tracker) publish() {
	p := t.progress
	p.unsaved = t.sentences[storeProblem]
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

	if t.progress.CaughtUp {
		return ""
	}
	if !t.progress.Connected {
		return "Waiting for the broker."
	}
	return "Catching up with the stream."
}

// current returns the published progress, at the cost of an atomic load and a copy.
func (t *tracker) current() Progress {
	p := *t.published.Load()
	if p.Lag > 0 || p.Frozen != "" {
		since := p.AsOf
		if since.IsZero() {
			since = t.began
		}
		p.LagSeconds = max(0, time.Since(since).Seconds())
	}
	return p
}

// publishProgress publishes the progress, with the position and the model's numbers.
func (p *Projector) publishProgress() {
	meta := p.projection.meta
	isReading := p.projection.reading
	lacking := p.projection.model.View().Lacking()
	if isReading { // the rest of the stream may still have them
		lacking = 0
	}

	sentence := ""
	if p.phase.isServed() && !isReading && meta.Rewound {
		sentence = "The stream came back in an older state; registry recover publishes what it has lost."
	} else if p.phase.isServed() && lacking > 0 {
		sentence = "The stream lacks states that this server knows; registry recover publishes them."
	}

	p.tracker.setProblem(lackingProblem, sentence)
	now := &p.tracker.progress
	now.Identity = meta.Identity
	now.Stream = p.cfg.Stream
	now.Checkpoint = meta.Sequence
	now.LastSequence = max(now.LastSequence, meta.Sequence)
	now.Saved = p.saver.sequence
	now.CaughtUp = p.phase.isServed()
	now.Rewound = meta.Rewound
	now.Reading = isReading
	now.Unpublished = lacking
	now.WaitingPurges = len(p.upkeep.purges)
	now.Done = now.Total
	if !now.CaughtUp {
		sinceStart := meta.Sequence - min(meta.Sequence, p.from) // the catch-up began at p.from
		now.Done = min(now.Total, sinceStart)
	}
	p.tracker.publish()
}

// reportFailure tells the operator why a session has ended.
func (p *Projector) reportFailure(err error) {
	frozen, isFrozen := errors.AsType[*frozenError](err)
	isConnected := p.cfg.JetStream.Conn().IsConnected()
	if !isFrozen {
		p.deniedAt = time.Time{} // the stream may be there
		p.tracker.progress.Connected = isConnected
		p.publishProgress()
		isNew := p.tracker.setProblem(streamProblem, fmt.Sprintf("The stream is not being followed: %v.", err))
		if isNew {
			p.log.Warn("the stream is not being followed; trying again", "error", err, "checkpoint", p.projection.meta.Sequence)
		}
		return
	}

	// A broker that is starting may say once that it has no stream: freeze only if all sessions of the last
	// retryEvery have ended like this one.
	if p.deniedAt.IsZero() {
		p.deniedAt = time.Now()
	}
	if time.Since(p.deniedAt) < p.cfg.pace.retryEvery {
		return
	}

	p.tracker.setProblem(streamProblem, "")
	isNew := p.tracker.setProblem(frozenProblem, frozen.sentence)
	if isNew {
		p.log.Error("frozen: nothing is applied, and the last state is served", "reason", frozen.sentence, "checkpoint", p.projection.meta.Sequence)
	}

	p.tracker.progress.Frozen = frozen.why
	p.tracker.progress.Connected = isConnected
	p.publishProgress()
	p.serveSaved()
}

// serveSaved lets readers have the saved state before a session has caught up, if that state was complete once.
func (p *Projector) serveSaved() {
	if p.phase.isServed() || !p.projection.meta.Complete {
		return
	}
	p.log.Warn("serving the saved state, since the stream is not being followed", "checkpoint", p.projection.meta.Sequence)
	p.phase = servingSaved
	p.projection.nameFeed()
	p.publishProgress()
}
