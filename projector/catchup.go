package projector

import (
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
	if !p.started {
		p.started, p.target = true, info.State.LastSeq
	}
	p.log.Info("following the stream", "epoch", at.Stream.Epoch, "checkpoint", at.Sequence,
		"lastSequence", info.State.LastSeq, "pending", pending)
	if p.Progress().CaughtUp {
		return
	}
	p.status.update(func(s *Progress) { s.Total = s.Done + pending })
	p.rest = pending
	if at.Sequence >= p.target && (!p.arrived || pending == 0) {
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

// arrive is called behind target. The model may lack subjects there whose messages have been erased before they
// were sent here, since the stream keeps a few of each; what erased them lies before where the stream ended when the message at target was
// sent, so the model is complete there at the latest.
func (p *Projector) arrive(b batchPart) {
	asOf := b.last.last
	if asOf.IsZero() {
		asOf = b.last.time
	}
	switch {
	case b.messages == 0:
	case !b.last.last.IsZero(), p.arrived && uint64(b.messages) >= p.rest:
		p.caughtUp(asOf)
	case p.arrived:
		p.rest -= uint64(b.messages)
	default:
		p.arrived, p.rest = true, b.last.pending
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
