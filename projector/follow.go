package projector

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"example.org/registry/events"
)

// Sessions that fail at once are tried again after firstWait, then after twice that, up to
// Config.RetryEvery.
const firstWait = 50 * time.Millisecond

// follow makes session after session until ctx ends or the operator must do something.
func (p *Projector) follow(ctx context.Context) error {
	wait := firstWait
	for ctx.Err() == nil {
		began := time.Now()
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
			p.freeze(ctx, cannotBeUsed(bad))
		case errors.As(err, &other):
			p.suspect(ctx, other)
		case p.cfg.ReadOnly && errors.Is(err, events.ErrRefused):
			return err // nobody waits for a replay until the broker's configuration is changed
		default:
			if established {
				wait = firstWait
			}
			p.lost(err, established)
			pause(ctx, wait-time.Since(began)) // a question that was not answered has been wait enough
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
