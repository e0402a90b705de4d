package projector

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// suspect freezes, except that a stream that looks shorter is looked at twice.
func (p *Projector) suspect(ctx context.Context, other notOurs) {
	if other.kind == shorter {
		if !pause(ctx, p.cfg.RetryEvery) {
			return
		}
		if err := p.verify(ctx); !errors.As(err, &other) {
			return // ours, or no answer: the next session finds out
		}
	}
	p.freeze(ctx, other)
}

// freeze applies nothing until ctx ends or a stream that only looked shorter is back. It goes on
// looking, so that what Progress says stays true.
func (p *Projector) freeze(ctx context.Context, why notOurs) {
	at := p.checkpoint()
	p.log.Error("frozen: the stream is not the one the read model was made from; the last good state is served, "+
		"nothing is applied", "reason", why.sentence, "checkpoint", at.Sequence, "epoch", at.Stream.Epoch)
	thaws := why.mayThaw()
	p.sayFrozen(why, thaws)
	p.status.update(func(s *Progress) {
		s.Frozen = true
		s.CaughtUp = s.CaughtUp || p.complete
	})
	p.mark(ctx, true)
	for pause(ctx, p.cfg.PollEvery) {
		now, known := p.reconsider(ctx)
		if !known {
			continue
		}
		if now.kind == healed && thaws {
			break
		}
		thaws = thaws && now.mayThaw() // once it was anything else, it did not only look shorter
		p.changed(why, now, thaws)
		why = now
	}
	if ctx.Err() != nil {
		return
	}
	p.mark(ctx, false)
	p.status.say(troubleFrozen, "")
	p.status.update(func(s *Progress) { s.Frozen = false })
	p.log.Info("thawed: the checkpoint's message is back unchanged", "checkpoint", at.Sequence)
}

// mark keeps, in the store too, whether the checkpoint's message must be seen again before anything is
// applied: a restart is not to forget what was seen, when newer messages may have pushed that one out.
func (p *Projector) mark(ctx context.Context, doubted bool) {
	at := p.checkpoint()
	if at.Sequence == 0 || at.Doubted == doubted {
		return
	}
	at.Doubted = doubted
	p.setCheckpoint(at)
	_ = p.save(ctx, nil) // that of ctx: the end
}

// sayFrozen names every way out.
func (p *Projector) sayFrozen(why notOurs, thaws bool) {
	until := "until registry rebuild --accept-stream."
	if thaws {
		until = "until the stream is back as it was, which ends this by itself, or " + until
	}
	p.status.say(troubleFrozen, why.sentence+" Nothing is applied "+until)
}

// changed says why the stream is not ours now, and logs it unless only its length is another.
func (p *Projector) changed(before, now notOurs, thaws bool) {
	if now.sentence == before.sentence {
		return
	}
	p.sayFrozen(now, thaws)
	if now.kind == shorter && before.kind == shorter {
		return
	}
	p.log.Warn("still frozen, for another reason", "reason", now.sentence, "before", before.sentence,
		"checkpoint", p.checkpoint().Sequence)
}

// reconsider looks at a stream that was not ours: what is wrong with it now, healed when nothing
// is and the checkpoint's message is there, unchanged. Not known: the broker did not answer.
func (p *Projector) reconsider(ctx context.Context) (now notOurs, known bool) {
	err := p.verify(ctx)
	if err == nil {
		err = p.mended(ctx)
	}
	var bad unusable
	switch {
	case errors.As(err, &now):
		return now, true
	case errors.As(err, &bad):
		return cannotBeUsed(bad), true
	case err != nil:
		return notOurs{}, false
	}
	return notOurs{kind: healed, sentence: "The stream " + p.cfg.Stream + " looked wrong and looks right again."}, true
}

// mended looks at what verify takes on trust: the configuration, where it has not been accepted,
// and that the checkpoint has a message.
func (p *Projector) mended(ctx context.Context) error {
	if !p.accepted {
		info, err := StreamInfo(ctx, p.js, p.cfg.Stream)
		if err != nil {
			return err
		}
		if err := p.refuse(info); err != nil {
			return err
		}
	}
	at := p.checkpoint()
	if at.Sequence == 0 {
		return nil // there is nothing yet that a message could tell
	}
	_, err := getMessage(ctx, p.cfg.Conn, p.cfg.Stream, at.Sequence, "")
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return notOurs{kind: regrown, sentence: fmt.Sprintf("The stream %s looked wrong and is long enough again, "+
			"but it has no message at the checkpoint %d.", p.cfg.Stream, at.Sequence)}
	}
	return err
}
