package projector

import (
	"context"
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

// freeze reports that the stream is none to go on with, and waits before the next session looks
// again. Only the second look reports it: a broker that restarts may deny its stream for a moment.
func (p *Projector) freeze(ctx context.Context, why *frozenError) {
	if !p.denied {
		p.denied = true
		pause.For(ctx, p.cfg.RetryEvery)
		return
	}
	if p.Progress().FrozenBy != why.by {
		p.log.Error("frozen: the last good state is served, nothing is applied", "reason", why.sentence, "checkpoint", p.Checkpoint().Sequence)
		p.tracker.setTrouble(troubleFrozen, why.sentence, func(s *Progress) {
			s.FrozenBy = why.by
			s.CaughtUp = s.CaughtUp || p.complete()
		})
	}
	pause.For(ctx, p.cfg.PollEvery)
}

// thaw reports that the stream is one to go on with, once it is known from where.
func (p *Projector) thaw() {
	p.denied = false
	if p.Progress().FrozenBy != "" {
		p.tracker.setTrouble(troubleFrozen, "", func(s *Progress) { s.FrozenBy = "" })
		p.log.Info("thawed: the stream is one to go on with", "checkpoint", p.Checkpoint().Sequence)
	}
}
