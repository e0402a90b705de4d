package projector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// watcher is the state of watch.
type watcher struct {
	*Projector
	answered time.Time // when the broker last did, or when watching began
	verified time.Time
	stood    uint64 // the checkpoint at the poll before
	gone     bool   // the broker did not answer the poll before
}

// watch asks the broker, every PollEvery and when asked to look, how long the stream is. It
// decides nothing about identity: when in doubt it makes the session begin anew.
func (p *Projector) watch(ctx context.Context) {
	w := &watcher{Projector: p, answered: time.Now(), verified: time.Now(), stood: p.checkpoint().Sequence}
	timer := time.NewTicker(p.cfg.PollEvery)
	defer timer.Stop()
	for {
		w.poll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.kick:
			w.stood = p.checkpoint().Sequence
		}
	}
}

func (w *watcher) poll(ctx context.Context) {
	at, asked := w.checkpoint(), time.Now() // before the question: what it shows is at least this
	info, err := StreamInfo(ctx, w.js, w.cfg.Stream)
	if ctx.Err() != nil {
		return
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		w.away(err)
		return
	}
	w.answered = asked
	w.reached(ctx)
	if err != nil {
		if at.Stream.Epoch != "" {
			w.disbelieve(err)
		}
		return
	}
	w.compare(ctx, info, at, asked)
}

// away says that the broker does not answer, and lets a saved state be served in the end.
func (w *watcher) away(err error) {
	if last := w.cfg.Conn.LastError(); errors.Is(err, errAway) && last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	what := unanswered(err)
	w.status.say(troubleBroker, "The "+what+": "+err.Error()+".")
	if !w.gone {
		w.log.Warn(what+"; "+w.meanwhile(), "error", err)
	}
	w.gone = true
	serve := w.cfg.Saved.Sequence > 0 && time.Since(w.answered) >= w.cfg.PatienceAtStart
	w.status.update(func(s *Progress) {
		s.Connected = false
		serve = serve && !s.CaughtUp
		s.CaughtUp = s.CaughtUp || serve
	})
	if serve {
		w.log.Warn("serving the saved state without the broker", "checkpoint", w.cfg.Saved.Sequence)
	}
}

// unanswered tells a broker that cannot be reached from one that is, and does not answer about the stream.
func unanswered(err error) string {
	if errors.Is(err, ErrNoJetStream) || errors.Is(err, ErrSilent) || errors.Is(err, ErrLeaderless) || errors.Is(err, events.ErrRefused) {
		return "broker does not answer about the stream"
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

// reached says that the broker answers, and has the copies of rejected events counted.
func (w *watcher) reached(ctx context.Context) {
	w.status.say(troubleBroker, "")
	if w.gone {
		w.log.Info("broker reached again")
	}
	w.gone = false
	w.status.update(func(s *Progress) { s.Connected = true })
	if !w.cfg.ReadOnly { // it copies nothing, and its user may not be allowed to look
		w.rejecter.count(ctx)
	}
}

// compare draws the conclusions from the stream's state: lag, completeness, identity, an erased tail.
func (w *watcher) compare(ctx context.Context, info *jetstream.StreamInfo, at readmodel.Checkpoint, asked time.Time) {
	if err := compare(info, at); err != nil {
		w.status.update(func(s *Progress) { s.LastSequence = info.State.LastSeq })
		w.disbelieve(err)
		return
	}
	last := info.State.LastSeq
	w.status.update(func(s *Progress) {
		s.LastSequence = max(last, s.Checkpoint)
		if last <= at.Sequence && asked.After(s.AsOf) && !s.Frozen {
			s.AsOf = asked
		}
	})
	if time.Since(w.verified) >= w.cfg.VerifyEvery {
		w.verified = time.Now()
		var other notOurs
		if err := w.compareMessage(ctx, at, info); errors.As(err, &other) {
			w.disbelieve(err)
			return
		}
	}
	if last > at.Sequence && at.Sequence == w.stood {
		w.lookBehind(ctx, at.Sequence, last, asked)
	}
	w.stood = at.Sequence
}

// disbelieve makes the session begin anew, which verifies the stream first.
func (p *Projector) disbelieve(err error) {
	select {
	case p.doubt <- fmt.Errorf("to be verified again: %s", err): // not wrapped: the session decides
	default:
	}
}
