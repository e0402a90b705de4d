package projector

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.org/registry/readmodel"
)

// Progress is how far a Projector is. Its fields belong to one moment.
type Progress struct {
	// StreamIdentity has the configured name, and what else identifies the stream once that is
	// known.
	readmodel.StreamIdentity

	// Checkpoint is the sequence that the model has been brought to. LastSequence is the stream's
	// last sequence, at most a second old while Connected. Lag is their difference; 0 where the
	// stream keeps nothing in between. While Frozen, LastSequence is that of the stream that is
	// there now, so Lag means nothing.
	Checkpoint, LastSequence, Lag uint64

	// LagSeconds is 0 while Lag is 0 and the projector is not Frozen, else the time since AsOf
	// (since New where that is not known): an idle stream is not stuck, a frozen model is.
	LagSeconds float64

	// AsOf is the last moment at which the model was known to be complete, and never goes back. It
	// is a moment before the request whose answer said where the stream ended, not that of any
	// delivery, which may have been long on its way. At start it is when the broker stored the
	// saved checkpoint's message, by the broker's clock, but not later than now; zero when nothing
	// is known.
	AsOf time.Time

	// CaughtUp says that the model may be served. Once true it stays true.
	CaughtUp bool

	// Connected says that the broker answers; Frozen that the stream is not ours any more.
	Connected, Frozen bool

	// Saved is the checkpoint in the store.
	Saved uint64

	// Done of Total messages have been applied or rejected in catching up at start; both 0 before
	// the stream has answered.
	Done, Total uint64

	// Applied counts the messages that this process applied or rejected.
	Applied uint64

	// Rejected counts the copies in the stream of rejected events: those that this process made at
	// once, what others add and purge within a second. RejectedHere counts what this process
	// rejected.
	Rejected, RejectedHere uint64

	// SubjectsWithoutValidEvent are subjects of the contract whose every retained message was
	// rejected, sorted, at most 1,000, donations without their ids: a rebuild would not know their
	// last state. A subject that is purged leaves the list within seconds (ten are looked at in a
	// poll).
	SubjectsWithoutValidEvent []string

	// SubjectsNotErased counts the subjects that have a tombstone and messages before it.
	SubjectsNotErased int

	// SubjectsLost counts the subjects that have a state in the model and no message in the stream.
	SubjectsLost int

	// LastError is a sentence when anything is not well, else empty.
	LastError string
}

// Status is the part of Progress that every answer depends on.
type Status struct {
	CaughtUp, Frozen bool
	AsOf             time.Time
	LastError        string
}

// knownComplete says that the model has everything that the stream had at asOf.
func (p *Progress) knownComplete(asOf time.Time) {
	if asOf.After(p.AsOf) {
		p.AsOf = asOf
	}
}

// trouble is a source of LastError. The most important one comes first.
type trouble int

const (
	troubleFrozen trouble = iota
	troubleBroker
	troubleSession
	troubleOrigin
	troubleConfig
	troubleLoss
	troubleDelivery
	troubleStore
	troubleRejects
	troubleBacklog
	troubles // how many there are
)

// tracker keeps the Progress. Any goroutine may change it, under mu, and read it, by an atomic
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

// maxEnds bounds what is remembered of where the stream ended: half a minute of polls by default. A
// model that is further behind knows its AsOf less exactly.
const maxEnds = 64

// ended notes that the stream had nothing after sequence at the moment at. The model was complete
// at that moment once it has reached sequence.
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

// setTrouble sets the sentence about what is wrong, empty for nothing, and reports whether it is a
// new one.
func (t *tracker) setTrouble(with trouble, sentence string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sentences[with] == sentence {
		return false
	}
	t.sentences[with] = sentence
	t.publish()
	return true
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
	return Status{p.CaughtUp, p.Frozen, p.AsOf, p.LastError}
}

func (t *tracker) read(now time.Time) Progress {
	p := *t.published.Load()
	p.SubjectsWithoutValidEvent = slices.Clone(p.SubjectsWithoutValidEvent)
	if p.Lag > 0 || p.Frozen {
		since := p.AsOf
		if since.IsZero() {
			since = t.began
		}
		p.LagSeconds = max(0, now.Sub(since).Seconds())
	}
	return p
}
