package projector

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/readmodel"
)

const (
	// maxUnerased bounds the subjects that wait to be erased. If there are more, the stream is read
	// again for the rest.
	maxUnerased = 100_000

	// eraseBatch is how many subjects are erased between two checks of the stream's identity.
	eraseBatch = 256

	// maxEraseWait is the longest wait between two checks of a server that may not purge. Each check
	// that finds nothing purged doubles the wait.
	maxEraseWait = time.Minute
)

// eraser purges the messages before a tombstone (events/CONTRACT.md#erasing). It purges only messages
// that it has looked at, before a tombstone that the stream still has, and asks for the stream's
// identity between the look and the purge. No request of JetStream purges on a condition: in a stream
// that is made again, with this name, in the milliseconds after that question, it may erase messages
// of the same subjects up to the same sequences. A server that knows their states puts them back.
//
// Every applied removal waits here until it is erased, even if the entry is listed again by then
// and the model has no tombstone for it. Checkpoint.Erased is the sequence up to which nothing
// waits, so the next process reads later removals from the stream.
//
// A server that may not purge counts the subjects, and checks whether another server has purged.
type eraser struct {
	p    *Projector
	wake chan struct{} // to run: an erasure waits; holds one
	most int           // maximum that wait: maxUnerased, except in tests

	mu         sync.Mutex
	waiting    map[string]uint64 // the tombstone's sequence by subject
	lowest     uint64            // no sequence in waiting is lower
	unread, to uint64            // removals from unread to to must be read from the stream; none if to is 0

	wait time.Duration // until the next check of a server that may not purge; owned by run
}

func newEraser(p *Projector) *eraser {
	e := &eraser{p: p, most: maxUnerased, wake: make(chan struct{}, 1), waiting: map[string]uint64{}}
	if at := p.cfg.Saved; at.Erased < at.Sequence {
		e.unread, e.to = at.Erased+1, at.Sequence
	}
	return e
}

// add schedules the erasure of the messages before each removal. It does not wait.
func (e *eraser) add(records []readmodel.Record) {
	if e.p.cfg.ReadOnly {
		return
	}
	added := false
	for _, r := range records {
		if r.Removed {
			e.enqueue(r.Subject.String(), r.Sequence)
			added = true
		}
	}
	if added && e.p.Status().CaughtUp {
		e.publish()
	}
}

// enqueue adds a removal. If too many wait, it schedules another read of the removals, and returns
// false.
func (e *eraser) enqueue(subject string, sequence uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.waiting[subject]; !ok && len(e.waiting) >= e.most {
		if e.to == 0 {
			e.unread = sequence
		}
		e.unread, e.to = min(e.unread, sequence), max(e.to, sequence)
		return false
	}
	if len(e.waiting) == 0 {
		e.lowest = sequence
	}
	e.waiting[subject] = max(sequence, e.waiting[subject])
	e.lowest = min(e.lowest, sequence)
	return true
}

// erased returns the last sequence up to which every removal has been erased, at most checkpoint.
func (e *eraser) erased(checkpoint uint64) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.to > 0 {
		checkpoint = min(checkpoint, e.unread-1)
	}
	if len(e.waiting) > 0 {
		checkpoint = min(checkpoint, e.lowest-1)
	}
	return checkpoint
}

// publish publishes the number that wait, and wakes run.
func (e *eraser) publish() {
	e.mu.Lock()
	n := len(e.waiting)
	e.mu.Unlock()
	e.p.tracker.update(func(s *Progress) { s.SubjectsNotErased = n })
	wake(e.wake)
}

// run erases waiting subjects until ctx ends.
func (e *eraser) run(ctx context.Context) {
	if !e.p.cfg.ReadOnly {
		repeat(ctx, e.p.log, "messages before a tombstone cannot be erased; retrying", e.p.cfg.RetryEvery, nil, e.wake, e.step)
	}
}

// repeat calls step until ctx ends: again after the wait that it returns, or earlier if early is woken; if
// the wait is 0, when wake is. After a failure it waits for retry alone. It logs the first of several
// failures.
func repeat(ctx context.Context, log *slog.Logger, failure string, retry time.Duration, early, wake <-chan struct{}, step func(context.Context) (time.Duration, error)) {
	for failing := false; ctx.Err() == nil; {
		wait, err := step(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			level := slog.LevelInfo // temporary
			if errors.Is(err, natserr.ErrRefused) {
				level = slog.LevelWarn
			}
			if !failing {
				log.Log(ctx, level, failure, "error", err)
			}
			pause.For(ctx, retry)
		case wait > 0:
			timer := time.NewTimer(wait)
			select {
			case <-early:
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
		default:
			select {
			case <-wake:
			case <-ctx.Done():
			}
		}
		failing = err != nil
	}
}

// step erases some waiting subjects. It returns the wait until the next step, or 0 if nothing
// waits.
func (e *eraser) step(ctx context.Context) (time.Duration, error) {
	status := e.p.Status()
	if !status.CaughtUp || status.Frozen {
		return e.p.cfg.RetryEvery, nil
	}
	if err := e.p.VerifyStream(ctx); err != nil {
		return e.p.cfg.RetryEvery, nil // reported elsewhere
	}
	if err := e.read(ctx); err != nil {
		return 0, err
	}
	some, more := e.some()
	if len(some) == 0 && !more {
		return 0, nil
	}
	looked, failed, err := each(some, func(t *tombstone) error { return e.look(ctx, t) })
	if e.p.VerifyStream(ctx) != nil {
		return e.p.cfg.RetryEvery, nil // they may have been looked for in another stream
	}
	done, left, purgeErr := each(looked, func(t *tombstone) error { return e.purge(ctx, t) })
	e.forget(done)
	switch err = cmp.Or(err, purgeErr); {
	case errors.Is(err, errNotErased):
		return e.nextCheck(len(done) > 0), nil
	case err == nil && (more || len(failed)+len(left) > 0):
		return time.Millisecond, nil
	}
	return 0, err
}

// nextCheck returns the wait until the next check, after one that found that another server purged
// something, or nothing.
func (e *eraser) nextCheck(purged bool) time.Duration {
	if purged {
		e.wait = 0
	}
	e.wait = min(max(2*e.p.cfg.RetryEvery, 2*e.wait), maxEraseWait)
	return e.wait
}

// tombstone is a removal with earlier messages of its subject.
type tombstone struct {
	subject  string
	sequence uint64
	last     uint64 // of the messages before it that may be purged; 0 if none
}

// some returns some waiting tombstones.
func (e *eraser) some() (some []*tombstone, more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for subject, sequence := range e.waiting {
		if len(some) == eraseBatch {
			return some, true
		}
		some = append(some, &tombstone{subject: subject, sequence: sequence})
	}
	return some, e.to > 0
}

// forget removes erased subjects from the queue.
func (e *eraser) forget(done []*tombstone) {
	e.mu.Lock()
	for _, t := range done {
		if e.waiting[t.subject] == t.sequence {
			delete(e.waiting, t.subject)
		}
	}
	e.lowest = math.MaxUint64
	for _, sequence := range e.waiting {
		e.lowest = min(e.lowest, sequence)
	}
	n := len(e.waiting)
	e.mu.Unlock()
	e.p.tracker.update(func(s *Progress) { s.SubjectsNotErased = n })
}

// errNotErased is no failure: this server may not purge.
var errNotErased = errors.New("not erased yet")

// look sets t.last. It stays 0 if one of the messages before t is a greater state than the removal,
// which is not true then.
func (e *eraser) look(ctx context.Context, t *tombstone) error {
	last, greatest, err := e.before(ctx, t)
	if err != nil || last == 0 {
		return err
	}
	m, err := e.p.stream.Message(ctx, t.sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil // newer messages displaced it, and the messages before it first
	case err != nil:
		return err
	}
	removal, err := m.Event()
	switch {
	case m.Subject != t.subject || err != nil || !removal.Type.Removes():
		return nil // not the message that was read: the next check of the stream freezes
	case greatest != nil && events.Compare(greatest, removal.Data) > 0:
		return nil
	case !e.p.cfg.Erase():
		return errNotErased
	}
	t.last = last
	return nil
}

// purge purges what look has found.
func (e *eraser) purge(ctx context.Context, t *tombstone) error {
	if t.last == 0 {
		return nil
	}
	return e.p.stream.PurgeBefore(ctx, t.subject, t.last+1)
}

// before returns the sequence of the subject's last message before t, or 0 if there is none, and the
// greatest of the states before t, or nil if none of them is valid. The stream keeps few messages of a
// subject.
func (e *eraser) before(ctx context.Context, t *tombstone) (last uint64, greatest events.Data, err error) {
	for {
		m, err := e.p.stream.NextMessage(ctx, last+1, t.subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Sequence >= t.sequence:
			return last, greatest, nil
		case err != nil:
			return 0, nil, err
		}
		if ev, err := m.Event(); err == nil && (greatest == nil || events.Compare(ev.Data, greatest) > 0) {
			greatest = ev.Data
		}
		last = m.Sequence
	}
}

// removes reports whether m is a valid removal.
func removes(m *leader.Message) bool {
	ev, err := m.Event()
	return err == nil && ev.Type.Removes()
}

// read reads some of the messages that must be read for removals.
func (e *eraser) read(ctx context.Context) error {
	removable := events.Subject{Kind: events.KindEntry, List: "*", ID: "*"}.String() // donations too, but not view totals
	for range eraseBatch {
		e.mu.Lock()
		from, to := e.unread, e.to
		e.mu.Unlock()
		if to == 0 {
			return nil
		}
		m, err := e.p.stream.NextMessage(ctx, from, removable)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
		end := err != nil || m.Sequence >= to
		if err == nil && m.Sequence <= to && removes(&m) && !e.enqueue(m.Subject, m.Sequence) {
			return nil // later
		}
		e.mu.Lock()
		switch {
		case e.unread != from || e.to != to: // enqueue has added more since
		case end:
			e.unread, e.to = 0, 0
		default:
			e.unread = m.Sequence + 1
		}
		e.mu.Unlock()
	}
	return nil
}
