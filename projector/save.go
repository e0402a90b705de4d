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
	// copyWithin bounds the copying of a commit's rejected events. If the time is over, all are copied again.
	copyWithin = 30 * time.Second

	// maxRejectedBytes bounds the rejected events that wait to be copied.
	maxRejectedBytes = 16 << 20

	// flushEvery is how often flush looks whether the store has been written.
	flushEvery = 20 * time.Millisecond
)

// commit is the content of one transaction of the store, and the rejected events that are copied before.
type commit struct {
	states        map[events.Subject]snapshots.State
	lacking       []events.Subject
	rejected      []rejection
	rejectedBytes int

	since time.Time // zero if there is nothing to save

	// These fields are set when the commit is handed over, and isStale later.
	meta    snapshots.Meta
	changes uint64 // the saver's number of changes
	isStale bool   // the stream is being read again since: the checkpoint in meta belongs to the old sequences
}

func newCommit() *commit { return &commit{states: map[events.Subject]snapshots.State{}} }

func (c *commit) addRejected(r rejection) {
	c.rejected = append(c.rejected, r)
	c.rejectedBytes += len(r.message.Data)
}

// saver hands one commit after another to a goroutine that saves it. Run's goroutine calls its methods,
// and any goroutine calls flush.
type saver struct {
	cfg      Config
	copies   *copier
	problems *tracker

	pending   *commit    // applied, and not handed over yet
	running   *commit    // handed over, and not in the store yet, or nil
	isSaving  bool       // a goroutine saves running; if it is false, the last try has failed
	results   chan error // of the tries to save running
	notBefore time.Time  // after a failure

	sequence uint64        // checkpoint that the store has; 0 while the stream is read again
	changes  atomic.Uint64 // number of changes that were noted
	saved    atomic.Uint64 // number of changes that the store has
}

func newSaver(cfg Config, problems *tracker) *saver {
	return &saver{
		cfg:      cfg,
		copies:   &copier{stream: stream.Stream{JS: cfg.JetStream, Name: events.RejectedStream}, replicas: cfg.Replicas},
		problems: problems,
		pending:  newCommit(),
		results:  make(chan error, 1),
		sequence: cfg.Meta.Sequence,
	}
}

// noteChange notes that there is something to save.
func (s *saver) noteChange() {
	s.changes.Add(1)
	if s.pending.since.IsZero() {
		s.pending.since = time.Now()
	}
}

// startIfDue hands over the commit that has failed, or the pending one if it has waited long enough.
func (s *saver) startIfDue(p *projection) {
	if s.isSaving || time.Now().Before(s.notBefore) {
		return
	}

	isDue := !s.pending.since.IsZero() && time.Since(s.pending.since) >= s.cfg.pace.saveEvery
	if s.running != nil || isDue {
		s.start(p)
	}
}

// isFull reports whether too many rejected events wait to be copied.
func (s *saver) isFull() bool { return s.pending.rejectedBytes > maxRejectedBytes }

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

// save copies rejected events, and then saves: no checkpoint passes a rejection that has not been copied.
// After an error all of it is repeated, which is harmless.
func (s *saver) save(c *commit) error {
	ctx, cancel := context.WithTimeout(context.Background(), copyWithin)
	defer cancel()
	if err := s.copies.copyAll(ctx, c.meta.Epoch, c.rejected); err != nil {
		return fmt.Errorf("rejected events cannot be copied: %w", err)
	}
	c.rejected = nil
	return s.cfg.Store.Save(snapshots.Commit{States: c.states, Lacking: c.lacking, Meta: c.meta})
}

// finish takes the result of the running commit. A commit that has failed is saved again before the next one.
func (s *saver) finish(err error) {
	s.isSaving = false
	if err != nil {
		s.notBefore = time.Now().Add(s.cfg.pace.retryEvery)
		isNew := s.problems.setProblem(storeProblem, fmt.Sprintf("The store cannot be written: %v.", err))
		if isNew {
			s.cfg.Logger.Error("the store cannot be written; the model is served, and saved later", "error", err)
		}
		return
	}

	if !s.running.isStale {
		s.sequence = s.running.meta.Sequence
	}
	s.saved.Store(s.running.changes)
	s.running = nil
	s.problems.setProblem(storeProblem, "")
}

// saveRest saves everything that has been applied, when the projector ends. Whatever cannot be saved is
// read again at the next start.
func (s *saver) saveRest(p *projection) {
	// A running commit lacks the states that were applied after it was handed over: another commit follows with that.
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

// forgetSequences drops the sequences of pending states, which mean nothing any more. The states of the running
// commit may keep theirs: a later commit says which states the stream lacks.
func (s *saver) forgetSequences() {
	for subject, state := range s.pending.states {
		s.pending.states[subject] = snapshots.State{Line: state.Line}
	}

	s.sequence = 0
	if s.running != nil {
		s.running.isStale = true
	}
}

// flush waits until the store has every change that was applied before. It fails at once while the store
// cannot be written.
func (s *saver) flush(ctx context.Context) error {
	changes := s.changes.Load()
	for s.saved.Load() < changes {
		if unsaved := s.problems.current().unsaved; unsaved != "" {
			return errors.New(unsaved)
		}
		if !pause.For(ctx, flushEvery) {
			return fmt.Errorf("the store is not written in time: %w", context.Cause(ctx))
		}
	}
	return nil
}
