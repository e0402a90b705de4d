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

// offerFor is how long watch offers an erasure to a busy session. It offers it again later.
const offerFor = 100 * time.Millisecond

// A message of the stream is overdue if a waiting session has not received it in this time. Each
// further session that does not receive it doubles the time, so that a slow link suffices.
const (
	deliverWithin    = time.Second
	maxDeliverWithin = 32 * time.Second
)

// watcher is the state of watch.
type watcher struct {
	*Projector
	followed       time.Time // when the stream was last followed, or when watching began
	verified       time.Time // when the checkpoint's message was last checked, or when watching began
	lastCheckpoint uint64    // the checkpoint at the last poll
	away           bool      // the broker did not answer the last poll

	overdue overdue
	patient time.Duration // how long a message may be overdue
	loss    loss
	scans   sync.WaitGroup
	lost    uint64 // the message that caused a new session; 0 if there is none, or it has arrived
}

// overdue is a message of the stream that the session has not received, although nothing prevents
// it.
type overdue struct {
	sequence uint64
	receiver *receiver
	received uint64 // the last message that the session received
	since    time.Time
}

// watch polls the broker, every PollEvery and on request, for the stream's length. It decides
// nothing about the stream's identity: in doubt it restarts the session.
func (p *Projector) watch(ctx context.Context) {
	w := &watcher{Projector: p, followed: time.Now(), verified: time.Now(), lastCheckpoint: p.Checkpoint().Sequence, patient: deliverWithin}
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
			w.lastCheckpoint = p.Checkpoint().Sequence
		}
	}
}

func (w *watcher) pollStream(ctx context.Context) {
	at, view, asked := w.Checkpoint(), w.cfg.Model.View(), time.Now() // before the request: the reply is at least this recent
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
		w.compareSubjects(ctx, info, view)
		w.compareConfig(info)
	case at.StreamEpoch != "":
		w.recheck(err)
	}
	if !w.cfg.ReadOnly { // it copies nothing, and its user may lack the right
		w.rejecter.count(ctx)
	}
}

// compareConfig warns the operator of settings that were changed since the start, before they lose
// something.
func (w *watcher) compareConfig(info *jetstream.StreamInfo) {
	sentence := ""
	if err := w.refuse(info); err != nil && w.receiving.Load() != nil {
		sentence = "The next start will refuse the stream: " + err.Error() + "."
	}
	if w.tracker.setTrouble(troubleConfig, sentence) && sentence != "" {
		w.log.Error("the stream's configuration would lose events", "reason", sentence)
	}
}

// noAnswer reports to the operator that the broker does not answer.
func (w *watcher) noAnswer(err error) {
	if last := w.js.Conn().LastError(); errors.Is(err, leader.ErrNotConnected) && last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	what := unanswered(err)
	if !w.away { // logged first: a client that sees the sentence finds the line
		w.log.Warn(what+"; "+w.meanwhile(), "error", err)
	}
	w.away = true
	w.tracker.setTrouble(troubleBroker, "The "+what+": "+err.Error()+".", func(s *Progress) { s.Connected = false })
}

// mayServe reports whether a saved state has been withheld long enough. It is withheld while the
// stream is being followed, and otherwise for StartupTimeout, whatever the reason: the broker may
// answer about the stream and yet make no consumer.
func (w *watcher) mayServe() bool {
	if w.receiving.Load() != nil {
		w.followed = time.Now()
	}
	return w.cfg.Saved.Complete && w.cfg.Owed == nil && time.Since(w.followed) >= w.cfg.StartupTimeout && !w.Status().CaughtUp
}

// serveSaved serves the saved state. The caller must know of no problem with the stream's identity.
func (w *watcher) serveSaved() {
	if !w.mayServe() {
		return
	}
	w.tracker.update(func(s *Progress) { s.CaughtUp = true })
	w.log.Warn("serving the saved state; the stream is not being followed", "checkpoint", w.cfg.Saved.Sequence)
}

// unanswered distinguishes a broker that cannot be reached from one that does not answer about the
// stream.
func unanswered(err error) string {
	for _, reached := range []error{natserr.ErrNoJetStream, natserr.ErrSilent, natserr.ErrRefused, leader.ErrLeaderless} {
		if errors.Is(err, reached) {
			return "broker does not answer about the stream"
		}
	}
	return "broker cannot be reached"
}

// meanwhile returns the sentence on what clients get while the broker is away.
func (w *watcher) meanwhile() string {
	switch {
	case w.Progress().CaughtUp:
		return "the last state is served"
	case w.cfg.Saved.Complete:
		return "the saved state will be served if it stays so"
	}
	return "nothing is saved, so nothing is served until it answers"
}

// answer records that the broker answers.
func (w *watcher) answer() {
	if w.away {
		w.log.Info("broker reached again")
	}
	w.away = false
	w.tracker.setTrouble(troubleBroker, "", func(s *Progress) { s.Connected = true })
}

// compare updates the state from the stream's info: lag, completeness, identity, an erased end, a
// lost delivery.
func (w *watcher) compare(ctx context.Context, info *jetstream.StreamInfo, at readmodel.Checkpoint, asked time.Time) {
	last := info.State.LastSeq
	w.tracker.update(func(s *Progress) { s.PeersMissing = peersMissing(info) })
	if id := lineage.Of(info); last < at.Sequence || at.StreamEpoch != "" && !lineage.Same(id, at.StreamIdentity) {
		w.tracker.update(func(s *Progress) { s.LastSequence = last })
		w.recheck(errChanged)
		return
	}
	w.tracker.update(func(s *Progress) { s.LastSequence = max(last, s.Checkpoint) })
	if !w.Status().Frozen && info.Config.Mirror == nil { // only the origin knows where a mirror's stream ends
		w.tracker.ended(last, asked)
	}
	if time.Since(w.verified) >= w.cfg.VerifyEvery || w.mayServe() {
		w.verified = time.Now()
		err := check(ctx, w.stream, info, at)
		if errors.Is(err, errChanged) {
			w.recheck(err)
			return
		}
		w.unverified(err)
		w.serveSaved()
	}
	if w.lost > 0 && at.Sequence >= w.lost {
		w.arrived()
	}
	// Only a session takes an erasure. And if this user may make neither of two requests, each
	// would hide why the other gets no reply.
	if last > at.Sequence && at.Sequence == w.lastCheckpoint && w.receiving.Load() != nil {
		w.findNext(ctx, erasure{at.Sequence, last, asked})
	}
	w.lastCheckpoint = at.Sequence
}

// peersMissing returns how many of the stream's copies are missing or not current. A broker that was
// removed from the cluster is on no list of the stream's any more, so it is the sum that counts.
func peersMissing(info *jetstream.StreamInfo) int {
	if info.Cluster == nil {
		return 0
	}
	current := 1 // the leader
	for _, peer := range info.Cluster.Replicas {
		if peer.Current && !peer.Offline {
			current++
		}
	}
	return max(0, info.Config.Replicas-current)
}

// unverified reports to the operator why the stream cannot be compared with what was read, if so:
// nothing is erased meanwhile.
func (w *watcher) unverified(err error) {
	sentence := ""
	if err != nil {
		sentence = "The stream cannot be compared with what was read: " + err.Error() + "."
	}
	if w.tracker.setTrouble(troubleVerify, sentence) && err != nil {
		w.log.Warn("the stream cannot be compared with what was read", "error", err)
	}
}

// findNext reads what follows the checkpoint, which lies before the stream's end: a message, which
// may be overdue, or nothing, which is an erasure. The end was read before, so a message published
// since is either found or lies after that end.
func (w *watcher) findNext(ctx context.Context, e erasure) {
	next, err := w.stream.NextMessage(ctx, e.from+1, ">")
	switch {
	case err == nil:
		w.checkDelivery(next.Sequence)
	case errors.Is(err, jetstream.ErrMsgNotFound):
		w.arrived()
		w.offer(ctx, e)
	}
}

// checkDelivery restarts the session if the message at sequence, which is in the stream, is overdue. The
// next delivery would reveal a lost one, but on an idle stream none follows. A received message
// only waits to be applied, and a message behind the bound of PauseAt is not missing.
func (w *watcher) checkDelivery(sequence uint64) {
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
	w.recheck(fmt.Errorf("%w: that of message %d, which the stream has", leader.ErrGap, sequence))
	w.overdue, w.lost, w.patient = overdue{}, sequence, min(2*w.patient, maxDeliverWithin)
}

// arrived records that no message is overdue.
func (w *watcher) arrived() {
	w.overdue, w.lost, w.patient = overdue{}, 0, deliverWithin
	w.tracker.setTrouble(troubleDelivery, "")
}

// offer offers an erasure to the session.
func (w *watcher) offer(ctx context.Context, e erasure) {
	timer := time.NewTimer(offerFor)
	defer timer.Stop()
	select {
	case w.erased <- e:
	case <-timer.C:
	case <-ctx.Done():
	}
}
