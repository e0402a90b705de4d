package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"example.org/registry/events"
	"example.org/registry/events/pause"
	"example.org/registry/events/stream"
	"example.org/registry/snapshots"
)

// Projector follows one stream.
type Projector struct {
	cfg     Config
	log     *slog.Logger
	stream  stream.Stream
	copies  *copier
	tracker tracker

	// mu is held while model and meta change. Run's goroutine alone changes them, so it reads them
	// without mu.
	mu   sync.Mutex
	meta snapshots.Meta

	// Owned by Run.
	phase   phase
	target  end    // what phase waits for
	from    uint64 // checkpoint at which the catch-up began
	reading bool   // the stream is read again from its beginning, up to until
	until   uint64
	bulk    bool // the model publishes nothing until EndBulk

	pending  *commit // applied, and not handed over yet
	saving   *commit // handed over, or nil
	saved    chan error
	saveFrom time.Time // no save before

	mayWrite bool      // this server has begun to purge and to publish states again
	denied   time.Time // when a look first found no stream to go on with; zero if the last one did
	checked  bool      // the stream's settings
	moved    time.Time // when the checkpoint moved last
	counted  time.Time // no count of the copies of rejected events before
	lost     time.Time // when the stream was last read again because of lost subjects

	counts   counts
	lines    *rate.Limiter // of the log, about rejected events
	unlogged int           // since the last of them

	version      atomic.Uint64 // counts the changes that the store is to have
	savedVersion atomic.Uint64
	restored     map[events.Subject]time.Time // owned by the running commit
	killed       atomic.Bool                  // a test ends the projector as a crash does
}

// counts are numbers of messages since New.
type counts struct{ applied, superseded, unheeded, restored, rejected uint64 }

// How many rejections are logged, in a second and at once: no backend fills the disk with lines.
const (
	linesPerSecond = 1
	linesAtOnce    = 100
)

// phase says how far the model is from being served. It is complete only at the end that the stream
// had when a first end was reached: a message that was displaced on the way by a newer one of its
// subject is made up for by then.
type phase int

const (
	toFirstEnd phase = iota
	toSecondEnd
	caughtUp
)

// end is the stream's last sequence, and when it was asked for.
type end struct {
	sequence uint64
	asked    time.Time // zero if there is nothing to reach
}

// New makes a Projector.
func New(cfg Config) *Projector {
	cfg = cfg.withDefaults()
	p := &Projector{
		cfg: cfg, log: cfg.Logger, stream: stream.Stream{JS: cfg.JetStream, Name: cfg.Stream},
		copies: newCopier(cfg), meta: cfg.Meta,
		pending: newCommit(), saved: make(chan error, 1), restored: map[events.Subject]time.Time{},
		lines: rate.NewLimiter(linesPerSecond, linesAtOnce),
	}
	p.tracker.began = time.Now()
	p.reading = p.meta.Sequence == 0 && p.cfg.Model.View().NumSubjects() > 0
	p.show(func(s *Progress) {
		s.Saved = p.meta.Sequence
		if marks := p.meta.Marks; p.meta.Complete && len(marks) > 0 {
			s.AsOf = marks[len(marks)-1].Time
			if now := time.Now(); s.AsOf.After(now) { // the broker's clock is ahead
				s.AsOf = now
			}
		}
	})
	return p
}

// fatalError means that the operator must act before the stream can be followed.
type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

// frozenError means that there is no stream to go on with.
type frozenError struct{ why, sentence string }

func (e *frozenError) Error() string { return e.sentence }

// firstWait is the wait after a session that made no step. Each further one doubles it.
const firstWait = 50 * time.Millisecond

// Run follows the stream until ctx ends, and saves what it has applied. Before the model has caught
// up, a stream that must not be followed ends it with an error.
func (p *Projector) Run(ctx context.Context) error {
	wait := firstWait
	for ctx.Err() == nil {
		before := p.meta.Sequence
		err := p.session(ctx)
		if ctx.Err() != nil {
			break
		}

		if fatal, is := errors.AsType[*fatalError](err); is && p.phase != caughtUp {
			p.saveRest()
			return fatal.error
		}
		p.noteFailure(err)

		if p.meta.Sequence > before { // such as behind a message that no consumer delivers
			wait = firstWait
			continue
		}
		p.rest(ctx, wait)
		wait = min(2*wait, max(p.cfg.RetryEvery, firstWait))
	}
	p.saveRest()
	return nil
}

// noteFailure tells the operator why a session has ended.
func (p *Projector) noteFailure(err error) {
	frozen, _ := errors.AsType[*frozenError](err)
	connected := p.cfg.JetStream.Conn().IsConnected()
	if frozen == nil {
		p.denied = time.Time{}
		p.tracker.update(func(s *Progress) { s.Connected = connected })
		if p.tracker.setTrouble(troubleStream, fmt.Sprintf("The stream is not being followed: %v.", err)) {
			p.log.Warn("the stream is not being followed; trying again", "error", err, "checkpoint", p.meta.Sequence)
		}
		return
	}

	// A broker that is starting may deny its stream once.
	if p.denied.IsZero() {
		p.denied = time.Now()
	}
	if time.Since(p.denied) < p.cfg.RetryEvery {
		return
	}
	p.tracker.setTrouble(troubleStream, "")
	if p.tracker.setTrouble(troubleFrozen, frozen.sentence) {
		p.log.Error("frozen: nothing is applied, and the last state is served", "reason", frozen.sentence, "checkpoint", p.meta.Sequence)
	}
	p.tracker.update(func(s *Progress) { s.Frozen, s.Connected = frozen.why, connected })
	p.serveSaved(true)
}

// rest waits, and goes on saving.
func (p *Projector) rest(ctx context.Context, d time.Duration) {
	over := time.After(d)
	tick := time.NewTicker(p.cfg.SaveEvery)
	defer tick.Stop()
	for {
		p.serveSaved(false)
		p.save(false)
		select {
		case err := <-p.saved:
			p.finishCommit(err)
		case <-tick.C:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// serveSaved lets a saved state be served although the stream is not being followed: at once if it
// is frozen, else after StartupTimeout.
func (p *Projector) serveSaved(frozen bool) {
	if p.phase == caughtUp || !p.meta.Complete || !frozen && time.Since(p.tracker.began) < p.cfg.StartupTimeout {
		return
	}
	p.log.Warn("serving the saved state, since the stream is not being followed", "checkpoint", p.meta.Sequence)
	p.phase, p.target = caughtUp, end{}
	p.show(nil)
}

// Known returns the greatest revision that is known of a subject, or 0. Any goroutine may call it.
func (p *Projector) Known(k events.Subject) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cfg.Model.Known(k)
}

// flushEvery is how often Flush looks whether the store has been written.
const flushEvery = 20 * time.Millisecond

// Flush waits until the store has everything that has been applied. It fails at once while the store
// cannot be written. Any goroutine may call it while Run runs.
func (p *Projector) Flush(ctx context.Context) error {
	version := p.version.Load()
	for p.savedVersion.Load() < version {
		if sentence := p.tracker.sentence(troubleStore); sentence != "" {
			return errors.New(sentence)
		}
		if !pause.For(ctx, flushEvery) {
			return fmt.Errorf("the store is not written in time: %w", context.Cause(ctx))
		}
	}
	return nil
}
