package projector

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/stream"
)

// Why a Projector applies nothing (Progress.Frozen).
const (
	FrozenMissing = "missing" // there is no stream
	FrozenForeign = "foreign" // the stream is another registry's
)

// Progress is the state of a Projector at one moment.
type Progress struct {
	// Identity has the configured name of the stream. Its other fields are empty until they are known.
	stream.Identity

	// Checkpoint is the sequence that the model has reached. LastSequence is the stream's last
	// sequence, at most a second old while Connected. Lag is their difference.
	Checkpoint, LastSequence, Lag uint64

	// LagSeconds is 0 while Lag is 0 and nothing is Frozen, else the time since AsOf, or since New
	// if AsOf is unknown.
	LagSeconds float64

	// AsOf is a moment at which the model was complete: the time just before the request for a stream's end
	// that the model has reached since. AsOf never goes back, and is zero if unknown.
	AsOf time.Time

	// CaughtUp means that the model may be served. Once true it stays true.
	CaughtUp bool

	// Connected means that the broker answers about the stream.
	Connected bool

	// Frozen is why nothing is applied: FrozenMissing, FrozenForeign, or empty.
	Frozen string

	// Rewound means that the stream came back in an older state, and no operator has recovered it since.
	// Reading means that the stream is being read again from its beginning, while the model is shown.
	Rewound, Reading bool

	// Unpublished counts the known states that the stream is not known to hold.
	Unpublished int

	// WaitingPurges counts the removals whose earlier messages this server has not purged yet.
	WaitingPurges int

	// PeersMissing counts the replicas of the stream that are missing or not current.
	PeersMissing int

	// Saved is the checkpoint in the store.
	Saved uint64

	// Total is the number of sequences to read in the catch-up at the start, and Done how many of them have been
	// read. Both are 0 until the stream's end is known.
	Done, Total uint64

	// Numbers of messages since New.
	Applied        uint64 // applied or rejected
	Superseded     uint64 // stale: a greater state was known
	Unheeded       uint64 // removals that were rejected because a greater revision is shown
	RestoredStates uint64 // published again, since other messages had displaced them
	RejectedHere   uint64

	// Rejected is the number of messages in the stream of rejected events.
	Rejected uint64

	// LastError is a sentence about the most important problem, or empty.
	LastError string

	unsaved string // why the store cannot be written
}

// problem is a kind of problem that LastError can describe. The most important one comes first.
type problem int

const (
	frozenProblem  problem = iota
	streamProblem          // the stream cannot be reached, or must not be followed
	storeProblem           // the store cannot be written
	fullProblem            // the stream has no room for another message
	lackingProblem         // the stream lacks known states
	purgesProblem          // messages before removals are not purged
	numProblems
)

// tracker holds the published Progress, and the facts for the next one that no other part of a Projector holds. Run's
// goroutine changes the tracker, and any goroutine calls current.
type tracker struct {
	began     time.Time
	observed  Progress            // has only AsOf, Total, the counters, and what was seen of broker and stream
	sentences [numProblems]string // "" where there is no problem
	published atomic.Pointer[Progress]
}

// setProblem sets the sentence about a problem, "" if there is no problem, and reports whether the sentence is new.
func (t *tracker) setProblem(kind problem, sentence string) (isNew bool) {
	isNew = t.sentences[kind] != sentence
	t.sentences[kind] = sentence
	return isNew
}

// observeStream notes what the broker has just said about the stream.
func (t *tracker) observeStream(info *jetstream.StreamInfo) {
	t.observed.Connected = true
	t.observed.LastSequence = info.State.LastSeq
	t.observed.PeersMissing = countMissingPeers(info)
}

// current returns the published progress, at the cost of an atomic load and a copy.
func (t *tracker) current() Progress {
	p := *t.published.Load()
	if p.Lag > 0 || p.Frozen != "" {
		since := cmp.Or(p.AsOf, t.began) // AsOf is zero if unknown
		p.LagSeconds = max(0, time.Since(since).Seconds())
	}
	return p
}

// publishProgress publishes what the tracker has observed, with the state of the other parts. Run's loops call it in
// each turn.
func (p *Projector) publishProgress() {
	now := p.tracker.observed // a copy
	meta := p.projection.meta
	now.Identity = meta.Identity
	now.Stream = p.cfg.Stream
	now.Checkpoint = meta.Sequence
	now.LastSequence = max(now.LastSequence, now.Checkpoint)
	now.Lag = now.LastSequence - now.Checkpoint
	now.Saved = p.saver.sequence
	now.WaitingPurges = len(p.upkeep.purges)
	now.Rewound = meta.Rewound
	now.Reading = p.projection.isRereading
	if !now.Reading { // during a rereading, the rest of the stream may still have the lacking states
		now.Unpublished = p.projection.model.View().Lacking()
	}

	// Until the catch-up ends, Done counts the sequences after catchUpFrom, up to the checkpoint. Then Done is Total.
	now.CaughtUp = p.phase.isServed()
	now.Done = now.Total
	if !now.CaughtUp {
		now.Done = min(now.Total, max(now.Checkpoint, p.catchUpFrom)-p.catchUpFrom)
	}

	p.tracker.setProblem(lackingProblem, describeLacking(&now))
	now.unsaved = p.tracker.sentences[storeProblem]
	now.LastError = p.tracker.chooseError(&now)
	p.tracker.published.Store(&now)
}

// describeLacking returns a sentence if the stream lacks states that are shown, or "".
func describeLacking(now *Progress) string {
	if !now.CaughtUp || now.Reading {
		return ""
	}
	if now.Rewound {
		return "The stream came back in an older state; registry recover publishes what it has lost."
	}
	if now.Unpublished > 0 {
		return "The stream lacks states that this server knows; registry recover publishes them."
	}
	return ""
}

// chooseError returns the sentence about the most important problem or, without one, about the catch-up.
func (t *tracker) chooseError(now *Progress) string {
	sentence := cmp.Or(t.sentences[:]...)
	if sentence != "" || now.CaughtUp {
		return sentence
	}
	if !now.Connected {
		return "Waiting for the broker."
	}
	return "Catching up with the stream."
}

// reportFailure tells the operator why a session has ended.
func (p *Projector) reportFailure(err error) {
	isConnected := p.cfg.JetStream.Conn().IsConnected()
	frozen, isFrozen := errors.AsType[*frozenError](err)
	if !isFrozen {
		p.deniedSince = time.Time{} // this session has not ended with a frozenError
		p.tracker.observed.Connected = isConnected
		isNew := p.tracker.setProblem(streamProblem, fmt.Sprintf("The stream is not being followed: %v.", err))
		if isNew {
			p.log.Warn("the stream is not being followed; trying again", "error", err, "checkpoint", p.projection.meta.Sequence)
		}
		return
	}

	// A broker that is starting may say once that it has no stream: freeze only if all sessions of the last
	// retryEvery have ended like this one.
	if p.deniedSince.IsZero() {
		p.deniedSince = time.Now()
	}
	if time.Since(p.deniedSince) < p.cfg.pace.retryEvery {
		return
	}

	p.tracker.observed.Frozen = frozen.why
	p.tracker.observed.Connected = isConnected
	p.tracker.setProblem(streamProblem, "")
	isNew := p.tracker.setProblem(frozenProblem, frozen.sentence)
	if isNew {
		p.log.Error("frozen: nothing is applied, and the last state is served", "reason", frozen.sentence, "checkpoint", p.projection.meta.Sequence)
	}
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
}
