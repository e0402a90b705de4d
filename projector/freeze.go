package projector

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/pause"
	"example.org/registry/projector/lineage"
)

// recheckIdentity freezes, except that a stream that looks shorter is looked at twice.
func (p *Projector) recheckIdentity(ctx context.Context, why *lineage.Error) {
	if why.Kind == lineage.Shorter {
		if !pause.For(ctx, p.cfg.RetryEvery) {
			return
		}
		if err := p.VerifyStream(ctx); !errors.As(err, &why) {
			return // ours, or no answer: the next session finds out
		}
	}
	p.freeze(ctx, why)
}

// freeze applies nothing until ctx ends, or until a stream that only looked shorter is back. It
// keeps looking at the stream, so that what Progress says stays true.
func (p *Projector) freeze(ctx context.Context, why *lineage.Error) {
	at := p.checkpoint()
	p.log.Error("frozen: the stream is not the one the read model was made from; the last good state is served, "+
		"nothing is applied", "reason", why.Sentence, "checkpoint", at.Sequence, "epoch", at.StreamEpoch)
	thaws := why.MayRecover()
	p.setFrozenTrouble(why, thaws)
	p.tracker.update(func(s *Progress) {
		s.Frozen = true
		s.CaughtUp = s.CaughtUp || p.complete()
	})
	p.setUnconfirmed(ctx, true)
	for pause.For(ctx, p.cfg.PollEvery) {
		now, answered := p.lookAgain(ctx)
		if !answered {
			continue
		}
		if now == nil && thaws {
			break
		}
		if now == nil {
			now = &lineage.Error{Sentence: "The stream " + p.cfg.Stream + " looked wrong and looks right again."}
		}
		thaws = thaws && now.MayRecover() // once it was anything else, it did not only look shorter
		p.reasonChanged(why, now, thaws)
		why = now
	}
	if ctx.Err() != nil {
		return
	}
	p.setUnconfirmed(ctx, false)
	p.tracker.setTrouble(troubleFrozen, "")
	p.tracker.update(func(s *Progress) { s.Frozen = false })
	p.log.Info("thawed: the checkpoint's message is back unchanged", "checkpoint", at.Sequence)
}

// setUnconfirmed keeps, in the store too, whether the checkpoint's message must be seen again
// before anything is applied. A restart must not forget that the stream looked wrong: newer
// messages may have pushed that message out.
func (p *Projector) setUnconfirmed(ctx context.Context, unconfirmed bool) {
	at := p.checkpoint()
	if at.Sequence == 0 || at.Unconfirmed == unconfirmed {
		return
	}
	at.Unconfirmed = unconfirmed
	p.setCheckpoint(at)
	_ = p.save(ctx, nil) // its only error is that of ctx: the end
}

// setFrozenTrouble tells the operator every way out.
func (p *Projector) setFrozenTrouble(why *lineage.Error, thaws bool) {
	until := "until registry recover publishes what the stream lacks and has it accepted, or registry rebuild --accept-stream takes it as it is."
	if thaws {
		until = "until the stream is back as it was, which ends this by itself, or " + until
	}
	p.tracker.setTrouble(troubleFrozen, why.Sentence+" Nothing is applied "+until)
}

// reasonChanged tells the operator that the stream is not ours for another reason. It does not log
// a new length.
func (p *Projector) reasonChanged(before, now *lineage.Error, thaws bool) {
	if now.Sentence == before.Sentence {
		return
	}
	if now.Kind != lineage.Shorter || before.Kind != lineage.Shorter {
		p.log.Warn("still frozen, for another reason", "reason", now.Sentence, "before", before.Sentence,
			"checkpoint", p.checkpoint().Sequence)
	}
	p.setFrozenTrouble(now, thaws)
}

// lookAgain says what is wrong with the stream now: nil when nothing is, and the checkpoint's
// message is there, unchanged. answered is false when the broker did not answer.
func (p *Projector) lookAgain(ctx context.Context) (now *lineage.Error, answered bool) {
	err := p.VerifyStream(ctx)
	if err == nil {
		err = p.confirm(ctx)
	}
	var unusable *unusableError
	switch {
	case errors.As(err, &now):
		return now, true
	case errors.As(err, &unusable):
		return unusable.identity(), true
	}
	return nil, err == nil
}

// confirm looks at what VerifyStream takes on trust: the configuration, where it has not been
// accepted, and that the checkpoint has a message.
func (p *Projector) confirm(ctx context.Context) error {
	if !p.accepted {
		info, err := p.stream.Info(ctx)
		if err != nil {
			return err
		}
		if err := p.refuse(info); err != nil {
			return err
		}
	}
	at := p.checkpoint()
	if at.Sequence == 0 {
		return nil // no message can tell anything yet
	}
	_, err := p.stream.Message(ctx, at.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return &lineage.Error{Kind: lineage.Unproven, Sentence: fmt.Sprintf("The stream %s looked wrong and is long enough again, "+
			"but it has no message at the checkpoint %d.", p.cfg.Stream, at.Sequence)}
	}
	return err
}
