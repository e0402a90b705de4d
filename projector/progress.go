package projector

import (
	"sync"
	"sync/atomic"
	"time"

	"example.org/registry/readmodel"
)

// Progress is the state of a Projector at one moment.
type Progress struct {
	// StreamIdentity has the configured name, and the rest once it is known.
	readmodel.StreamIdentity

	// Checkpoint is the sequence that the model has reached. LastSequence is the stream's last
	// sequence, at most a second old while Connected. Lag is their difference, or 0 if the stream
	// has no messages in between. While Frozen, LastSequence is that of the stream that is there
	// now, so Lag means nothing.
	Checkpoint, LastSequence, Lag uint64

	// LagSeconds is 0 while Lag is 0 and the projector is not Frozen, else the time since AsOf, or
	// since New if AsOf is unknown: an idle stream is not stuck, a frozen model is.
	LagSeconds float64

	// AsOf is the last moment at which the model is known to be complete, and never goes back. It
	// is the time before the request that returned the stream's end, not the time of a delivery,
	// which may be slow. At start it is when the broker stored the saved checkpoint's message, by
	// the broker's clock, but not later than now. It is zero if unknown.
	AsOf time.Time

	// CaughtUp means that the model may be served. Once true it stays true.
	CaughtUp bool

	// Connected means that the broker answers.
	Connected bool

	// FrozenBy is why nothing is applied: FrozenMissing, FrozenForeign, or empty.
	FrozenBy string

	// Unpublished counts the states that are known and that the stream lacks, once they have been
	// Compared. Rewound means that the stream came back in an older state, and that no new history
	// has begun since.
	Unpublished       int
	Compared, Rewound bool

	// PeersMissing counts the copies of the stream that it lacks or that are not current, as its
	// leader sees it.
	PeersMissing int

	// Saved is the checkpoint in the store.
	Saved uint64

	// Done of Total messages have been applied or rejected in the catch-up at start; both are 0
	// until the stream has answered.
	Done, Total uint64

	// Applied counts the messages that this process has applied or rejected.
	Applied uint64

	// Superseded counts the messages that this process has passed over, because a state with a
	// greater revision was known. Rejected ones are not among them.
	Superseded uint64

	// Unheeded counts the removals, and withdrawals of trust, that this process has rejected because
	// a state with a greater revision is shown (events/CONTRACT.md#revisions). A process that begins
	// with nothing saved, such as a new replica or a rebuild, counts none of those that it reads until
	// it has caught up: others have, and people act on a new one.
	Unheeded uint64

	// PutBack counts the states that this process has published again, because superseded or rejected
	// messages came after them.
	PutBack uint64

	// Rejected counts the copies in the stream of rejected events: this process's copies at once,
	// other copies and purges within a second. RejectedHere counts the events that this process has
	// rejected.
	Rejected, RejectedHere uint64

	// SubjectsNotErased counts the subjects with messages before their tombstone.
	SubjectsNotErased int

	// LastError is a sentence about the most important problem, or empty.
	LastError string
}

// Frozen reports whether nothing is applied, since the stream is missing or another registry's.
func (p *Progress) Frozen() bool { return p.FrozenBy != "" }

// Status is the part of Progress that every response depends on.
type Status struct {
	CaughtUp, Frozen bool
	AsOf             time.Time
	LastError        string
}

// knownComplete records that the model has everything that the stream had at asOf.
func (p *Progress) knownComplete(asOf time.Time) {
	if asOf.After(p.AsOf) {
		p.AsOf = asOf
	}
}

// trouble is a source of LastError, in order of importance.
type trouble int

const (
	troubleFrozen trouble = iota
	troubleBroker
	troubleOwed
	troubleSession
	troubleOrigin
	troubleVerify
	troubleConfig
	troubleLacking
	troubleDelivery
	troubleStore
	troubleRejects
	troubleBacklog
	troubles // their number
)

// tracker holds the Progress. Any goroutine may change it, under mu, and read it, by an atomic
// load.
type tracker struct {
	began time.Time // fixed before the first read

	mu        sync.Mutex
	progress  Progress
	sentences [troubles]string
	ends      []end // after the checkpoint, in order

	published atomic.Pointer[Progress]
}

// end is a moment at which the stream ended at sequence.
type end struct {
	sequence uint64
	at       time.Time
}

// maxEnds bounds the recorded ends of the stream: half a minute of polls by default. A model that
// lags more knows its AsOf less exactly.
const maxEnds = 64

// ended records that the stream had nothing after sequence at the moment at. Once the model has
// reached sequence, it was complete at that moment.
func (t *tracker) ended(sequence uint64, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := len(t.ends); n > 0 && (t.ends[n-1].sequence >= sequence || n == maxEnds); n-- {
		t.ends = t.ends[:n-1]
	}
	t.ends = append(t.ends, end{sequence, at})
	t.publish()
}

// update changes the progress and publishes it.
func (t *tracker) update(change func(p *Progress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.progress)
	t.publish()
}

// setTrouble sets the sentence about a problem, or clears it if empty, and reports whether it is
// new. What else says so in the progress is changed with it: no reader sees one without the other.
func (t *tracker) setTrouble(with trouble, sentence string, changes ...func(p *Progress)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	isNew := t.sentences[with] != sentence
	if !isNew && len(changes) == 0 {
		return false
	}
	t.sentences[with] = sentence
	for _, change := range changes {
		change(&t.progress)
	}
	t.publish()
	return isNew
}

func (t *tracker) publish() {
	for len(t.ends) > 0 && t.ends[0].sequence <= t.progress.Checkpoint {
		t.progress.knownComplete(t.ends[0].at)
		t.ends = t.ends[1:]
	}
	p := t.progress
	p.Lag = p.LastSequence - min(p.Checkpoint, p.LastSequence)
	p.LastError = t.lastError(p)
	t.published.Store(&p)
}

func (t *tracker) lastError(p Progress) string {
	for _, sentence := range t.sentences {
		if sentence != "" {
			return sentence
		}
	}
	switch {
	case p.CaughtUp:
		return ""
	case !p.Connected:
		return "Waiting for the broker."
	}
	return "Catching up with the stream."
}

func (t *tracker) status() Status {
	p := t.published.Load()
	return Status{p.CaughtUp, p.Frozen(), p.AsOf, p.LastError}
}

func (t *tracker) read(now time.Time) Progress {
	p := *t.published.Load()
	if p.Lag > 0 || p.Frozen() {
		since := p.AsOf
		if since.IsZero() {
			since = t.began
		}
		p.LagSeconds = max(0, now.Sub(since).Seconds())
	}
	return p
}
