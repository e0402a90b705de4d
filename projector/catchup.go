package projector

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

const (
	// bulkFrom is the backlog from which the orders are sorted once at its end instead of
	// being kept up with every batch. A backlog that is small beside the model is not worth
	// sorting all of it.
	bulkFrom    = 2000
	bulkPortion = 10
)

// begin takes note of how much there is to do, and decides how.
func (p *Projector) begin(info *jetstream.StreamInfo, pending uint64) {
	at := p.checkpoint()
	p.rejecter.begin(at.Stream.Epoch)
	switch {
	case !p.started:
		p.started, p.target = true, info.State.LastSeq
	case p.arrived.IsZero() && at.Sequence >= p.target: // and the session before could not ask
		p.arrived, p.target = time.Now(), info.State.LastSeq
	}
	p.log.Info("following the stream", "epoch", at.Stream.Epoch, "checkpoint", at.Sequence,
		"lastSequence", info.State.LastSeq, "pending", pending)
	if p.Progress().CaughtUp {
		return
	}
	p.status.update(func(s *Progress) { s.Total = s.Done + pending })
	if at.Sequence >= p.target {
		p.caughtUp(time.Now())
		return
	}
	if pending == 0 {
		p.look() // the last messages may have been erased
	}
	if pending >= bulkFrom && pending >= uint64(shown(p.cfg.Model.View())/bulkPortion) {
		p.bulk = true
		p.Inspect(func(m *readmodel.Model) { m.BeginBulk() })
	}
}

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
		p.Inspect(func(m *readmodel.Model) { m.EndBulk() })
	}
}

// arrive is called at target or behind it. The first time the model may lack subjects whose messages were erased
// before they were sent here, since the stream keeps a few of each. What erased them is stored by then, so the model
// is complete at the end that the stream has now. What the broker counts as pending would not tell: it goes on
// counting some of what was erased meanwhile (seen with nats-server 2.15.2: 1 pending behind the last message).
func (p *Projector) arrive(ctx context.Context, at uint64) {
	if p.arrived.IsZero() {
		asked := time.Now()
		info, err := StreamInfo(ctx, p.js, p.cfg.Stream)
		if err != nil {
			p.disbelieve(err) // the next session asks again
			return
		}
		p.arrived, p.target = asked, info.State.LastSeq
	}
	if at >= p.target {
		p.caughtUp(p.arrived)
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
	p.status.update(func(s *Progress) {
		s.CaughtUp, s.Done = true, s.Total
		if asOf.After(s.AsOf) {
			s.AsOf = asOf
		}
	})
	p.log.Info("caught up with the stream", "checkpoint", at.Sequence, "messages", p.Progress().Total,
		"digest", p.cfg.Model.Digest().String())
}
