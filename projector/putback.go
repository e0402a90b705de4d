package projector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
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
// one. A subject without a known state stays as it is.
type restorer struct {
	p    *Projector
	wake chan struct{} // to run: a subject waits; holds one

	mu         sync.Mutex
	subjects   map[string]*displaced
	unread, to uint64 // what must be read from the stream, since an earlier process did not look at it; none if to is 0
}

// displacing is a superseded or rejected message.
type displacing struct {
	subject  string
	sequence uint64
}

// displaced is a subject whose last message may not be its true state.
type displaced struct {
	waits    bool          // it must be looked at
	sequence uint64        // of the first message that displaces it and has not been looked at; 0 if none
	due      time.Time     // not before then
	pause    time.Duration // after the last repetition; 0 before the first
	lacks    bool          // its true state is not in the stream any more, as of the last look
}

func newRestorer(p *Projector) *restorer {
	r := &restorer{p: p, wake: make(chan struct{}, 1), subjects: map[string]*displaced{}}
	if at := p.cfg.Saved; at.Restored < at.Sequence {
		r.unread, r.to = at.Restored+1, at.Sequence
	}
	return r
}

// restored returns the last sequence up to which every subject has been looked at, at most
// checkpoint.
func (r *restorer) restored(checkpoint uint64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to > 0 {
		checkpoint = min(checkpoint, r.unread-1)
	}
	for _, d := range r.subjects {
		if d.sequence > 0 { // a look at it may be under way
			checkpoint = min(checkpoint, d.sequence-1)
		}
	}
	return checkpoint
}

// add schedules a look at a subject, because of a message. It does not wait. Any goroutine may call
// it.
func (r *restorer) add(subject string, sequence uint64) {
	if r.p.cfg.ReadOnly {
		return
	}
	r.mu.Lock()
	d := r.subjects[subject]
	if d == nil && len(r.subjects) < maxDisplaced {
		d = &displaced{}
		r.subjects[subject] = d
	}
	if d != nil {
		d.waits, d.sequence = true, cmp.Or(d.sequence, sequence)
	}
	r.mu.Unlock()
	wake(r.wake)
}

// run looks at waiting subjects until ctx ends.
func (r *restorer) run(ctx context.Context) {
	repeat(ctx, r.p.log, "a state that other messages have displaced cannot be published again; retrying", r.p.cfg.RetryEvery, r.wake, r.wake, r.step)
}

// step looks at some waiting subjects. It returns the wait until the next step, or 0 if none waits.
func (r *restorer) step(ctx context.Context) (time.Duration, error) {
	now := r.p.Progress()
	ready := now.CaughtUp && now.Compared && !now.Frozen()
	if ready {
		if err := r.read(ctx); err != nil {
			return 0, err
		}
	}
	some, wait := r.next(time.Now())
	if len(some) == 0 {
		return wait, nil
	}
	if !ready || r.p.VerifyStream(ctx) != nil { // reported elsewhere
		for _, subject := range some {
			r.looked(subject, false, errNotYet)
		}
		return r.p.cfg.RetryEvery, nil
	}
	_, _, err := each(some, func(subject string) error {
		again, err := r.restore(ctx, subject)
		r.looked(subject, again, err)
		if errors.Is(err, errNotYet) {
			return nil
		}
		return err
	})
	return time.Millisecond, err
}

// next returns some of the subjects that are due, to be looked at, and the wait until the next
// one is, or 0. It forgets those that have been quiet for longer than their pause.
func (r *restorer) next(now time.Time) (some []string, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to > 0 { // it was not ready to read
		wait = r.p.cfg.RetryEvery
	}
	for subject, d := range r.subjects {
		switch {
		case d.sequence == 0 && now.Sub(d.due) >= d.pause:
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

// looked records what a look at a subject has led to.
func (r *restorer) looked(subject string, again bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.subjects[subject]
	switch now := time.Now(); {
	case errors.Is(err, errLacking):
		d.waits, d.due, d.lacks = true, now.Add(lacksFor), true
	case errors.Is(err, errRewound):
		d.waits, d.due = true, now.Add(lacksFor)
	case errors.Is(err, errNotYet):
		d.waits, d.due = true, now.Add(r.p.cfg.SaveEvery)
	case err != nil:
		d.waits, d.due = true, now.Add(r.p.cfg.RetryEvery)
	case again:
		d.pause = min(max(firstPause, 2*d.pause), lastPause)
		d.due = now.Add(d.pause)
	}
	if !d.waits { // nothing came during the look
		d.sequence = 0
	}
}

var (
	// errNotYet is no failure: the store does not have the subject's last message yet.
	errNotYet = errors.New("not looked at yet")

	// errRewound is no failure: registry recover comes first.
	errRewound = fmt.Errorf("%w: on a rewound stream", errNotYet)

	// errLacking is no failure: the stream lacks the state, and another server may publish it.
	errLacking = fmt.Errorf("%w: not by this server", errNotYet)
)

// restore publishes the true state of a subject, if its last message is another one, and reports
// whether it has.
func (r *restorer) restore(ctx context.Context, subject string) (again bool, err error) {
	if subject == events.HistorySubject {
		return r.restoreMarker(ctx)
	}
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
	case !r.p.saver.has(k, last.Sequence):
		return false, errNotYet
	}
	state, ok, err := r.p.cfg.Store.State(k)
	if err != nil || !ok {
		return false, err
	}
	if e, err := last.Event(); err == nil && events.Compare(e.Data, state.Data) >= 0 {
		return false, nil
	}
	rewound := r.p.Progress().Rewound
	if rewound || !r.p.cfg.Erase() || r.p.origin.Load() != nil {
		if err := r.lacks(ctx, k, state.Sequence); err != nil || !rewound {
			return false, err
		}
		return false, errRewound
	}
	payload, err := events.Encode(events.StateEvent(state.Data))
	if err != nil {
		return false, err
	}
	return r.publish(ctx, subject, k.Masked(), payload, events.Revision(state.Data), last.Sequence)
}

// restoreMarker does the same for the newest marker of a history. A stream that has lost it is given
// one with the same name, which follows what this server's states belong to.
func (r *restorer) restoreMarker(ctx context.Context) (again bool, err error) {
	if !r.p.cfg.Markers || !r.p.cfg.Erase() || r.p.origin.Load() != nil {
		return false, nil
	}
	at := r.p.Checkpoint()
	marker, last, err := lineage.Newest(ctx, r.p.stream, math.MaxUint64)
	lost := marker.Revision < at.HistoryRevision
	switch {
	case err != nil || !lost && marker.Sequence == last:
		return false, err
	case at.Rewound:
		return false, errRewound
	case lost:
		marker.History = events.History{Name: at.History, Kind: events.HistoryFork, Revision: at.HistoryRevision}
		for _, name := range at.Histories {
			if name != at.History && events.IsHistoryName(name) {
				marker.Follows, marker.Kind = append(marker.Follows, name), events.HistoryNew
			}
		}
	}
	if marker.Revision == 0 {
		return false, nil // there never was one
	}
	payload, err := events.EncodeHistory(marker.History)
	if err != nil {
		return false, err
	}
	return r.publish(ctx, events.HistorySubject, events.HistorySubject, payload, marker.Revision, last)
}

// lacks looks, for a server that may not publish a state again, whether the stream still has it. If
// it has not at a second look, the session is told.
func (r *restorer) lacks(ctx context.Context, k events.Subject, sequence uint64) error {
	if sequence == 0 {
		return nil // told before
	}
	_, err := r.p.stream.Message(ctx, sequence)
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	r.mu.Lock()
	d := r.subjects[k.String()]
	again := d != nil && d.lacks
	r.mu.Unlock()
	if !again {
		return errLacking
	}
	return r.p.tellLost(ctx, []events.Subject{k})
}

// read looks for displacing messages that an earlier process did not look at.
func (r *restorer) read(ctx context.Context) error {
	r.mu.Lock()
	from, to := r.unread, r.to
	r.mu.Unlock()
	if to == 0 {
		return nil
	}
	err := r.p.stream.ReadAfter(ctx, "registry projector", from-1, func(m leader.Message) {
		if m.Subject == events.HistorySubject && m.Sequence <= to {
			r.add(m.Subject, m.Sequence)
		}
		k, err := events.ParseSubject(m.Subject)
		if err != nil || m.Sequence > to {
			return
		}
		e, err := m.Event()
		displaces := err != nil
		if err == nil {
			r.p.Inspect(func(model *readmodel.Model) { displaces = model.Known(k) > events.Revision(e.Data) })
		}
		if displaces {
			r.add(m.Subject, m.Sequence)
		}
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.unread, r.to = 0, 0
	r.mu.Unlock()
	return nil
}

// publish publishes an event as registry export writes it, if after is still the sequence of the
// subject's last message. It has no Nats-Msg-Id, since the broker would take the second repetition
// within two minutes for a duplicate.
func (r *restorer) publish(ctx context.Context, subject, masked string, payload []byte, revision int64, after uint64) (again bool, err error) {
	_, err = r.p.stream.PublishAfter(ctx, subject, payload, "", after)
	switch {
	case natserr.IsConflict(err):
		return false, errNotYet // another server was faster, or there is news
	case err != nil:
		return false, err
	}
	r.p.tracker.update(func(s *Progress) { s.PutBack++ })
	r.p.log.Info("superseded or rejected messages came after the true state of a subject; published it again",
		"subject", masked, "revision", revision, "after", after)
	return true, nil
}
