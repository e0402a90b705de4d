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

	"example.org/registry/events"
	"example.org/registry/events/failpoint"
	"example.org/registry/events/leader"
	"example.org/registry/readmodel"
)

// apply is the session's loop: it applies the receiver's messages to the model.
func (p *Projector) apply(ctx context.Context, r *receiver) error {
	ticker := time.NewTicker(p.cfg.PollEvery)
	defer ticker.Stop()
	for {
		first, err := p.nextChunk(ctx, r, ticker.C)
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
func (p *Projector) nextChunk(ctx context.Context, r *receiver, tick <-chan time.Time) (*chunk, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err := <-r.trouble:
		return nil, err
	case err := <-p.restart:
		return nil, err
	case e := <-p.erased:
		return nil, p.skipErased(ctx, e)
	case j := <-p.joins:
		return nil, p.join(ctx, j)
	case lost := <-p.lost:
		return nil, p.lack(ctx, lost)
	case <-tick:
		return nil, p.look(ctx)
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
		p.readPart(&part)
		p.eraser.add(part.records)
		for _, d := range part.displacing {
			p.restorer.add(d.subject, d.sequence)
		}
		if err := p.rejecter.add(ctx, part.at.HistoryName(), part.rejected); err != nil {
			return err
		}
		err := p.save(ctx, part.records)
		if err == nil {
			p.note(ctx, part) // it may save, and no save may come before the rejections and records of its digest
			err = p.settle(ctx)
		}
		if err != nil || !part.more {
			return err
		}
		select {
		case <-moved:
		case j := <-p.joins:
			if err := p.join(ctx, j); err != nil {
				return err
			}
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
	at := p.Checkpoint()
	part = partOf(batch, at, p.bound.limit.Load())
	if part.at.Sequence > at.Sequence {
		if v := p.cfg.Model.View(); !p.again.hidden && v.Epoch() != part.at.HistoryName() && v.Epoch() == at.HistoryName() {
			p.cfg.Model.NameFeed(part.at.HistoryName(), false)
		}
		_, lost := p.cfg.Model.Apply(part.records, part.at.Sequence)
		part.lose(batch, lost)
		p.setCheckpoint(part.at)
	}
	return part, p.bound.changed
}

// batchPart is the part of a batch after the checkpoint and within the bound.
type batchPart struct {
	at         readmodel.Checkpoint // checkpoint after the part
	last       leader.Delivery      // of the part
	messages   int
	records    []readmodel.Record
	rejected   []rejection // in stream order
	unheeded   int         // rejected removals of what is shown, since a greater revision is known
	superseded int

	displacing []displacing // superseded and rejected messages
	more       bool         // the batch goes on after the bound
}

// lose takes the records that the model has not taken out of the part, and rejects those that are a
// mistake of the backend (events/CONTRACT.md#revisions).
func (b *batchPart) lose(batch []*chunk, lost []readmodel.Loss) {
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
			b.superseded++
			b.displacing = append(b.displacing, displacing{l.Record.Subject.String(), l.Record.Sequence})
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
	for _, r := range b.rejected {
		b.displacing = append(b.displacing, displacing{r.Subject, r.Sequence})
	}
	slices.SortFunc(b.rejected, func(x, y rejection) int { return cmp.Compare(x.Sequence, y.Sequence) })
}

// partOf returns the part of batch that may be applied. A bound between two messages counts as
// reached once no message up to it remains.
func partOf(batch []*chunk, at readmodel.Checkpoint, limit uint64) batchPart {
	part, records := batchPart{at: at}, 0
	var passed []readmodel.Position
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
				passed = append(passed, readmodel.Position{Sequence: m.Sequence, Time: m.Time.UTC()})
			}
		}
		for _, h := range c.histories {
			if h.sequence > at.Sequence && h.sequence <= limit {
				part.begin(h)
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
		part.at.Sequence = part.last.Sequence
		part.at.Passed(passed)
	}
	if part.more && limit > part.at.Sequence {
		part.at.Sequence = limit
	}
	return part
}

// begin begins the history of a marker, unless a newer one has begun already.
func (b *batchPart) begin(h beginning) {
	if h.Revision < b.at.HistoryRevision {
		b.displacing = append(b.displacing, displacing{events.HistorySubject, h.sequence})
		return
	}
	names := h.Names()
	if h.Kind == events.HistoryNew {
		for _, name := range b.at.Histories {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	b.at.Rewound = b.at.Rewound && h.Revision == b.at.HistoryRevision // which is read again
	b.at.History, b.at.HistoryRevision = h.Name, h.Revision
	b.at.Histories = names[:min(len(names), events.MaxFollows)]
}

// note updates the progress.
func (p *Projector) note(ctx context.Context, part batchPart) {
	p.tracker.update(func(s *Progress) {
		s.Applied += uint64(part.messages)
		s.Superseded += uint64(part.superseded)
		if s.CaughtUp || p.cfg.Saved.Sequence > 0 {
			s.Unheeded += uint64(part.unheeded)
		}
		s.LastSequence = max(s.LastSequence, part.at.Sequence)
		if !s.CaughtUp {
			s.Done = min(s.Done+uint64(part.messages), s.Total)
		}
	})
	switch {
	case p.phase == caughtUp:
	case part.at.Sequence >= p.target:
		p.reachTarget(ctx, part.at.Sequence)
	case part.last.AtEnd:
		wake(p.poll) // nothing is pending, but the end is not reached
	}
}

// save passes applied records to the saver.
func (p *Projector) save(ctx context.Context, records []readmodel.Record) error {
	return p.saveCommit(ctx, readmodel.Commit{Records: records})
}

// saveCommit completes a commit and passes it to the saver. While the stream is read again, the
// checkpoint is the one from before.
func (p *Projector) saveCommit(ctx context.Context, c readmodel.Commit) error {
	at := p.Checkpoint()
	reached := at.Sequence
	if p.again.active {
		at = p.again.hold
	}
	at.Complete = p.complete()
	at.Erased, at.Restored = p.eraser.erased(at.Sequence), p.restorer.restored(at.Sequence)
	c.Checkpoint, c.Digest = at, p.cfg.Model.Digest()
	return p.saver.add(ctx, reached, c, p.bulk)
}

// lack records that the stream lacks the states of some subjects.
func (p *Projector) lack(ctx context.Context, subjects []events.Subject) error {
	p.withModel(func(m *readmodel.Model) { m.Lack(subjects) })
	return p.saveCommit(ctx, readmodel.Commit{Lacking: subjects})
}

// look is called at every poll.
func (p *Projector) look(ctx context.Context) error {
	if err := p.settle(ctx); err != nil {
		return err
	}
	p.nameFeed()
	p.showLacking()
	if p.phase == toPresent && p.Checkpoint().Sequence >= p.target { // something is owed
		p.finishCatchUp(ctx, p.asked)
	}
	return nil
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
	at := p.Checkpoint()
	p.log.Info("the stream's last messages have been erased; checkpoint moved to its end", "checkpoint", at.Sequence)
	if at.Sequence >= p.target {
		p.finishCatchUp(ctx, e.asOf)
	}
	if err := p.save(ctx, nil); err != nil {
		return err
	}
	return p.settle(ctx)
}

// moveOver reports whether it has moved the checkpoint. It does not move it if a message has
// arrived since.
func (p *Projector) moveOver(e erasure) bool {
	p.bound.mu.Lock()
	defer p.bound.mu.Unlock()
	at := p.Checkpoint()
	to := min(e.to, p.bound.limit.Load())
	if at.Sequence != e.from || to <= e.from {
		return false
	}
	at.Sequence = to
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
	at := p.Checkpoint()
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
