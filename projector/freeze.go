package projector

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/pause"
	"example.org/registry/projector/lineage"
)

// recheckIdentity freezes. If the stream only looks shorter, it checks the stream a second time
// first.
func (p *Projector) recheckIdentity(ctx context.Context, why *lineage.Error) {
	if why.Kind == lineage.Shorter {
		if !pause.For(ctx, p.cfg.RetryEvery) {
			return
		}
		if err := p.VerifyStream(ctx); !errors.As(err, &why) {
			return // still the same stream, or no reply: the next session checks
		}
	}
	p.freeze(ctx, why)
}

// freeze applies nothing until ctx ends, or until a stream that only looked shorter is back. It
// keeps checking the stream, so that Progress stays true.
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
		thaws = thaws && now.MayRecover() // once it has looked like anything else, it may not recover
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

// setUnconfirmed stores, on disk too, whether the checkpoint's message must be seen again before
// anything is applied. A restart must not forget that the stream looked wrong, since newer messages
// may have displaced that message.
func (p *Projector) setUnconfirmed(ctx context.Context, unconfirmed bool) {
	at := p.checkpoint()
	if at.Sequence == 0 || at.Unconfirmed == unconfirmed {
		return
	}
	at.Unconfirmed = unconfirmed
	p.setCheckpoint(at)
	_ = p.save(ctx, nil) // the only error is ctx's
}

// setFrozenTrouble reports every way out to the operator.
func (p *Projector) setFrozenTrouble(why *lineage.Error, thaws bool) {
	until := "until registry recover publishes what the stream lacks and has it accepted, or registry rebuild --accept-stream takes it as it is."
	if thaws {
		until = "until the stream is back as it was, which ends this by itself, or " + until
	}
	p.tracker.setTrouble(troubleFrozen, why.Sentence+" Nothing is applied "+until)
}

// reasonChanged reports a new reason for the freeze to the operator. It does not log a new length.
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

// lookAgain checks the stream again. now is its problem, or nil if there is none and the
// checkpoint's message is there, unchanged. answered is false if the broker did not answer.
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

// confirm checks two things that VerifyStream trusts: the configuration, if it has not been
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
		return nil // no message can tell yet
	}
	_, err := p.stream.Message(ctx, at.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return &lineage.Error{Kind: lineage.Unproven, Sentence: fmt.Sprintf("The stream %s looked wrong and is long enough again, "+
			"but it has no message at the checkpoint %d.", p.cfg.Stream, at.Sequence)}
	}
	return err
}
