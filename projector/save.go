package projector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
	"example.org/registry/snapshots"
)

const (
	// saveCount is how many states are saved without waiting longer.
	saveCount = 1000

	// commitWithin bounds a commit but for the store; what is not done then is repeated.
	commitWithin = 30 * time.Second

	// followUpWithin bounds the purges and the states published again of one commit, so that the next
	// is saved soon.
	followUpWithin = 2 * time.Second

	// maxRejectedBytes bounds the rejected events that wait to be copied.
	maxRejectedBytes = 16 << 20
)

// commit is what the store gets at once, and what follows from it.
type commit struct {
	states        map[events.Subject]snapshots.State
	lacking       []events.Subject
	rejected      []rejection
	rejectedBytes int
	purges        map[events.Subject]uint64 // the removal's sequence
	displaced     map[events.Subject]uint64 // sequence of a message that is not the subject's latest state

	// Set when it is handed over.
	meta    snapshots.Meta
	version uint64
	waiting int // purges
	write   bool
	restore bool

	since    time.Time // zero if there is nothing to do
	stale    bool      // its sequences mean nothing any more
	stored   bool
	restored uint64 // states published again
	purging  error  // why a purge failed
}

func newCommit() *commit {
	return &commit{
		states: map[events.Subject]snapshots.State{}, purges: map[events.Subject]uint64{}, displaced: map[events.Subject]uint64{},
	}
}

// addState adds the state in a message.
func (c *commit) addState(m *stream.Message, item *decoded) {
	k := item.record.Subject
	c.states[k] = snapshots.State{Sequence: m.Sequence, Line: item.line}
	delete(c.displaced, k)
	if item.record.Removed {
		c.purges[k] = m.Sequence
	}
}

// addDisplaced notes that a message which does not count may be the last of its subject.
func (c *commit) addDisplaced(m *stream.Message) {
	if k, err := events.ParseSubject(m.Subject); err == nil {
		c.displaced[k] = m.Sequence
	}
}

// forgetSequences drops what was decided by sequences that mean nothing any more.
func (c *commit) forgetSequences() {
	for k, state := range c.states {
		c.states[k] = snapshots.State{Line: state.Line}
	}
	clear(c.purges)
	clear(c.displaced)
}

// change notes that there is something to save.
func (p *Projector) change() {
	p.version.Add(1)
	p.due()
}

// due notes that the pending commit has something to do.
func (p *Projector) due() {
	if p.pending.since.IsZero() {
		p.pending.since = time.Now()
	}
}

// save hands over the pending commit if it is due and nothing is being saved.
func (p *Projector) save(now bool) {
	c := p.pending
	isDue := now || time.Since(c.since) >= p.cfg.SaveEvery || len(c.states) >= saveCount
	if p.saving != nil || c.since.IsZero() || !isDue || time.Now().Before(p.saveFrom) {
		return
	}

	p.mu.Lock()
	c.meta = p.meta
	c.meta.Digest = p.cfg.Model.Digest().String()
	p.mu.Unlock()
	if p.reading { // a process that dies now begins again
		c.meta.Sequence, c.meta.Marks, c.meta.Erased = 0, nil, 0
	}
	c.version, c.waiting = p.version.Load(), len(c.purges)
	c.write = p.mayWrite && p.cfg.MayWrite()
	c.restore = c.write && p.phase == caughtUp && !p.reading && !p.meta.Rewound && p.Progress().Frozen == ""

	p.saving, p.pending = c, newCommit()
	go func() { p.saved <- p.commit(c) }()
}

// commit copies rejected events, then saves, and then does what follows. After an error all of it is
// repeated, which is harmless.
func (p *Projector) commit(c *commit) error {
	ctx, cancel := context.WithTimeout(context.Background(), commitWithin)
	defer cancel()
	if err := p.copies.copyAll(ctx, c.meta.Epoch, c.rejected); err != nil {
		return &copyError{err}
	}
	c.rejected = nil

	err := p.cfg.Store.Save(snapshots.Commit{States: c.states, Lacking: c.lacking, Meta: c.meta})
	if err != nil {
		return err
	}
	c.stored = true
	if !c.write {
		clear(c.displaced)
		clear(c.purges)
		return nil
	}

	ctx, cancel = context.WithTimeout(ctx, followUpWithin)
	defer cancel()
	c.purging = p.purgeAll(ctx, c)
	if c.restore {
		p.restoreAll(ctx, c)
	}
	return nil
}

// copyError says that rejected events could not be copied.
type copyError struct{ error }

func (e *copyError) Unwrap() error { return e.error }

// purgeAll purges the messages before each removal.
func (p *Projector) purgeAll(ctx context.Context, c *commit) (failed error) {
	for k, sequence := range c.purges {
		if ctx.Err() != nil {
			return failed
		}
		if err := p.purgeBefore(ctx, k, sequence); err != nil {
			failed = err
			continue
		}
		delete(c.purges, k)
	}
	return failed
}

// purgeBefore purges the messages before a removal, if the stream still has the removal there: its
// sequences may be others than those that were read.
func (p *Projector) purgeBefore(ctx context.Context, k events.Subject, sequence uint64) error {
	m, err := p.stream.Message(ctx, sequence)
	if errors.Is(err, stream.ErrNoMessage) {
		return nil // displaced, or of another stream, where it is read again
	}
	if err != nil {
		return err
	}
	if e, err := m.Event(); err != nil || e.Data.Subject() != k || !e.Type.Removes() {
		return nil
	}
	return p.stream.PurgeBefore(ctx, k.String(), sequence)
}

// restoreAll publishes the latest states again that other messages have displaced. Another program
// may do the same, so each subject has its turn only once in a while.
func (p *Projector) restoreAll(ctx context.Context, c *commit) {
	for k, sequence := range c.displaced {
		if ctx.Err() != nil {
			return
		}
		if time.Since(p.restored[k]) < p.cfg.RestoreEvery {
			continue
		}
		state, known, err := p.cfg.Store.State(k)
		if err != nil {
			continue
		}
		if !known || state.Sequence >= sequence {
			delete(c.displaced, k)
			continue
		}
		err = p.stream.PublishAfter(ctx, k.String(), state.Line, sequence)
		if err == nil {
			p.restored[k] = time.Now()
			c.restored++
		}
		if err == nil || natserr.IsConflict(err) { // there is news of the subject
			delete(c.displaced, k)
		}
	}
	for k, at := range p.restored {
		if time.Since(at) > p.cfg.RestoreEvery {
			delete(p.restored, k)
		}
	}
}

// finishCommit takes the result of a commit. What is not done is tried again with the next one.
func (p *Projector) finishCommit(err error) {
	c := p.saving
	p.saving = nil
	if err == nil {
		p.tracker.setTrouble(troubleStore, "")
		p.tracker.setTrouble(troubleCopies, "")
		p.savedVersion.Store(c.version)
		p.noteErased(c)
	} else {
		p.noteUnsaved(c, err)
	}
	p.counts.restored += c.restored

	if !c.stale {
		for k, sequence := range c.purges {
			p.pending.purges[k] = max(sequence, p.pending.purges[k])
		}
		for k, sequence := range c.displaced {
			if _, wins := p.pending.states[k]; !wins {
				p.pending.displaced[k] = max(sequence, p.pending.displaced[k])
			}
		}
	}
	if len(p.pending.purges)+len(p.pending.displaced) > 0 {
		p.due()
	}
	p.show(func(s *Progress) {
		if err == nil && !c.stale {
			s.Saved = c.meta.Sequence
		}
	})
}

// noteErased moves the position up to which nothing waits to be purged.
func (p *Projector) noteErased(c *commit) {
	sentence := ""
	if c.purging != nil {
		sentence = fmt.Sprintf("Messages before removals are not purged: %v.", c.purging)
	}
	if p.tracker.setTrouble(troublePurges, sentence) && sentence != "" {
		p.log.Warn("messages before removals are not purged; trying again", "error", c.purging)
	}
	if !c.write || c.stale || len(c.purges) > 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.meta.Erased = c.meta.Sequence
}

// noteUnsaved tells the operator, and adds what was not saved to the pending commit.
func (p *Projector) noteUnsaved(c *commit, err error) {
	if _, isCopy := errors.AsType[*copyError](err); isCopy {
		if p.tracker.setTrouble(troubleCopies, fmt.Sprintf("Rejected events cannot be copied: %v.", err)) {
			p.log.Warn("rejected events cannot be copied; nothing is saved until they are", "error", err)
		}
	} else if p.tracker.setTrouble(troubleStore, fmt.Sprintf("The store cannot be written: %v.", err)) {
		p.log.Error("the store cannot be written; what is known is served, and saved later", "error", err)
	}
	p.saveFrom = time.Now().Add(p.cfg.RetryEvery)

	for k, state := range c.states {
		if _, newer := p.pending.states[k]; newer {
			continue
		}
		if c.stale {
			state.Sequence = 0
		}
		p.pending.states[k] = state
	}
	p.pending.rejected = append(c.rejected, p.pending.rejected...)
	if len(c.rejected) > 0 {
		p.pending.rejectedBytes += c.rejectedBytes
	}
	p.pending.lacking = append(c.lacking, p.pending.lacking...)
	p.due()
}

// saveRest saves everything that has been applied, when the projector ends. What cannot be saved is
// read again at the next start.
func (p *Projector) saveRest() {
	p.saveFrom = time.Time{}
	for !p.killed.Load() {
		unsaved := p.savedVersion.Load() < p.version.Load()
		if p.saving == nil && !unsaved {
			return
		}
		p.save(true)
		err := <-p.saved
		p.finishCommit(err)
		if err != nil {
			return
		}
	}
	if p.saving != nil { // nothing may use the store after Run
		p.finishCommit(<-p.saved)
	}
}

// startWriting begins to purge and to publish states again once this server may. Removals that an
// earlier process, or another server, has not followed up are found in the store.
func (p *Projector) startWriting() {
	if p.mayWrite || p.saving != nil || p.reading || !p.cfg.MayWrite() {
		return
	}
	p.mayWrite = true
	err := p.cfg.Store.Each(func(snapshots.Meta, int) error { return nil }, func(state snapshots.State) error {
		if state.Sequence <= p.meta.Erased || !isRemoval(state.Line) {
			return nil
		}
		if e, err := events.Decode(state.Line); err == nil && e.Type.Removes() {
			p.pending.purges[e.Data.Subject()] = state.Sequence
		}
		return nil
	})
	if err != nil {
		p.mayWrite = false
		p.log.Warn("removals cannot be looked for in the store; trying again", "error", err)
	}
	p.due()
}
