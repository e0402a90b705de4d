package projector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/natserr"
	"example.org/registry/projector/leader"
	"example.org/registry/readmodel"
)

// offerFor is how long watch offers an erasure to a session that is busy. It comes back to it later.
const offerFor = 100 * time.Millisecond

// watcher is the state of watch.
type watcher struct {
	*Projector
	answered time.Time // when the broker last did, or when watching began
	verified time.Time // when the checkpoint's message was last looked at, or when watching began
	stood    uint64    // the checkpoint at the poll before
	away     bool      // the broker did not answer the poll before
}

// watch asks the broker, every PollEvery and when told to, how long the stream is. It decides nothing about the stream's
// identity: when in doubt it makes the session begin anew.
func (p *Projector) watch(ctx context.Context) {
	w := &watcher{Projector: p, answered: time.Now(), verified: time.Now(), stood: p.checkpoint().Sequence}
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
	at, asked := w.checkpoint(), time.Now() // before the request: the answer shows at least this moment
	info, err := w.stream.Info(ctx)
	missing := errors.Is(err, jetstream.ErrStreamNotFound)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && !missing:
		w.noAnswer(err)
		return
	}
	w.answer(ctx, asked)
	switch {
	case !missing:
		w.compare(ctx, info, at, asked)
	case at.StreamEpoch != "":
		w.recheck(err)
	}
}

// noAnswer tells the operator that the broker does not answer, and lets a saved state be served in the end.
func (w *watcher) noAnswer(err error) {
	if last := w.js.Conn().LastError(); errors.Is(err, leader.ErrNotConnected) && last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	what := unanswered(err)
	w.tracker.setTrouble(troubleBroker, "The "+what+": "+err.Error()+".")
	if !w.away {
		w.log.Warn(what+"; "+w.meanwhile(), "error", err)
	}
	w.away = true
	serve := w.cfg.Saved.Sequence > 0 && time.Since(w.answered) >= w.cfg.PatienceAtStart
	w.tracker.update(func(s *Progress) {
		s.Connected = false
		serve = serve && !s.CaughtUp
		s.CaughtUp = s.CaughtUp || serve
	})
	if serve {
		w.log.Warn("serving the saved state without the broker", "checkpoint", w.cfg.Saved.Sequence)
	}
}

// unanswered tells a broker that cannot be reached from one that is reached and does not answer about the stream.
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

// answer notes that the broker answers, and has the copies of rejected events counted.
func (w *watcher) answer(ctx context.Context, asked time.Time) {
	w.answered = asked
	w.tracker.setTrouble(troubleBroker, "")
	if w.away {
		w.log.Info("broker reached again")
	}
	w.away = false
	w.tracker.update(func(s *Progress) { s.Connected = true })
	if !w.cfg.ReadOnly { // it copies nothing, and its user may not be allowed to look
		w.rejecter.count(ctx)
	}
}

// compare draws the conclusions from the stream's state: lag, completeness, identity, an erased tail.
func (w *watcher) compare(ctx context.Context, info *jetstream.StreamInfo, at readmodel.Checkpoint, asked time.Time) {
	last := info.State.LastSeq
	if err := leader.Compare(info, at); err != nil {
		w.tracker.update(func(s *Progress) { s.LastSequence = last })
		w.recheck(err)
		return
	}
	w.tracker.update(func(s *Progress) {
		s.LastSequence = max(last, s.Checkpoint)
		if last <= at.Sequence && asked.After(s.AsOf) && !s.Frozen {
			s.AsOf = asked
		}
	})
	if time.Since(w.verified) >= w.cfg.VerifyEvery {
		w.verified = time.Now()
		var identity *leader.IdentityError
		if err := w.stream.CompareMessage(ctx, info, at); errors.As(err, &identity) {
			w.recheck(err)
			return
		}
	}
	// Without a session nobody takes an erasure; and of two requests that this user may not make, each would hide from the
	// other why it gets no answer.
	if last > at.Sequence && at.Sequence == w.stood && w.following.Load() {
		w.findErased(ctx, erasure{at.Sequence, last, asked})
	}
	w.stood = at.Sequence
}

// findErased offers the session an erasure, if the stream holds nothing after the checkpoint. The stream's end was read
// before: what is published since is either found now or lies after that end.
func (w *watcher) findErased(ctx context.Context, e erasure) {
	_, err := w.stream.NextMessage(ctx, e.from+1, ">")
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return
	}
	timer := time.NewTimer(offerFor)
	defer timer.Stop()
	select {
	case w.erased <- e:
	case <-timer.C:
	case <-ctx.Done():
	}
}
