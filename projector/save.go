package projector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/pause"
	"example.org/registry/events/stream"
	"example.org/registry/snapshots"
)

const (
	// copyWithin bounds the copying of a commit's rejected events, which is then repeated.
	copyWithin = 30 * time.Second

	// maxRejectedBytes bounds the rejected events that wait to be copied.
	maxRejectedBytes = 16 << 20

	// flushEvery is how often flush looks whether the store has been written.
	flushEvery = 20 * time.Millisecond
)

// commit is the content of one transaction of the store, and the work that comes before and after it.
type commit struct {
	states        map[events.Subject]snapshots.State
	lacking       []events.Subject
	rejected      []rejection // copied before
	rejectedBytes int
	removals      map[events.Subject]uint64 // by sequence; messages before them are purged
	displaced     map[events.Subject]uint64 // sequence of a message that is not the subject's latest state

	since time.Time // zero if there is nothing to save

	// Set when it is handed over.
	meta    snapshots.Meta
	changes uint64
	isStale bool // the stream is read again: its sequences mean nothing any more
}

func newCommit() *commit {
	return &commit{
		states: map[events.Subject]snapshots.State{}, removals: map[events.Subject]uint64{}, displaced: map[events.Subject]uint64{},
	}
}

// addState adds the state in a message.
func (c *commit) addState(m *stream.Message, item *decoded) {
	subject := item.record.Subject
	c.states[subject] = snapshots.State{Sequence: m.Sequence, Line: item.line}
	delete(c.displaced, subject)
	if item.record.Removed {
		c.removals[subject] = m.Sequence
	}
}

// addDisplaced notes a message that has set no state: the message may be the last of its subject, after the
// message with the latest state.
func (c *commit) addDisplaced(m *stream.Message) {
	if subject, err := events.ParseSubject(m.Subject); err == nil {
		c.displaced[subject] = m.Sequence
	}
}

func (c *commit) addRejected(r rejection) {
	c.rejected = append(c.rejected, r)
	c.rejectedBytes += len(r.message.Data)
}

// addEarlier adds the content of a commit that failed. Later content wins. The failed commit's maps are used,
// not copied.
func (c *commit) addEarlier(earlier *commit) {
	c.states = overlay(earlier.states, c.states)
	c.removals = overlay(earlier.removals, c.removals)
	c.displaced = overlay(earlier.displaced, c.displaced)
	c.lacking = append(earlier.lacking, c.lacking...)
	c.rejected = append(earlier.rejected, c.rejected...)
	c.rejectedBytes += earlier.rejectedBytes
}

func overlay[V any](earlier, later map[events.Subject]V) map[events.Subject]V {
	maps.Copy(earlier, later)
	return earlier
}

// forgetSequences drops every decision by sequences that mean nothing any more.
func (c *commit) forgetSequences() {
	for subject, state := range c.states {
		c.states[subject] = snapshots.State{Line: state.Line}
	}
	clear(c.removals)
	clear(c.displaced)
}

// saver hands one commit after another to a goroutine that saves it. Run's goroutine calls its methods,
// and any goroutine calls flush.
type saver struct {
	cfg      Config
	copies   *copier
	problems *tracker

	pending   *commit    // applied, and not handed over yet
	running   *commit    // handed over, or nil
	results   chan error // of running
	notBefore time.Time  // after a failure

	changes atomic.Uint64 // number of changes that were noted
	saved   atomic.Uint64 // number of changes that the store has
}

func newSaver(cfg Config, problems *tracker) *saver {
	return &saver{
		cfg:      cfg,
		copies:   &copier{stream: stream.Stream{JS: cfg.JetStream, Name: events.RejectedStream}, replicas: cfg.Replicas},
		problems: problems,
		pending:  newCommit(),
		results:  make(chan error, 1),
	}
}

// noteChange notes that there is something to save.
func (s *saver) noteChange() {
	s.changes.Add(1)
	if s.pending.since.IsZero() {
		s.pending.since = time.Now()
	}
}

// startIfDue hands over the pending commit if it has waited long enough.
func (s *saver) startIfDue(p *projection) {
	if s.running != nil || s.pending.since.IsZero() || time.Now().Before(s.notBefore) {
		return
	}
	if time.Since(s.pending.since) >= s.cfg.pace.saveEvery {
		s.start(p.metaToSave())
	}
}

// isFull reports whether too many rejected events wait to be copied.
func (s *saver) isFull() bool { return s.pending.rejectedBytes > maxRejectedBytes }

// hasAll reports whether the store has every change.
func (s *saver) hasAll() bool { return s.saved.Load() >= s.changes.Load() }

// start hands over the pending commit.
func (s *saver) start(meta snapshots.Meta) {
	c := s.pending
	c.meta = meta
	c.changes = s.changes.Load()
	s.running = c
	s.pending = newCommit()
	go func() { s.results <- s.save(c) }()
}

// save copies rejected events, and then saves: no checkpoint passes a rejection that has not been copied.
// After an error all of it is repeated, which is harmless.
func (s *saver) save(c *commit) error {
	ctx, cancel := context.WithTimeout(context.Background(), copyWithin)
	defer cancel()
	if err := s.copies.copyAll(ctx, c.meta.Epoch, c.rejected); err != nil {
		return &copyError{err}
	}
	c.rejected = nil
	c.rejectedBytes = 0
	return s.cfg.Store.Save(snapshots.Commit{States: c.states, Lacking: c.lacking, Meta: c.meta})
}

// copyError says that rejected events could not be copied.
type copyError struct{ error }

func (e *copyError) Unwrap() error { return e.error }

// finish takes the result of the running commit, and returns it. The content of a failed one is saved with
// the next.
func (s *saver) finish(err error) *commit {
	c := s.running
	s.running = nil
	if c.isStale {
		c.forgetSequences()
	}
	if err != nil {
		s.notBefore = time.Now().Add(s.cfg.pace.retryEvery)
		s.reportFailure(err)
		s.pending.addEarlier(c)
		s.pending.since = time.Now()
		return c
	}

	s.saved.Store(c.changes)
	s.problems.setProblem(storeProblem, "")
	s.problems.setProblem(copiesProblem, "")
	return c
}

func (s *saver) reportFailure(err error) {
	if _, isCopy := errors.AsType[*copyError](err); isCopy {
		if s.problems.setProblem(copiesProblem, fmt.Sprintf("Rejected events cannot be copied: %v.", err)) {
			s.cfg.Logger.Warn("rejected events cannot be copied; nothing is saved until they are", "error", err)
		}
		return
	}
	if s.problems.setProblem(storeProblem, fmt.Sprintf("The store cannot be written: %v.", err)) {
		s.cfg.Logger.Error("the store cannot be written; the model is served, and saved later", "error", err)
	}
}

// forgetSequences drops every decision by sequences that mean nothing any more. In the running commit, whose
// maps the saving goroutine reads, finish drops these decisions.
func (s *saver) forgetSequences() {
	s.pending.forgetSequences()
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
