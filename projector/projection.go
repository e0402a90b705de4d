package projector

import (
	"slices"
	"sync"

	"example.org/registry/events"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// maxMarks is the number of last messages that are kept to recognize the stream.
const maxMarks = 16

// projection is the read model with its position in the stream. Model and position change together, while mu
// is held. Run's goroutine alone changes the two, so it reads both without mu.
type projection struct {
	mu    sync.Mutex
	model *readmodel.Model
	meta  snapshots.Meta

	reading bool // the stream is read again from its beginning; states are lacking until they are read
	bulk    bool // the model publishes nothing until endBulk
}

// isEmpty reports whether nothing is known, so that any stream is as good as another.
func (p *projection) isEmpty() bool {
	return p.meta.Sequence == 0 && p.model.View().NumSubjects() == 0
}

// apply applies messages, whose content is in items, and moves the checkpoint to upTo. It returns the
// records that lost against known states, by their sequence.
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

// rewind goes back to the stream's beginning. Known states stay, and are lacking in the stream until they
// are read again.
func (p *projection) rewind(id stream.Identity, rewound bool) {
	p.endBulk()
	p.reading = true

	p.mu.Lock()
	defer p.mu.Unlock()
	p.model.Rewind(0)
	p.meta = snapshots.Meta{Identity: id, Complete: p.meta.Complete, Rewound: rewound}
}

// endReading ends the reading from the beginning, and returns the states that the stream lacks.
func (p *projection) endReading() []events.Subject {
	p.endBulk()
	p.reading = false
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
	if p.reading { // after a crash now, the next process must read the stream from its beginning
		m.Sequence = 0
		m.Marks = nil
		m.Erased = 0
	}
	return m
}

// nameFeed names the model's feed after the epoch, and takes the name away while the model has states that
// the stream lacks.
func (p *projection) nameFeed() {
	if p.bulk {
		return
	}

	name := p.meta.Epoch
	if p.reading || p.meta.Rewound || p.model.View().Lacking() > 0 {
		name = ""
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.model.NameFeed(name)
}

// beginBulk makes the model publish nothing until endBulk, if many messages are pending: clients see the model
// only once these messages are applied.
func (p *projection) beginBulk(pending uint64) {
	// Many messages are more than one batch, and more than a tenth of the entries.
	numEntries := p.model.View().Total()
	areMany := pending > max(maxBatch, uint64(numEntries/10))
	if p.bulk || !areMany {
		return
	}
	p.bulk = true

	p.mu.Lock()
	defer p.mu.Unlock()
	p.model.BeginBulk()
}

func (p *projection) endBulk() {
	if !p.bulk {
		return
	}
	p.bulk = false

	p.mu.Lock()
	defer p.mu.Unlock()
	p.model.EndBulk()
}
