package projector

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.org/registry/events/failpoint"
	"example.org/registry/events/leader"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

// apply is the session's loop: it applies the receiver's messages to the model.
func (p *Projector) apply(ctx context.Context, r *receiver) error {
	for {
		first, err := p.nextChunk(ctx, r)
		if err != nil {
			return err
		}
		if first == nil {
			continue
		}
		if err := p.applyBatch(ctx, gather(first, r.ordered)); err != nil {
			return err
		}
	}
}

// nextChunk waits for work. It returns a decoded chunk, or nil after other work.
func (p *Projector) nextChunk(ctx context.Context, r *receiver) (*chunk, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err := <-r.trouble:
		return nil, err
	case err := <-p.restart:
		return nil, err
	case e := <-p.erased:
		return nil, p.skipErased(ctx, e)
	case c := <-r.ordered:
		<-c.done // a worker has decoded it
		return c, nil
	}
}

// maxBatch is the most messages of a batch. Each batch copies the tree nodes that it changes, so
// large batches are cheaper. The model does not depend on where batches end.
const maxBatch = 8192

// gather adds the waiting chunks to first.
func gather(first *chunk, ordered <-chan *chunk) []*chunk {
	batch, n := []*chunk{first}, len(first.messages)
	for n+chunkMessages <= maxBatch {
		select {
		case c := <-ordered:
			<-c.done
			batch, n = append(batch, c), n+len(c.messages)
		default:
			return batch
		}
	}
	return batch
}

// applyBatch applies a batch to the model and passes it to rejecter and saver. If the bound lies
// within the batch, it waits for the bound to move.
func (p *Projector) applyBatch(ctx context.Context, batch []*chunk) error {
	for {
		if err := failpoint.Hit("projector/received"); err != nil {
			return err
		}
		part, moved := p.applyPart(batch)
		_ = failpoint.Hit("projector/applied") // to die at: nothing here can fail
		p.note(ctx, part)
		p.rejecter.valid(part.records)
		p.eraser.add(part.records)
		for _, subject := range part.lost {
			p.restorer.add(subject)
		}
		if err := p.rejecter.add(ctx, part.rejected); err != nil {
			return err
		}
		if err := p.save(ctx, part.records); err != nil || !part.more {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// applyPart applies the part of a batch that the bound allows. moved is closed when the bound
// moves.
func (p *Projector) applyPart(batch []*chunk) (part batchPart, moved <-chan struct{}) {
	p.bound.mu.Lock()
	defer p.bound.mu.Unlock()
	at := p.checkpoint()
	part = partOf(batch, at, p.bound.limit.Load())
	if part.at.Sequence > at.Sequence {
		p.cfg.Model.SetEpoch(part.at.HistoryName())
		p.applying = part.records
		_, lost := p.cfg.Model.Apply(part.records, part.at.Sequence)
		p.applying = nil
		part.lose(batch, lost)
		p.setCheckpoint(part.at)
	}
	return part, p.bound.changed
}

// batchPart is the part of a batch after the checkpoint and within the bound.
type batchPart struct {
	at       readmodel.Checkpoint // checkpoint after the part
	last     leader.Delivery      // of the part
	messages int
	records  []readmodel.Record
	rejected []rejection // in stream order
	lost     []string    // subjects of records that were superseded and not rejected
	unheeded int         // rejected removals of what is shown, since a greater revision is known
	more     bool        // the batch goes on after the bound
}

// lose takes the records that the model has not taken out of the part, and rejects those that are a
// mistake of the backend (events/CONTRACT.md#revisions).
func (b *batchPart) lose(batch []*chunk, lost []readmodel.Loss) {
	if len(lost) == 0 {
		return
	}
	reasons := map[uint64]string{} // by sequence
	for _, l := range lost {
		switch {
		case l.Conflict:
			reasons[l.Record.Sequence] = fmt.Sprintf("revision %d has another state", l.Known)
		case l.Unheeded:
			reasons[l.Record.Sequence] = fmt.Sprintf("known revision %d", l.Known)
			b.unheeded++
		default:
			reasons[l.Record.Sequence] = ""
			b.lost = append(b.lost, l.Record.Subject.String())
		}
	}
	b.records = slices.DeleteFunc(b.records, func(r readmodel.Record) bool {
		_, is := reasons[r.Sequence]
		return is
	})
	for _, c := range batch {
		for i := range c.messages {
			if m := &c.messages[i].Message; reasons[m.Sequence] != "" {
				b.rejected = append(b.rejected, newRejection(m, reasons[m.Sequence], reasons[m.Sequence]))
			}
		}
	}
	slices.SortFunc(b.rejected, func(x, y rejection) int { return cmp.Compare(x.Sequence, y.Sequence) })
}

// partOf returns the part of batch that may be applied. A bound between two messages counts as
// reached once no message up to it remains.
func partOf(batch []*chunk, at readmodel.Checkpoint, limit uint64) batchPart {
	part, newest, records := batchPart{at: at}, lineage.NewestTime(at), 0
	for _, c := range batch {
		records += len(c.records)
	}
	part.records = make([]readmodel.Record, 0, records)
	for _, c := range batch {
		for _, m := range c.messages {
			if m.Sequence > limit {
				part.more = true
				break
			}
			part.last = m
			if m.Sequence > at.Sequence {
				part.messages++
			}
			if m.Time.After(newest) {
				newest = m.Time
			}
		}
		for _, h := range c.histories {
			if h.sequence > at.Sequence && h.sequence <= limit {
				part.at.History = h.name
			}
		}
		for _, r := range c.records {
			if r.Sequence > at.Sequence && r.Sequence <= limit {
				part.records = append(part.records, r)
			}
		}
		for _, r := range c.rejected {
			if r.Sequence > at.Sequence && r.Sequence <= limit {
				part.rejected = append(part.rejected, r)
			}
		}
	}
	if part.last.Sequence > at.Sequence {
		part.at.Sequence, part.at.MessageID, part.at.MessageTime = part.last.Sequence, part.last.ID, part.last.Time.UTC()
		part.at.NewestTime = newest.UTC()
	}
	if part.more && limit > part.at.Sequence {
		part.at.Sequence, part.at.MessageID, part.at.MessageTime = limit, "", time.Time{}
	}
	return part
}

// note updates the progress.
func (p *Projector) note(ctx context.Context, part batchPart) {
	p.tracker.update(func(s *Progress) {
		s.Applied += uint64(part.messages)
		s.Superseded += uint64(len(part.lost))
		s.Unheeded += uint64(part.unheeded)
		s.LastSequence = max(s.LastSequence, part.at.Sequence)
		if !s.CaughtUp {
			s.Done = min(s.Done+uint64(part.messages), s.Total)
		}
	})
	switch {
	case p.Progress().CaughtUp:
	case part.at.Sequence >= p.target:
		p.reachTarget(ctx, part.at.Sequence)
	case part.last.AtEnd:
		p.pollNow() // nothing is pending, but the end is not reached
	}
}

// save passes applied records to the saver. Until a replay has been complete once, it is saved with
// checkpoint 0.
func (p *Projector) save(ctx context.Context, records []readmodel.Record) error {
	at := p.checkpoint()
	if !p.complete() {
		at = readmodel.Checkpoint{StreamIdentity: at.StreamIdentity}
		at.History = "" // the next replay begins before it
	} else {
		at.Erased = p.eraser.erased(at.Sequence)
	}
	return p.saver.add(ctx, p.checkpoint().Sequence, readmodel.Commit{
		Records: records, Checkpoint: at, Digest: p.cfg.Model.Digest()}, p.bulk)
}

// erasure states that the stream holds nothing after from, and ended at to at the time asOf.
type erasure struct {
	from, to uint64
	asOf     time.Time
}

// skipErased moves the checkpoint past an erased end of the stream, where no message is left to
// apply.
func (p *Projector) skipErased(ctx context.Context, e erasure) error {
	if !p.moveOver(e) {
		return nil
	}
	at := p.checkpoint()
	p.log.Info("the stream's last messages have been erased; checkpoint moved to its end", "checkpoint", at.Sequence)
	if at.Sequence >= p.target {
		p.finishCatchUp(e.asOf)
	}
	return p.save(ctx, nil)
}

// moveOver reports whether it has moved the checkpoint. It does not move it if a message has
// arrived since.
func (p *Projector) moveOver(e erasure) bool {
	p.bound.mu.Lock()
	defer p.bound.mu.Unlock()
	at := p.checkpoint()
	to := min(e.to, p.bound.limit.Load())
	if at.Sequence != e.from || to <= e.from {
		return false
	}
	at.Sequence, at.MessageID, at.MessageTime = to, "", time.Time{}
	p.cfg.Model.Apply(nil, at.Sequence)
	p.setCheckpoint(at)
	return true
}

// bound is the limit up to which messages are applied. Every change of the model holds mu, so once
// PauseAt has returned, nothing more is applied.
type bound struct {
	mu      sync.Mutex
	limit   atomic.Uint64 // written under mu
	changed chan struct{} // closed when limit changes
}

func (b *bound) init() {
	b.limit.Store(math.MaxUint64)
	b.changed = make(chan struct{})
}

// set moves the limit. The caller must hold b.mu.
func (b *bound) set(limit uint64) {
	b.limit.Store(limit)
	close(b.changed)
	b.changed = make(chan struct{})
}

// PauseAt pauses the projector at upTo until Resume, and returns the checkpoint. A model before upTo
// first continues to upTo; a model at or after it stops at once. Applied events are saved as usual,
// and messages wait at the broker. Any goroutine may call it.
func (p *Projector) PauseAt(upTo uint64) readmodel.Checkpoint {
	p.bound.mu.Lock()
	defer p.bound.mu.Unlock()
	at := p.checkpoint()
	p.bound.set(max(upTo, at.Sequence))
	return at
}

// Resume ends what PauseAt began.
func (p *Projector) Resume() {
	p.bound.mu.Lock()
	defer p.bound.mu.Unlock()
	p.bound.set(math.MaxUint64)
}

// Inspect calls f while nothing is applied. f may read the parts of the model that belong to its
// writer, but must not change them. Events wait for f; queries do not. Any goroutine may call it.
func (p *Projector) Inspect(f func(*readmodel.Model)) { p.withModel(f) }

// withModel calls f, which may change the model, while nothing is applied.
func (p *Projector) withModel(f func(*readmodel.Model)) {
	p.bound.mu.Lock()
	defer p.bound.mu.Unlock()
	f(p.cfg.Model)
}
