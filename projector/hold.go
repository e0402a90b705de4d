package projector

import (
	"context"
	"math"
	"sync"
	"time"

	"example.org/registry/readmodel"
)

// bound is how far messages are applied. Whoever touches the model holds mu, so that nothing is applied
// any more once Hold has returned.
type bound struct {
	mu      sync.Mutex
	limit   uint64
	changed chan struct{} // closed when limit changes
}

func newBound() bound { return bound{limit: math.MaxUint64, changed: make(chan struct{})} }

func (b *bound) set(limit uint64) {
	b.limit = limit
	close(b.changed)
	b.changed = make(chan struct{})
}

// Hold lets nothing behind sequence upTo be applied until Release, nothing at all when the model is there
// or further, and returns where the model stands. What is already applied is saved as usual; messages wait
// with the broker. Any goroutine may call it.
func (p *Projector) Hold(upTo uint64) readmodel.Checkpoint {
	p.bound.mu.Lock()
	defer p.bound.mu.Unlock()
	at := p.checkpoint()
	p.bound.set(max(upTo, at.Sequence))
	return at
}

// Release ends a Hold.
func (p *Projector) Release() {
	p.bound.mu.Lock()
	defer p.bound.mu.Unlock()
	p.bound.set(math.MaxUint64)
}

// Inspect calls f while nothing is applied: f may read what of the model belongs to its owner. Events
// wait for f, readers do not. Any goroutine may call it.
func (p *Projector) Inspect(f func(*readmodel.Model)) {
	p.bound.mu.Lock()
	defer p.bound.mu.Unlock()
	f(p.cfg.Model)
}

// StillOurs asks the broker whether the stream is the one that the model was made from, which a stream
// that has been replaced a moment ago may no longer be. The error says why not, or that the broker
// did not answer. It may be called while Run runs.
func (p *Projector) StillOurs(ctx context.Context) error { return p.verify(ctx) }

// batchPart is what of a batch lies behind the model and within the bound.
type batchPart struct {
	at       readmodel.Checkpoint // after it
	last     message              // of the part
	messages int
	records  []readmodel.Record
	rejected []rejection
	rest     bool // the batch goes on behind the bound
}

// part looks for what may be applied of batch. A bound that lies between two messages is reached all the
// same: everything up to it has been dealt with.
func part(batch []*job, at readmodel.Checkpoint, limit uint64) batchPart {
	b := batchPart{at: at}
	for _, j := range batch {
		for _, m := range j.messages {
			if m.seq > limit {
				b.rest = true
				break
			}
			b.last = m
			if m.seq > at.Sequence {
				b.messages++
			}
		}
		for _, r := range j.records {
			if r.Sequence > at.Sequence && r.Sequence <= limit {
				b.records = append(b.records, r)
			}
		}
		for _, r := range j.rejected {
			if r.seq > at.Sequence && r.seq <= limit {
				b.rejected = append(b.rejected, r)
			}
		}
	}
	if b.last.seq > at.Sequence {
		b.at.Sequence, b.at.MessageID, b.at.MessageTime = b.last.seq, b.last.id, b.last.time.UTC()
	}
	if b.rest && limit > b.at.Sequence {
		b.at.Sequence, b.at.MessageID, b.at.MessageTime = limit, "", time.Time{}
	}
	return b
}
