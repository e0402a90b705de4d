package projector

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/readmodel"
)

// From this backlog on, the orders are sorted once at its end instead of being kept up with every
// batch. A backlog that is small beside the model is not worth sorting all of it.
const (
	bulkFrom    = 2000
	bulkPortion = 10 // at least this part of the model
)

// phase is how far the first catching up is. follow moves it, forward only.
//
//	phase      target is the stream's end      bulk      the model may be served   the store gets the checkpoint
//	unasked    not known                       no        no *                      no *
//	toStart    when the first session began    allowed   no *                      no *
//	toPresent  when toStart's was reached      allowed   no *                      no *
//	caughtUp   of no interest                  no        yes                       yes
//
// * A model that was saved complete is still so: its checkpoint is stored, and it is served when
// the broker does not answer for long, or the stream is not ours any more.
//
// There are two targets because at the first the model may lack subjects whose messages were erased
// before they were sent here: the stream keeps a few of each. What erased them is stored by then,
// so the model is complete at the second.
type phase int

const (
	unasked phase = iota
	toStart
	toPresent
	caughtUp
)

// complete reports whether the model has been caught up once, in this life or before it was saved.
func (p *Projector) complete() bool { return p.phase == caughtUp || p.cfg.Saved.Sequence > 0 }

// aim ends the phase before: the target is the stream's end, asked for at the moment asked.
func (p *Projector) aim(next phase, asked time.Time, end uint64) {
	p.phase, p.asked, p.target = next, asked, end
}

// beginCatchUp notes how much there is to do, and decides how. The stream ended at end at the moment
// asked.
func (p *Projector) beginCatchUp(ctx context.Context, info *jetstream.StreamInfo, end uint64, asked time.Time, pending uint64) {
	at := p.checkpoint()
	p.rejecter.setEpoch(at.StreamEpoch)
	switch {
	case p.phase == unasked:
		p.aim(toStart, asked, end)
	case p.phase == toStart && at.Sequence >= p.target: // and the session before could not ask for the end
		p.aim(toPresent, asked, end)
	}
	p.log.Info("following the stream", "epoch", at.StreamEpoch, "checkpoint", at.Sequence,
		"lastSequence", info.State.LastSeq, "pending", pending)
	if p.Progress().CaughtUp {
		return
	}
	p.tracker.update(func(s *Progress) { s.Total = s.Done + pending })
	if at.Sequence >= p.target {
		p.finishCatchUp(asked)
		_ = p.save(ctx, nil) // what was applied before has been saved with checkpoint 0; its only error is that of ctx: the end
		return
	}
	if pending == 0 {
		p.pollNow() // the last messages may have been erased
	}
	if pending >= uint64(p.cfg.Limits.Bulk) && pending >= uint64(p.cfg.Model.View().Total()/bulkPortion) {
		p.bulk = true
		p.withModel((*readmodel.Model).BeginBulk)
	}
}

// endBulk publishes what has been applied in bulk.
func (p *Projector) endBulk() {
	if p.bulk {
		p.bulk = false
		p.withModel(func(m *readmodel.Model) { m.EndBulk() })
	}
}

// reachTarget is called at target or after it. It asks the broker for the stream's end, since the
// count of pending messages would not tell: that goes on counting some of what was erased meanwhile
// (seen with nats-server 2.15.2: 1 pending after the last message).
func (p *Projector) reachTarget(ctx context.Context, at uint64) {
	if p.phase < toPresent {
		end, asOf, err := p.askEnd(ctx)
		if err != nil {
			p.recheck(err) // the next session asks again
			return
		}
		p.aim(toPresent, asOf, end)
	}
	if at >= p.target {
		p.finishCatchUp(p.asked)
	}
}

// finishCatchUp lets the model be served, once.
func (p *Projector) finishCatchUp(asOf time.Time) {
	if p.Progress().CaughtUp {
		return
	}
	p.endBulk()
	p.phase = caughtUp
	at := p.checkpoint()
	p.log.Info("caught up with the stream", "checkpoint", at.Sequence, "messages", p.Progress().Total,
		"digest", p.cfg.Model.Digest().String())
	p.tracker.update(func(s *Progress) {
		s.CaughtUp, s.Done = true, s.Total
		s.knownComplete(asOf)
	})
}
