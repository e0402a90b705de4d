package projector

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Progress is where a Projector stands. Its fields belong to one moment.
type Progress struct {
	// Stream is the configured name; Epoch and Created identify the stream, once known.
	Stream  string
	Epoch   string
	Created time.Time

	// Checkpoint is what the model has dealt with, LastSequence the stream's last sequence, at
	// most a second old while Connected. Lag is their difference; 0 when nothing is kept in between. While Frozen
	// LastSequence is that of the stream that is there now, so Lag says nothing.
	Checkpoint, LastSequence, Lag uint64

	// LagSeconds is 0 while Lag is and not Frozen, else the time since AsOf (since New where that is not
	// known): an idle stream is not stuck, a frozen model is.
	LagSeconds float64

	// AsOf is the last moment at which the model was known to be complete. At start it is the
	// time of the saved checkpoint's message; zero when nothing is known.
	AsOf time.Time

	// CaughtUp says that the model may be served. Once true it stays true.
	CaughtUp bool

	// Connected says that the broker answers; Frozen that the stream is not ours any more.
	Connected, Frozen bool

	// Saved is the checkpoint in the store.
	Saved uint64

	// Done of Total messages have been dealt with in catching up at start; both 0 before the
	// stream has answered.
	Done, Total uint64

	// Applied counts the messages dealt with by this process, rejected ones included.
	Applied uint64

	// Rejected counts the copies in the stream of rejected events: those that this process made at once, what others
	// add and purge within a second. RejectedHere is what this process rejected.
	Rejected, RejectedHere uint64

	// SubjectsWithoutValidEvent are subjects of the contract of which every message that the stream
	// still has was rejected, sorted, at most 1 000: a rebuild would not know their last state.
	// A subject that is purged leaves it within seconds (ten are asked for at a poll).
	SubjectsWithoutValidEvent []string

	// LastError is a sentence when anything is not well, else empty.
	LastError string
}

// Standing is the part of Progress that every answer depends on.
type Standing struct {
	CaughtUp, Frozen bool
	AsOf             time.Time
	LastError        string
}

// trouble is a source of LastError. The order is that of importance.
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

// status is the Progress in the making: written by every goroutine under mu, read by an atomic
// load.
type status struct {
	began time.Time // fixed before the first read

	mu        sync.Mutex
	progress  Progress
	sentences [troubles]string

	published atomic.Pointer[Progress]
}

// update changes the progress and publishes it.
func (s *status) update(change func(p *Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.progress)
	s.publish()
}

// say sets what is wrong with t, or nothing, and reports whether that is news.
func (s *status) say(t trouble, sentence string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sentences[t] == sentence {
		return false
	}
	s.sentences[t] = sentence
	s.publish()
	return true
}

func (s *status) publish() {
	p := s.progress
	p.Lag = p.LastSequence - min(p.Checkpoint, p.LastSequence)
	p.LastError = s.sentence(p)
	s.published.Store(&p)
}

func (s *status) sentence(p Progress) string {
	for _, sentence := range s.sentences {
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

// standing is one atomic load.
func (s *status) standing() Standing {
	p := s.published.Load()
	return Standing{p.CaughtUp, p.Frozen, p.AsOf, p.LastError}
}

// read is one atomic load and a copy.
func (s *status) read(now time.Time) Progress {
	p := *s.published.Load()
	p.SubjectsWithoutValidEvent = slices.Clone(p.SubjectsWithoutValidEvent)
	if p.Lag > 0 || p.Frozen {
		since := p.AsOf
		if since.IsZero() {
			since = s.began
		}
		p.LagSeconds = max(0, now.Sub(since).Seconds())
	}
	return p
}
