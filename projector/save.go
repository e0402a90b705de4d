package projector

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/pause"
	"example.org/registry/events/stream"
	"example.org/registry/snapshots"
)

const (
	// copyWithin bounds the copying of a commit's rejected events. After that, the next try copies all of them again.
	copyWithin = 30 * time.Second

	// maxRejectedBytes bounds the rejected events that wait to be copied.
	maxRejectedBytes = 16 << 20

	// flushEvery is the time between two checks whether the store has been written.
	flushEvery = 20 * time.Millisecond
)

// commit is the content of one transaction of the store, and the rejected events to copy before it.
type commit struct {
	states        map[events.Subject]snapshots.State
	lacking       []events.Subject
	rejected      []rejection
	rejectedBytes int

	since time.Time // when its first change was noted; zero if there is nothing to save

	// These two fields are set when the commit is handed over.
	meta    snapshots.Meta
	changes uint64 // saver.changes at that moment

	isStale bool // a rereading began after that moment, so the checkpoint in meta no longer counts
}

func newCommit() *commit { return &commit{states: map[events.Subject]snapshots.State{}} }

func (c *commit) addRejected(r rejection) {
	c.rejected = append(c.rejected, r)
	c.rejectedBytes += len(r.message.Data)
}

// saver hands one commit after another to a goroutine that saves it. Only Run's goroutine calls the methods, but any
// goroutine may call flush and hasAll.
type saver struct {
	cfg     Config
	copies  *copier
	tracker *tracker

	pending   *commit    // collects what is applied
	running   *commit    // handed over, and not in the store yet; or nil
	isSaving  bool       // a goroutine is saving running; if not, the last try to save it has failed
	results   chan error // of the tries to save running
	notBefore time.Time  // when the next try may begin, after a failure

	sequence uint64        // the checkpoint in the store; 0 during a rereading
	changes  atomic.Uint64 // number of changes that were noted
	saved    atomic.Uint64 // number of changes that the store has
}

func newSaver(cfg Config, t *tracker) *saver {
	return &saver{
		cfg:      cfg,
		copies:   &copier{stream: stream.Stream{JS: cfg.JetStream, Name: events.RejectedStream}, replicas: cfg.Replicas},
		tracker:  t,
		pending:  newCommit(),
		results:  make(chan error, 1),
		sequence: cfg.Meta.Sequence,
	}
}

// noteChange notes that the pending commit has something to save.
func (s *saver) noteChange() {
	s.changes.Add(1)
	if s.pending.since.IsZero() {
		s.pending.since = time.Now()
	}
}

// startIfDue hands over the commit that has failed once more, or the pending commit if saveEvery is over.
func (s *saver) startIfDue(p *projection) {
	if s.isSaving || time.Now().Before(s.notBefore) {
		return
	}

	hasFailed := s.running != nil // and no goroutine is saving it
	isDue := !s.pending.since.IsZero() && time.Since(s.pending.since) >= s.cfg.pace.saveEvery
	if hasFailed || isDue {
		s.start(p)
	}
}

// hasTooManyRejected reports whether too many rejected events wait to be copied.
func (s *saver) hasTooManyRejected() bool { return s.pending.rejectedBytes > maxRejectedBytes }

// hasAll reports whether the store has every change.
func (s *saver) hasAll() bool { return s.saved.Load() >= s.changes.Load() }

// start hands over the commit that has failed or, if there is none, the pending one.
func (s *saver) start(p *projection) {
	if s.running == nil {
		s.running = s.pending
		s.running.meta = p.metaToSave()
		s.running.changes = s.changes.Load()
		s.pending = newCommit()
	}

	c := s.running
	s.isSaving = true
	go func() { s.results <- s.save(c) }()
}

// save first copies the rejected events, so that no saved checkpoint is past a rejected event without a copy. After
// an error the caller calls save again, which is harmless.
func (s *saver) save(c *commit) error {
	ctx, cancel := context.WithTimeout(context.Background(), copyWithin)
	defer cancel()
	if err := s.copies.copyAll(ctx, c.meta.Epoch, c.rejected); err != nil {
		return fmt.Errorf("rejected events cannot be copied: %w", err)
	}
	c.rejected = nil // if Save fails, the next try copies nothing again
	return s.cfg.Store.Save(snapshots.Commit{States: c.states, Lacking: c.lacking, Meta: c.meta})
}

// finish takes the result of a try to save the running commit. A commit that has failed stays the running one.
func (s *saver) finish(err error) {
	s.isSaving = false
	if err != nil {
		s.notBefore = time.Now().Add(s.cfg.pace.retryEvery)
		isNew := s.tracker.setProblem(storeProblem, fmt.Sprintf("The store cannot be written: %v.", err))
		if isNew {
			s.cfg.Logger.Error("the store cannot be written; the model is served, and saved later", "error", err)
		}
		return
	}

	// If a rereading has begun since the handover, the commit's checkpoint no longer counts.
	if !s.running.isStale {
		s.sequence = s.running.meta.Sequence
	}
	s.saved.Store(s.running.changes)
	s.running = nil
	s.tracker.setProblem(storeProblem, "")
}

// saveRest saves everything that has been applied, when the projector ends. After a failure it gives up: the next
// process reads the unsaved events from the stream.
func (s *saver) saveRest(p *projection) {
	// If a commit is running, a second one follows with the states that were applied since.
	for s.isSaving || !s.hasAll() {
		if !s.isSaving {
			s.start(p)
		}

		err := <-s.results
		s.finish(err)
		if err != nil {
			return
		}
	}
}

// forgetSequences drops the sequences of pending states at the start of a rereading. The running commit keeps its
// sequences: when the rereading ends, a later commit sets the sequences of lacking states to 0.
func (s *saver) forgetSequences() {
	for subject, state := range s.pending.states {
		s.pending.states[subject] = snapshots.State{Line: state.Line}
	}

	s.sequence = 0
	if s.running != nil {
		s.running.isStale = true
	}
}

// flush waits until the store has every change that was noted before the call. It fails at once while the store
// cannot be written.
func (s *saver) flush(ctx context.Context) error {
	changes := s.changes.Load()
	for s.saved.Load() < changes {
		if unsaved := s.tracker.current().unsaved; unsaved != "" {
			return errors.New(unsaved)
		}
		if !pause.For(ctx, flushEvery) {
			return fmt.Errorf("the store is not written in time: %w", context.Cause(ctx))
		}
	}
	return nil
}
