package projector

import (
	"context"
	"errors"
	"log/slog"
	"strings"
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
	// maxUnerased bounds the subjects that wait to be erased. If there are more, the stream's
	// subjects are scanned again when these are done.
	maxUnerased = 100_000

	// eraseBatch is how many subjects are erased between two checks of the stream's identity.
	eraseBatch = 256
)

// eraser purges the messages before a tombstone (events/CONTRACT.md#erasing). A tombstone is the
// last thing that it trusts: it purges only what lies before one that the stream still has.
//
// A server that may not purge only counts, and looks whether another one has.
type eraser struct {
	p     *Projector
	may   bool
	wake  chan struct{} // to run: something waits; holds one
	every time.Duration // between two looks of a server that may not purge
	retry time.Duration // after a request that failed

	mu      sync.Mutex
	waiting map[string]uint64 // the tombstone's sequence by subject
	scan    bool              // the stream's subjects have to be scanned

	failing bool // owned by run: the last step failed
}

func newEraser(p *Projector) *eraser {
	return &eraser{p: p, may: p.cfg.Erase, every: 2 * p.cfg.RetryEvery, retry: p.cfg.RetryEvery,
		wake: make(chan struct{}, 1), waiting: map[string]uint64{}, scan: true}
}

// add has the messages before each removal erased. It waits for nothing. Removals that are applied
// before the model has caught up are found by the scan.
func (e *eraser) add(records []readmodel.Record) {
	if e.p.cfg.ReadOnly || !e.p.Status().CaughtUp {
		return
	}
	added := false
	for _, r := range records {
		if r.Removed {
			e.put(r.Subject.String(), r.Sequence)
			added = true
		}
	}
	if added {
		e.publish()
	}
}

func (e *eraser) put(subject string, sequence uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.waiting[subject]; !ok && len(e.waiting) >= maxUnerased {
		e.scan = true
		return
	}
	e.waiting[subject] = max(sequence, e.waiting[subject])
}

// publish shows how many wait, and wakes run.
func (e *eraser) publish() {
	e.mu.Lock()
	n := len(e.waiting)
	e.mu.Unlock()
	e.p.tracker.update(func(s *Progress) { s.SubjectsNotErased = n })
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// run erases what waits until ctx ends.
func (e *eraser) run(ctx context.Context) {
	if e.p.cfg.ReadOnly {
		return
	}
	for ctx.Err() == nil {
		wait, err := e.step(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !e.failing {
			level := slog.LevelWarn
			if !errors.Is(err, natserr.ErrRefused) {
				level = slog.LevelInfo // it passes
			}
			e.p.log.Log(ctx, level, "messages before a tombstone cannot be erased; retrying", "error", err)
		}
		if e.failing = err != nil; e.failing {
			wait = e.retry
		}
		e.idle(ctx, wait)
	}
}

// idle waits for d, or if d is 0 for something to erase.
func (e *eraser) idle(ctx context.Context, d time.Duration) {
	if d > 0 {
		pause.For(ctx, d)
		return
	}
	select {
	case <-e.wake:
	case <-ctx.Done():
	}
}

// step erases some of what waits. It returns how long to wait for the next step, 0 if nothing
// waits.
func (e *eraser) step(ctx context.Context) (time.Duration, error) {
	status := e.p.Status()
	if !status.CaughtUp || status.Frozen {
		return e.retry, nil
	}
	if err := e.p.VerifyStream(ctx); err != nil {
		return e.retry, nil // reported elsewhere
	}
	if err := e.find(ctx); err != nil {
		return 0, err
	}
	some, more := e.some()
	if len(some) == 0 {
		return 0, nil
	}
	done, failed, err := each(some, func(t tombstone) error { return e.erase(ctx, t) })
	e.forget(done)
	switch {
	case errors.Is(err, errNotErased):
		return e.every, nil
	case err == nil && (more || len(failed) > 0):
		return time.Millisecond, nil
	}
	return 0, err
}

// tombstone is a removal that a subject's earlier messages lie before.
type tombstone struct {
	subject  string
	sequence uint64
}

// some returns some of what waits.
func (e *eraser) some() (some []tombstone, more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for subject, sequence := range e.waiting {
		if len(some) == eraseBatch {
			return some, true
		}
		some = append(some, tombstone{subject, sequence})
	}
	return some, e.scan
}

// forget takes what is erased off the list.
func (e *eraser) forget(done []tombstone) {
	e.mu.Lock()
	for _, t := range done {
		if e.waiting[t.subject] == t.sequence {
			delete(e.waiting, t.subject)
		}
	}
	n := len(e.waiting)
	e.mu.Unlock()
	e.p.tracker.update(func(s *Progress) { s.SubjectsNotErased = n })
}

// errNotErased is no failure: this server may not purge.
var errNotErased = errors.New("not erased yet")

// erase purges what lies before t, and nothing after it.
func (e *eraser) erase(ctx context.Context, t tombstone) error {
	m, err := e.p.stream.Message(ctx, t.sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil // newer messages displaced it, and first what lay before it
	case err != nil:
		return err
	case m.Subject != t.subject || !removes(&m):
		return nil // not the message that was read: the next look at the stream freezes
	}
	first, err := e.p.stream.NextMessage(ctx, 1, t.subject)
	if err != nil || first.Sequence >= t.sequence {
		return err
	}
	if !e.may {
		return errNotErased
	}
	return e.p.stream.PurgeBefore(ctx, t.subject, t.sequence)
}

// removes reports whether m is a valid removal.
func removes(m *leader.Message) bool {
	ev, err := events.DecodeMessage(m.Subject, m.Data)
	return err == nil && ev.Type.Removes()
}

// find scans the stream's subjects, once after the start, for tombstones that have messages before
// them: a request for each hundred thousand subjects.
func (e *eraser) find(ctx context.Context) error {
	e.mu.Lock()
	scan := e.scan && len(e.waiting) < maxUnerased
	e.mu.Unlock()
	if !scan {
		return nil
	}
	known := map[string]uint64{}
	e.p.withModel(func(m *readmodel.Model) {
		for _, t := range m.Tombstones() {
			known[t.Subject().String()] = t.Sequence
		}
	})
	e.mu.Lock()
	e.scan = false
	e.mu.Unlock()
	err := e.scanSubjects(ctx, known)
	if err != nil {
		e.mu.Lock()
		e.scan = true
		e.mu.Unlock()
	}
	e.publish()
	return err
}

func (e *eraser) scanSubjects(ctx context.Context, known map[string]uint64) error {
	if len(known) > 0 {
		for _, list := range events.Lists() {
			prefix := events.Subject{Kind: events.KindEntry, List: list, ID: "*"}.String()
			err := e.repeated(ctx, prefix, func(subject string) error {
				if sequence, ok := known[subject]; ok {
					e.put(subject, sequence)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	donations := events.Subject{Kind: events.KindDonation, ID: "*"}.String()
	return e.repeated(ctx, donations, func(subject string) error {
		if _, shown := e.p.cfg.Model.View().Donation(strings.TrimPrefix(subject, strings.TrimSuffix(donations, "*"))); shown {
			return nil
		}
		last, err := e.p.stream.LastMessage(ctx, subject)
		if err == nil && removes(&last) {
			e.put(subject, last.Sequence)
		}
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		return err
	})
}

// repeated calls f for every subject that matches filter and has more than one message.
func (e *eraser) repeated(ctx context.Context, filter string, f func(subject string) error) error {
	for offset := 0; ; {
		page, total, err := e.p.stream.Subjects(ctx, filter, offset)
		if err != nil {
			return err
		}
		for subject, n := range page {
			if n < 2 {
				continue
			}
			if err := f(subject); err != nil {
				return err
			}
		}
		if offset += len(page); len(page) == 0 || offset >= total {
			return nil
		}
	}
}
