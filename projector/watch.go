package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

// offerFor is how long watch offers an erasure to a session that is busy. It comes back to it
// later.
const offerFor = 100 * time.Millisecond

// A message that the stream has may be so long on its way to a session that waits for it. Where the
// way is slow, and the message comes no sooner to the next session, that one waits twice as long.
const (
	deliverWithin    = time.Second
	maxDeliverWithin = 32 * time.Second
)

// watcher is the state of watch.
type watcher struct {
	*Projector
	followed time.Time // when the stream was last being followed, or when watching began
	verified time.Time // when the checkpoint's message was last looked at, or when watching began
	stood    uint64    // the checkpoint at the poll before
	away     bool      // the broker did not answer the poll before

	overdue overdue
	patient time.Duration // how long a message may be overdue
	loss    loss
	scans   sync.WaitGroup
	lost    uint64 // the message for which a session was begun; 0: none, or it has come
}

// overdue is a message that the stream has and the session has not received, though nothing keeps
// it from receiving.
type overdue struct {
	sequence uint64
	receiver *receiver
	received uint64 // the last message that it received
	since    time.Time
}

// watch asks the broker, every PollEvery and when told to, how long the stream is. It decides
// nothing about the stream's identity: when in doubt it makes the session begin again.
func (p *Projector) watch(ctx context.Context) {
	w := &watcher{Projector: p, followed: time.Now(), verified: time.Now(), stood: p.checkpoint().Sequence, patient: deliverWithin}
	defer w.scans.Wait()
	ticker := time.NewTicker(p.cfg.PollEvery)
	defer ticker.Stop()
	for {
		w.pollStream(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-p.poll:
			w.stood = p.checkpoint().Sequence
		}
	}
}

func (w *watcher) pollStream(ctx context.Context) {
	at, subjects, asked := w.checkpoint(), w.cfg.Model.View().NumSubjects(), time.Now() // before the request: the answer shows at least this moment
	info, err := w.stream.Info(ctx)
	missing := errors.Is(err, jetstream.ErrStreamNotFound)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && !missing:
		w.noAnswer(err)
		w.serveSaved()
		return
	}
	w.answer()
	switch {
	case !missing:
		w.compare(ctx, info, at, asked)
		w.compareSubjects(ctx, info, subjects)
		w.compareConfig(info)
	case at.StreamEpoch != "":
		w.recheck(err)
	}
	if !w.cfg.ReadOnly { // it copies nothing, and its user may not be allowed to look
		w.rejecter.count(ctx)
	}
}

// compareConfig tells the operator of settings that were changed since the start, before they lose
// something.
func (w *watcher) compareConfig(info *jetstream.StreamInfo) {
	sentence := ""
	if err := w.refuse(info); err != nil && !w.Status().Frozen && lineage.Compare(info, w.checkpoint()) == nil {
		sentence = "The next start will refuse the stream: " + err.Error() + "."
	}
	if w.tracker.setTrouble(troubleConfig, sentence) && sentence != "" {
		w.log.Error("the stream's configuration would lose events", "reason", sentence)
	}
}

// noAnswer tells the operator that the broker does not answer.
func (w *watcher) noAnswer(err error) {
	if last := w.js.Conn().LastError(); errors.Is(err, leader.ErrNotConnected) && last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	what := unanswered(err)
	if !w.away { // logged first: then a reader of the sentence finds the line
		w.log.Warn(what+"; "+w.meanwhile(), "error", err)
	}
	w.tracker.setTrouble(troubleBroker, "The "+what+": "+err.Error()+".")
	w.away = true
	w.tracker.update(func(s *Progress) { s.Connected = false })
}

// mayServe reports whether a saved state has been held back long enough. It is held back while the
// stream is being followed, and for PatienceAtStart while it is not, whatever the reason: the
// broker may answer about the stream and yet make no consumer.
func (w *watcher) mayServe() bool {
	if w.receiving.Load() != nil {
		w.followed = time.Now()
	}
	return w.cfg.Saved.Sequence > 0 && time.Since(w.followed) >= w.cfg.PatienceAtStart && !w.Status().CaughtUp
}

// serveSaved lets the saved state be served in the end. The caller knows nothing against the
// stream.
func (w *watcher) serveSaved() {
	if !w.mayServe() {
		return
	}
	w.tracker.update(func(s *Progress) { s.CaughtUp = true })
	w.log.Warn("serving the saved state; the stream is not being followed", "checkpoint", w.cfg.Saved.Sequence)
}

// unanswered tells a broker that cannot be reached from one that is reached and does not answer
// about the stream.
func unanswered(err error) string {
	for _, reached := range []error{natserr.ErrNoJetStream, natserr.ErrSilent, natserr.ErrRefused, leader.ErrLeaderless} {
		if errors.Is(err, reached) {
			return "broker does not answer about the stream"
		}
	}
	return "broker cannot be reached"
}

// meanwhile is what readers get while the broker is away.
func (w *watcher) meanwhile() string {
	switch {
	case w.Progress().CaughtUp:
		return "the last state is served"
	case w.cfg.Saved.Sequence > 0:
		return "the saved state will be served if it stays so"
	}
	return "nothing is saved, so nothing is served until it answers"
}

// answer notes that the broker answers.
func (w *watcher) answer() {
	w.tracker.setTrouble(troubleBroker, "")
	if w.away {
		w.log.Info("broker reached again")
	}
	w.away = false
	w.tracker.update(func(s *Progress) { s.Connected = true })
}

// compare draws the conclusions from the stream's state: lag, completeness, identity, an erased
// tail, a lost delivery.
func (w *watcher) compare(ctx context.Context, info *jetstream.StreamInfo, at readmodel.Checkpoint, asked time.Time) {
	last := info.State.LastSeq
	if err := lineage.Compare(info, at); err != nil {
		w.tracker.update(func(s *Progress) { s.LastSequence = last })
		w.recheck(err)
		return
	}
	w.tracker.update(func(s *Progress) { s.LastSequence = max(last, s.Checkpoint) })
	if !w.Status().Frozen && info.Config.Mirror == nil { // where a mirror's stream ends only its origin knows
		w.tracker.ended(last, asked)
	}
	if time.Since(w.verified) >= w.cfg.VerifyEvery || w.mayServe() {
		w.verified = time.Now()
		var identity *lineage.Error
		if err := lineage.CompareMessage(ctx, w.stream, info, at); errors.As(err, &identity) {
			w.recheck(err)
			return
		}
		w.serveSaved()
	}
	if w.lost > 0 && at.Sequence >= w.lost {
		w.arrived()
	}
	// Without a session nobody takes an erasure; and of two requests that this user may not make,
	// each would hide from the other why it gets no answer.
	if last > at.Sequence && at.Sequence == w.stood && w.receiving.Load() != nil {
		w.findNext(ctx, erasure{at.Sequence, last, asked})
	}
	w.stood = at.Sequence
}

// findNext looks at what follows the checkpoint, which stands before the stream's end: a message,
// which may be overdue, or nothing, which is an erasure. The stream's end was read before: what is
// published since is either found now or lies after that end.
func (w *watcher) findNext(ctx context.Context, e erasure) {
	next, err := w.stream.NextMessage(ctx, e.from+1, ">")
	switch {
	case err == nil:
		w.expect(next.Sequence)
	case errors.Is(err, jetstream.ErrMsgNotFound):
		w.arrived()
		w.offer(ctx, e)
	}
}

// expect has a new session begun when the message at sequence, which the stream has, has not come
// for too long. A lost delivery leaves a gap that the next one shows; but on a quiet stream none
// comes. What has been received only waits to be applied, and behind the bound of a Hold nothing is
// missed.
func (w *watcher) expect(sequence uint64) {
	r := w.receiving.Load()
	if r == nil || sequence <= r.received.Load() || sequence > w.bound.limit.Load() {
		w.overdue = overdue{}
		return
	}
	now := overdue{sequence, r, r.received.Load(), w.overdue.since}
	if now != w.overdue {
		now.since = time.Now()
		w.overdue = now
		return
	}
	if time.Since(now.since) < w.patient {
		return
	}
	w.tracker.setTrouble(troubleDelivery, fmt.Sprintf("The broker has message %d and has not delivered it.", sequence))
	w.recheck(fmt.Errorf("%w: that of message %d, which the stream has", errGap, sequence))
	w.overdue, w.lost, w.patient = overdue{}, sequence, min(2*w.patient, maxDeliverWithin)
}

// arrived notes that no message is overdue.
func (w *watcher) arrived() {
	w.overdue, w.lost, w.patient = overdue{}, 0, deliverWithin
	w.tracker.setTrouble(troubleDelivery, "")
}

// offer offers the session an erasure.
func (w *watcher) offer(ctx context.Context, e erasure) {
	timer := time.NewTimer(offerFor)
	defer timer.Stop()
	select {
	case w.erased <- e:
	case <-timer.C:
	case <-ctx.Done():
	}
}
