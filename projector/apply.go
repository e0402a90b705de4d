package projector

import (
	"context"

	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel"
)

// A batch is what is there, at most so many messages. In bulk nobody sees the views between.
const (
	maxBatch     = 1000
	maxBulkBatch = 8192
)

// apply is the session's loop: it owns the model.
func (p *Projector) apply(ctx context.Context, r *receiver) error {
	var held *job // taken, but not decoded when the batch before it was complete
	for {
		first, err := p.next(ctx, r, held)
		if err != nil {
			return err
		}
		if first == nil {
			held = nil
			continue
		}
		var batch []*job
		batch, held = p.gather(first, r.ordered)
		if err := p.take(ctx, batch); err != nil {
			return err
		}
	}
}

// next waits for work. It returns a decoded job, or nil when it has done other work.
func (p *Projector) next(ctx context.Context, r *receiver, held *job) (*job, error) {
	ordered := r.ordered
	ready := make(chan *job, 1)
	if held != nil {
		ready <- held
		ordered = nil
	}
	var j *job
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err := <-r.trouble:
		return nil, err
	case err := <-p.doubt:
		return nil, err
	case a := <-p.advance:
		if held != nil {
			j = held
			break
		}
		return nil, p.skip(ctx, a)
	case j = <-ready:
	case j = <-ordered:
	}
	select {
	case <-j.done:
		return j, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// gather adds the jobs that are decoded already. It waits for nothing: what is pending makes the next
// batch.
func (p *Projector) gather(first *job, ordered <-chan *job) (batch []*job, held *job) {
	limit := maxBatch
	if p.bulk {
		limit = maxBulkBatch
	}
	batch = append(batch, first)
	for n := len(first.messages); n+chunkMessages <= limit; {
		select {
		case j := <-ordered:
			select {
			case <-j.done:
			default:
				return batch, j
			}
			batch = append(batch, j)
			n += len(j.messages)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// take applies a batch: memory first, then what the others make of it. Where the bound lies in the
// middle of it, it waits for the bound to move.
func (p *Projector) take(ctx context.Context, batch []*job) error {
	for {
		if err := failpoint.Hit("projector/received"); err != nil {
			return err
		}
		part, moved := p.applyPart(batch)
		_ = failpoint.Hit("projector/applied") // to die at: nothing here can fail
		p.note(ctx, part)
		p.rejecter.valid(part.records)
		if err := p.rejecter.add(ctx, part.rejected); err != nil {
			return err
		}
		if err := p.save(ctx, part.records); err != nil || !part.rest {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// applyPart applies what of a batch the bound allows, and says when the bound moves.
func (p *Projector) applyPart(batch []*job) (b batchPart, moved <-chan struct{}) {
	p.bound.mu.Lock()
	defer p.bound.mu.Unlock()
	at := p.checkpoint()
	b = part(batch, at, p.bound.limit)
	if b.at.Sequence > at.Sequence {
		p.cfg.Model.Apply(b.records, b.at.Sequence)
		p.setCheckpoint(b.at)
	}
	return b, p.bound.changed
}

// note brings the progress up to date.
func (p *Projector) note(ctx context.Context, b batchPart) {
	p.status.update(func(s *Progress) {
		s.Applied += uint64(b.messages)
		s.LastSequence = max(s.LastSequence, b.at.Sequence)
		if !s.CaughtUp {
			s.Done = min(s.Done+uint64(b.messages), s.Total)
		}
		if b.last.last.After(s.AsOf) {
			s.AsOf = b.last.last
		}
	})
	switch {
	case p.Progress().CaughtUp:
	case b.at.Sequence >= p.target:
		p.arrive(ctx, b.at.Sequence)
	case !b.last.last.IsZero():
		p.look() // nothing is pending, and yet the end is not reached
	}
}

// save hands over what has been applied. A replay that has never been complete is saved with checkpoint 0.
func (p *Projector) save(ctx context.Context, records []readmodel.Record) error {
	at := p.checkpoint()
	if !p.complete {
		at = readmodel.Checkpoint{Stream: at.Stream}
	}
	return p.saver.add(ctx, p.checkpoint().Sequence, readmodel.Commit{
		Records: records, Checkpoint: at, Digest: p.cfg.Model.Digest()}, p.bulk)
}
