package projector

import (
	"slices"
	"sync"

	"example.org/registry/events"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// maxMarks is how many of the last messages the meta record keeps, to recognize the stream by them.
const maxMarks = 16

// projection is the read model, and meta its position in the stream. Both change together, while mu is held. Only
// Run's goroutine changes them, so it reads them without mu.
type projection struct {
	mu    sync.Mutex
	model *readmodel.Model
	meta  snapshots.Meta

	isRereading bool // the stream is being read again from its beginning; a state is lacking until it is read
	isBulk      bool // the model publishes nothing until endBulk
}

// isEmpty reports whether nothing is known: there is no state, and nothing was read.
func (p *projection) isEmpty() bool {
	return p.meta.Sequence == 0 && p.model.View().NumSubjects() == 0
}

// apply applies messages, whose content is in items, and moves the checkpoint to upTo. It returns the losses of
// records against known states, by the record's sequence.
func (p *projection) apply(messages []stream.Message, items []decoded, upTo uint64) map[uint64]readmodel.Loss {
	records := make([]readmodel.Record, 0, len(items))
	for _, item := range items {
		if item.err == nil {
			records = append(records, item.record)
		}
	}

	marks := slices.Clone(p.meta.Marks)
	for _, m := range messages[max(0, len(messages)-maxMarks):] {
		marks = append(marks, snapshots.Mark{Sequence: m.Sequence, Time: m.Time.UTC()})
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	_, lost := p.model.Apply(records, upTo)
	p.meta.Sequence = upTo
	p.meta.Marks = marks[max(0, len(marks)-maxMarks):]

	losses := make(map[uint64]readmodel.Loss, len(lost))
	for _, loss := range lost {
		losses[loss.Record.Sequence] = loss
	}
	return losses
}

// startRereading moves the checkpoint to the stream's beginning. The known states stay, and count as lacking in the
// stream until they are read again.
func (p *projection) startRereading(id stream.Identity, isRewound bool) {
	p.endBulk()
	p.isRereading = true

	p.mu.Lock()
	defer p.mu.Unlock()
	p.model.Rewind(0)
	p.meta = snapshots.Meta{Identity: id, Complete: p.meta.Complete, Rewound: isRewound}
}

// endRereading returns the subjects whose states the stream lacks: they were not read again.
func (p *projection) endRereading() []events.Subject {
	p.endBulk()
	p.isRereading = false
	return p.model.Lacking()
}

func (p *projection) update(change func(m *snapshots.Meta)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.meta)
}

// metaToSave returns the meta record for the store.
func (p *projection) metaToSave() snapshots.Meta {
	m := p.meta
	m.Digest = p.model.Digest().String()
	if p.isRereading { // after a crash now, the next process must begin the rereading anew
		m.Sequence = 0
		m.Marks = nil
		m.Erased = 0
	}
	return m
}

// nameFeed makes the epoch the name of the model's feed of changes. While the model has states that the stream lacks,
// there is no feed, and its name is empty.
func (p *projection) nameFeed() {
	if p.isBulk {
		return
	}

	name := p.meta.Epoch
	if p.isRereading || p.meta.Rewound || p.model.View().Lacking() > 0 {
		name = ""
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.model.NameFeed(name)
}

// beginBulk makes the model publish no view until endBulk, if many messages are pending.
func (p *projection) beginBulk(pending uint64) {
	// Many means more than one batch, and more than a tenth of the entries.
	numEntries := p.model.View().Total()
	areMany := pending > max(maxBatch, uint64(numEntries/10))
	if p.isBulk || !areMany {
		return
	}
	p.isBulk = true

	p.mu.Lock()
	defer p.mu.Unlock()
	p.model.BeginBulk()
}

func (p *projection) endBulk() {
	if !p.isBulk {
		return
	}
	p.isBulk = false

	p.mu.Lock()
	defer p.mu.Unlock()
	p.model.EndBulk()
}
