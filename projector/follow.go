package projector

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Sessions that fail at once are tried again after firstWait, then after twice that, up to
// Config.RetryEvery.
const firstWait = 50 * time.Millisecond

// follow makes session after session until ctx ends or the operator must do something.
func (p *Projector) follow(ctx context.Context) error {
	wait := firstWait
	for ctx.Err() == nil {
		established, err := p.session(ctx)
		if ctx.Err() != nil {
			break
		}
		var bad unusable
		var other notOurs
		switch {
		case errors.As(err, &bad) && !p.Progress().CaughtUp:
			return bad.error
		case errors.As(err, &bad): // readers have a state: keep it rather than end the process
			p.freeze(ctx, notOurs{sentence: "The stream cannot be used: " + bad.Error() + "."})
		case errors.As(err, &other):
			p.suspect(ctx, other)
		default:
			if established {
				wait = firstWait
			}
			p.lost(err, established)
			pause(ctx, wait)
			wait = min(2*wait, p.cfg.RetryEvery)
		}
	}
	return nil
}

// lost says what ended a session; in the log, the first time after a good one.
func (p *Projector) lost(err error, established bool) {
	p.status.say(troubleSession, "The stream is not being followed: "+err.Error()+".")
	level := slog.LevelDebug
	if established || !p.began {
		level = slog.LevelWarn
	}
	p.began = true
	p.log.Log(context.Background(), level, "stream lost; following again as soon as it can be reached",
		"error", err, "checkpoint", p.checkpoint().Sequence)
}

// suspect freezes, except that a stream that looks shorter is looked at twice.
func (p *Projector) suspect(ctx context.Context, other notOurs) {
	if other.shorter {
		if !pause(ctx, p.cfg.RetryEvery) {
			return
		}
		if err := p.verify(ctx); !errors.As(err, &other) {
			return // ours, or no answer: the next session finds out
		}
	}
	p.freeze(ctx, other)
}

// freeze applies nothing until ctx ends or a stream that looked shorter is back.
func (p *Projector) freeze(ctx context.Context, why notOurs) {
	at := p.checkpoint()
	p.log.Error("frozen: the stream is not the one the read model was made from; the last good state is served, "+
		"nothing is applied", "reason", why.sentence, "checkpoint", at.Sequence, "epoch", at.Stream.Epoch)
	p.status.say(troubleFrozen, why.sentence+" Nothing is applied until registry rebuild --accept-stream.")
	p.status.update(func(s *Progress) {
		s.Frozen = true
		s.CaughtUp = s.CaughtUp || p.complete
	})
	for pause(ctx, p.cfg.RetryEvery) {
		if why.shorter && p.back(ctx) {
			break
		}
	}
	if ctx.Err() != nil {
		return
	}
	p.status.say(troubleFrozen, "")
	p.status.update(func(s *Progress) { s.Frozen = false })
	p.log.Info("thawed: the checkpoint's message is back unchanged", "checkpoint", at.Sequence)
}
