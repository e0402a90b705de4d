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
	// StreamIdentity has the configured name, and what else identifies the stream once that is known.
	readmodel.StreamIdentity

	// Checkpoint is the sequence that the model has been brought to. LastSequence is the stream's last sequence, at most
	// a second old while Connected. Lag is their difference; 0 where the stream keeps nothing in between. While Frozen,
	// LastSequence is that of the stream that is there now, so Lag means nothing.
	Checkpoint, LastSequence, Lag uint64

	// LagSeconds is 0 while Lag is 0 and the projector is not Frozen, else the time since AsOf (since New where that is
	// not known): an idle stream is not stuck, a frozen model is.
	LagSeconds float64

	// AsOf is the last moment at which the model was known to be complete. At start it is the time of the saved
	// checkpoint's message; zero when nothing is known.
	AsOf time.Time

	// CaughtUp says that the model may be served. Once true it stays true.
	CaughtUp bool

	// Connected says that the broker answers; Frozen that the stream is not ours any more.
	Connected, Frozen bool

	// Saved is the checkpoint in the store.
	Saved uint64

	// Done of Total messages have been applied or rejected in catching up at start; both 0 before the stream has
	// answered.
	Done, Total uint64

	// Applied counts the messages that this process applied or rejected.
	Applied uint64

	// Rejected counts the copies in the stream of rejected events: those that this process made at once, what others
	// add and purge within a second. RejectedHere counts what this process rejected.
	Rejected, RejectedHere uint64

	// SubjectsWithoutValidEvent are subjects of the contract whose every retained message was rejected, sorted, at most
	// 1 000, donations without their ids: a rebuild would not know their last state. A subject that is purged leaves the list within seconds (ten are
	// looked at in a poll).
	SubjectsWithoutValidEvent []string

	// TombstonesAfter is as in Config, until the delistings up to there have been read again; then it is 0.
	TombstonesAfter uint64

	// LastError is a sentence when anything is not well, else empty.
	LastError string
}

// Status is the part of Progress that every answer depends on.
type Status struct {
	CaughtUp, Frozen bool
	AsOf             time.Time
	LastError        string
}

// trouble is a source of LastError. The most important one comes first.
type trouble int

const (
	troubleFrozen trouble = iota
	troubleBroker
	troubleSession
	troubleStore
	troubleRejects
	troubleBacklog
	troubles // how many there are
)

// tracker keeps the Progress. Any goroutine may change it, under mu, and read it, by an atomic load.
type tracker struct {
	began time.Time // fixed before the first read

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

// setTrouble sets the sentence about what is wrong, empty for nothing, and reports whether it is a new one.
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
