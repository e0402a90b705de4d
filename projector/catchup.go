package projector

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// From this backlog on, the orders are sorted once at its end instead of being kept up with every batch. A backlog that
// is small beside the model is not worth sorting all of it.
const (
	bulkFrom    = 2000
	bulkPortion = 10 // at least this part of the model
)

// beginCatchUp notes how much there is to do, and decides how.
func (p *Projector) beginCatchUp(info *jetstream.StreamInfo, pending uint64) {
	at := p.checkpoint()
	p.rejecter.setEpoch(at.StreamEpoch)
	switch {
	case !p.started:
		p.started, p.target = true, info.State.LastSeq
	case p.reached.IsZero() && at.Sequence >= p.target: // and the session before could not ask for the end
		p.reached, p.target = time.Now(), info.State.LastSeq
	}
	p.log.Info("following the stream", "epoch", at.StreamEpoch, "checkpoint", at.Sequence,
		"lastSequence", info.State.LastSeq, "pending", pending)
	if p.Progress().CaughtUp {
		return
	}
	p.tracker.update(func(s *Progress) { s.Total = s.Done + pending })
	if at.Sequence >= p.target {
		p.caughtUp(time.Now())
		return
	}
	if pending == 0 {
		p.pollNow() // the last messages may have been erased
	}
	if pending >= bulkFrom && pending >= uint64(shown(p.cfg.Model.View())/bulkPortion) {
		p.bulk = true
		p.withModel((*readmodel.Model).BeginBulk)
	}
}

// shown is how many entries the lists show.
func shown(v *readmodel.View) (n int) {
	for _, l := range events.Lists() {
		n += v.Entries(l)
	}
	return n
}

// endBulk publishes what has been applied in bulk.
func (p *Projector) endBulk() {
	if p.bulk {
		p.bulk = false
		p.withModel(func(m *readmodel.Model) { m.EndBulk() })
	}
}

// reachTarget is called at target or after it. The first time, the model may lack subjects whose messages were erased
// before they were sent here, since the stream keeps a few of each. What erased them is stored by then, so the model is
// complete at the end that the stream has now. The broker's count of pending messages would not tell: it goes on counting
// some of what was erased meanwhile (seen with nats-server 2.15.2: 1 pending after the last message).
func (p *Projector) reachTarget(ctx context.Context, at uint64) {
	if p.reached.IsZero() {
		now := time.Now()
		info, err := p.stream.Info(ctx)
		if err != nil {
			p.recheck(err) // the next session asks again
			return
		}
		p.reached, p.target = now, info.State.LastSeq
	}
	if at >= p.target {
		p.caughtUp(p.reached)
	}
}

// caughtUp lets the model be served, once.
func (p *Projector) caughtUp(asOf time.Time) {
	if p.Progress().CaughtUp {
		return
	}
	p.endBulk()
	p.complete = true
	at := p.checkpoint()
	p.tracker.update(func(s *Progress) {
		s.CaughtUp, s.Done = true, s.Total
		if asOf.After(s.AsOf) {
			s.AsOf = asOf
		}
	})
	p.log.Info("caught up with the stream", "checkpoint", at.Sequence, "messages", p.Progress().Total,
		"digest", p.cfg.Model.Digest().String())
}
