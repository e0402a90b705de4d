package projector

import (
	"context"
	"errors"
	"fmt"

	"example.org/registry/events/pause"
)

// frozenError means that nothing can be applied: the stream is missing, or it is another registry's
// (events/CONTRACT.md#histories).
type frozenError struct {
	by       string // FrozenMissing or FrozenForeign
	sentence string // for the operator
}

func (e *frozenError) Error() string { return e.sentence }

// The reasons of a freeze.
const (
	FrozenMissing = "missing"
	FrozenForeign = "foreign"
)

func missing(what string) error {
	return &frozenError{FrozenMissing, what + "; what was read before is served and nothing is applied. " +
		"It goes on by itself once the stream is back, or after registry recover --create-stream."}
}

func foreign(what, its, ours string) error {
	return &frozenError{FrozenForeign, fmt.Sprintf("%s is another registry's: its history is %.64s, and not %.64s; what was read "+
		"before is served and nothing is applied. Correct --nats-url or --stream.", what, its, ours)}
}

// freeze applies nothing until the stream is one to go on with, or until ctx ends. Only the second
// of two looks freezes: a broker that restarts may deny its stream for a moment.
func (p *Projector) freeze(ctx context.Context, why *frozenError) {
	shown := ""
	defer func() {
		p.tracker.setTrouble(troubleFrozen, "")
		p.tracker.update(func(s *Progress) { s.FrozenBy = "" })
		if shown != "" && ctx.Err() == nil {
			p.log.Info("thawed: the stream is one to go on with", "checkpoint", p.checkpoint().Sequence)
		}
	}()
	for wait := p.cfg.RetryEvery; pause.For(ctx, wait); wait = p.cfg.PollEvery {
		err := p.lookAgain(ctx)
		if err == nil {
			return
		}
		if !errors.As(err, &why) || why.by == shown {
			continue
		}
		shown = why.by
		p.log.Error("frozen: the last good state is served, nothing is applied", "reason", why.sentence, "checkpoint", p.checkpoint().Sequence)
		p.tracker.setTrouble(troubleFrozen, why.sentence)
		p.tracker.update(func(s *Progress) {
			s.FrozenBy = why.by
			s.CaughtUp = s.CaughtUp || p.complete()
		})
	}
}

// lookAgain returns why the stream is still none to go on with.
func (p *Projector) lookAgain(ctx context.Context) error {
	info, err := p.ensureStream(ctx)
	if err != nil {
		return err
	}
	return p.known(ctx, info)
}
