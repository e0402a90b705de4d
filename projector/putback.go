package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
)

const (
	// maxDisplaced bounds the subjects that wait to be looked at. Further ones wait for their next
	// superseded or rejected message.
	maxDisplaced = 100_000

	// The pauses between two repetitions of a subject's state double from the first to the last:
	// what displaces it may be another program that does the same.
	firstPause = time.Second
	lastPause  = 10 * time.Minute
)

// restorer keeps the last message of each subject its true state, on a server that may purge
// (events/CONTRACT.md#erasing): after superseded and rejected messages it publishes that state
// again. Otherwise five of them, which is what the stream keeps, would displace it.
//
// It publishes nothing that it cannot compare: the store must have every message of the subject up
// to the last one that the stream has, and the broker refuses the repetition if there is a newer
// one. A subject of which nothing is known stays as it is.
type restorer struct {
	p    *Projector
	wake chan struct{} // to run: a subject waits; holds one

	mu       sync.Mutex
	subjects map[string]*displaced

	failing bool // the last step failed; owned by run
}

// displaced is a subject whose last message may not be its true state.
type displaced struct {
	waits bool          // it must be looked at
	due   time.Time     // not before then
	pause time.Duration // after the last repetition; 0 before the first
}

func newRestorer(p *Projector) *restorer {
	return &restorer{p: p, wake: make(chan struct{}, 1), subjects: map[string]*displaced{}}
}

// add schedules a look at a subject. It does not wait. Any goroutine may call it.
func (r *restorer) add(subject string) {
	if r.p.cfg.ReadOnly || r.p.cfg.Erase == nil {
		return
	}
	r.mu.Lock()
	d := r.subjects[subject]
	if d == nil && len(r.subjects) < maxDisplaced {
		d = &displaced{}
		r.subjects[subject] = d
	}
	if d != nil {
		d.waits = true
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run looks at waiting subjects until ctx ends.
func (r *restorer) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait, err := r.step(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !r.failing {
			level := slog.LevelWarn
			if !errors.Is(err, natserr.ErrRefused) {
				level = slog.LevelInfo // temporary
			}
			r.p.log.Log(ctx, level, "a state that other messages have displaced cannot be published again; retrying", "error", err)
		}
		if r.failing = err != nil; r.failing {
			wait = r.p.cfg.RetryEvery
		}
		r.idle(ctx, wait)
	}
}

// idle waits for d, or less if a subject is added; if d is 0, for that alone.
func (r *restorer) idle(ctx context.Context, d time.Duration) {
	if r.failing {
		pause.For(ctx, d)
		return
	}
	var due <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-r.wake:
	case <-due:
	case <-ctx.Done():
	}
}

// step looks at some waiting subjects. It returns the wait until the next step, or 0 if none waits.
func (r *restorer) step(ctx context.Context) (time.Duration, error) {
	some, wait := r.next(time.Now())
	if len(some) == 0 {
		return wait, nil
	}
	status := r.p.Status()
	ready := status.CaughtUp && !status.Frozen && r.p.origin.Load() == nil && !r.p.checkpoint().Unconfirmed
	if !ready || r.p.VerifyStream(ctx) != nil { // reported elsewhere
		for _, subject := range some {
			r.settle(subject, false, errNotYet)
		}
		return r.p.cfg.RetryEvery, nil
	}
	_, _, err := each(some, func(subject string) error {
		again, err := r.restore(ctx, subject)
		r.settle(subject, again, err)
		if errors.Is(err, errNotYet) {
			return nil
		}
		return err
	})
	return time.Millisecond, err
}

// next returns some of the subjects that are due, which wait no longer, and the wait until the next
// one is, or 0. It forgets those that have been quiet for longer than their pause.
func (r *restorer) next(now time.Time) (some []string, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for subject, d := range r.subjects {
		switch {
		case !d.waits && now.Sub(d.due) >= d.pause:
			delete(r.subjects, subject)
		case !d.waits:
		case d.due.After(now):
			if in := d.due.Sub(now); wait == 0 || in < wait {
				wait = in
			}
		default:
			d.waits = false
			if some = append(some, subject); len(some) == eraseBatch {
				return some, wait
			}
		}
	}
	return some, wait
}

// settle records what a look at a subject has led to.
func (r *restorer) settle(subject string, again bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.subjects[subject]
	switch now := time.Now(); {
	case d == nil: // next has forgotten it
	case errors.Is(err, errOtherServer):
		d.waits, d.due = true, now.Add(maxEraseWait)
	case errors.Is(err, errNotYet):
		d.waits, d.due = true, now.Add(r.p.cfg.SaveEvery)
	case err != nil:
		d.waits, d.due = true, now.Add(r.p.cfg.RetryEvery)
	case again:
		d.pause = min(max(firstPause, 2*d.pause), lastPause)
		d.due = now.Add(d.pause)
	}
}

var (
	// errNotYet is no failure: the store does not have the subject's last message yet.
	errNotYet = errors.New("not looked at yet")

	// errOtherServer is no failure: another server may publish the state.
	errOtherServer = fmt.Errorf("%w: not by this server", errNotYet)
)

// restore publishes the true state of a subject, if its last message is another one, and reports
// whether it has.
func (r *restorer) restore(ctx context.Context, subject string) (again bool, err error) {
	k, err := events.ParseSubject(subject)
	if err != nil {
		return false, nil // it has no state
	}
	last, err := r.p.stream.LastMessage(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return false, nil // purged: not displaced by a message
	case err != nil:
		return false, err
	case last.Sequence > r.p.Progress().Saved:
		return false, errNotYet
	}
	state, ok, err := r.p.cfg.Store.State(k)
	if err != nil || !ok {
		return false, err
	}
	if e, err := last.Event(); err == nil && events.Compare(e.Data, state.Data) >= 0 {
		return false, nil
	}
	if !r.p.cfg.Erase() {
		return false, errOtherServer
	}
	err = r.publish(ctx, subject, state.Data, last.Sequence)
	switch {
	case natserr.IsConflict(err):
		return false, errNotYet // another server was faster, or there is news
	case err != nil:
		return false, err
	}
	r.p.tracker.update(func(s *Progress) { s.PutBack++ })
	r.p.log.Info("superseded or rejected messages came after the true state of a subject; published it again",
		"subject", k.Masked(), "revision", events.Revision(state.Data), "after", last.Sequence)
	return true, nil
}

// publish publishes a state as registry export writes it. It has no Nats-Msg-Id, since the broker
// would take the second repetition within two minutes for a duplicate.
func (r *restorer) publish(ctx context.Context, subject string, d events.Data, after uint64) error {
	payload, err := events.Encode(events.StateEvent(d))
	if err != nil {
		return err
	}
	js := r.p.stream.JS
	if !js.Conn().IsConnected() {
		return leader.ErrNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, leader.RequestTimeout)
	defer cancel()
	m := &nats.Msg{Subject: subject, Data: payload, Header: nats.Header{events.HeaderContent: {events.ContentType}}}
	_, err = js.PublishMsg(ctx, m, jetstream.WithExpectStream(r.p.cfg.Stream), jetstream.WithExpectLastSequencePerSubject(after))
	return natserr.Explain(js.Conn(), err, subject)
}
