package projector

import (
	"context"
	"time"
)

// A batch is what is there, at most so many messages. Each copies the nodes of the trees that it
// changes, so in an import large batches save a tenth of what an event costs at 100 000 entries,
// and more at a million: while busyMessages and more are applied in gatherFor, a batch is what
// comes in that time. Where a batch ends changes nothing of the model.
const (
	maxBatch     = 8192
	gatherFor    = 500 * time.Millisecond
	busyMessages = 1024
)

// load is how busy the stream is.
type load struct {
	wait    time.Duration // for more messages, once a batch has begun
	began   time.Time
	applied int // messages since began
}

func newLoad() *load { return &load{began: time.Now()} }

// add counts n messages that have been applied. In bulk nobody reads, and messages are always there.
func (l *load) add(n int, bulk bool) {
	l.applied += n
	took := time.Since(l.began)
	if took < gatherFor {
		return
	}
	if l.wait = 0; !bulk && l.applied >= busyMessages*int(took/gatherFor) {
		l.wait = gatherFor
	}
	l.began, l.applied = time.Now(), 0
}

// gather adds the chunks that are there, and those that come within wait. n counts the messages.
func gather(ctx context.Context, first *chunk, ordered <-chan *chunk, wait time.Duration) (batch []*chunk, n int) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	batch, n = append(batch, first), len(first.messages)
	for n+chunkMessages <= maxBatch {
		var c *chunk
		select {
		case c = <-ordered:
		default:
			select {
			case c = <-ordered:
			case <-ctx.Done():
				return batch, n
			}
		}
		<-c.done
		batch, n = append(batch, c), n+len(c.messages)
	}
	return batch, n
}
