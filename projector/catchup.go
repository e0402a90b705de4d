package projector

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/readmodel"
)

// From this backlog on, the orders are sorted once at its end instead of with every batch. A
// backlog that is small compared to the model does not justify sorting all of it.
const (
	bulkFrom    = 2000
	bulkPortion = 10 // at least a tenth of the model
)

// phase is the progress of the first catch-up. follow moves it, forward only.
//
//	phase      target is the stream's end      bulk      the model may be served   the store gets the checkpoint
//	unasked    not known                       no        no *                      no *
//	toStart    when the first session began    allowed   no *                      no *
//	toPresent  when toStart's was reached      allowed   no *                      no *
//	caughtUp   of no interest                  no        yes                       yes
//
// * A model that was saved as complete stays complete: its checkpoint is stored, and it is served
// if the broker does not answer for long, or if the stream has become another one.
//
// There are two targets because at the first one the model may lack subjects whose messages were
// displaced before they were sent here: the stream keeps only a few messages of each subject. The
// displacing messages are stored by then, so at the second target the model is complete.
type phase int

const (
	unasked phase = iota
	toStart
	toPresent
	caughtUp
)

// complete reports whether the model has caught up once, in this process or before it was saved.
func (p *Projector) complete() bool { return p.phase == caughtUp || p.cfg.Saved.Complete }

// aim ends the current phase. The next target is the stream's end, as requested at asked.
func (p *Projector) aim(next phase, asked time.Time, end uint64) {
	p.phase, p.asked, p.target = next, asked, end
}

// beginCatchUp records the size of the backlog, and decides how to load it. The stream ended at end
// at the time asked.
func (p *Projector) beginCatchUp(ctx context.Context, info *jetstream.StreamInfo, end uint64, asked time.Time, pending uint64) {
	at := p.Checkpoint()
	switch {
	case p.phase == unasked:
		p.aim(toStart, asked, end)
	case p.phase == toStart && at.Sequence >= p.target: // the session before could not ask for the end
		p.aim(toPresent, asked, end)
	}
	p.log.Info("following the stream", "epoch", at.StreamEpoch, "checkpoint", at.Sequence,
		"lastSequence", info.State.LastSeq, "pending", pending)
	if p.phase == caughtUp {
		return
	}
	p.tracker.update(func(s *Progress) { s.Total = s.Done + pending })
	if at.Sequence >= p.target {
		p.finishCatchUp(ctx, asked)
		return
	}
	if pending == 0 {
		wake(p.poll) // the last messages may have been erased
	}
	if pending >= uint64(p.cfg.Limits.Bulk) && pending >= uint64(p.cfg.Model.View().Total()/bulkPortion) {
		p.bulk = true
		p.withModel((*readmodel.Model).BeginBulk)
	}
}

// endBulk publishes the changes applied in bulk.
func (p *Projector) endBulk() {
	if p.bulk {
		p.bulk = false
		p.withModel(func(m *readmodel.Model) { m.EndBulk() })
	}
}

// reachTarget is called at or after target. It asks the broker for the stream's end, since the
// count of pending messages is unreliable: it keeps counting some messages that have been erased
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
		p.finishCatchUp(ctx, p.asked)
	}
}

// finishCatchUp allows the model to be served, once.
func (p *Projector) finishCatchUp(ctx context.Context, asOf time.Time) {
	if p.phase == caughtUp {
		return
	}
	p.endBulk()
	if !p.paid(ctx) {
		return
	}
	p.phase = caughtUp
	at := p.Checkpoint()
	p.log.Info("caught up with the stream", "checkpoint", at.Sequence, "messages", p.Progress().Total,
		"digest", p.cfg.Model.Digest().String())
	p.tracker.update(func(s *Progress) {
		s.CaughtUp, s.Done = true, s.Total
		s.knownComplete(asOf)
	})
	p.eraser.publish() // it waits for this
	if err := p.settle(ctx); err != nil {
		p.recheck(err)
	}
}
