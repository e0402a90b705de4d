package projector

import (
	"context"
	"time"
)

// A batch is what is there, at most maxBatch messages. Each batch copies the tree nodes that it
// changes, so large ones are cheaper: a tenth less an event at 100,000 entries, more at a million.
// While busyMessages or more come in gatherFor, a batch also takes what comes in the next
// gatherFor. The model does not depend on where batches end.
const (
	maxBatch     = 8192
	gatherFor    = 500 * time.Millisecond
	busyMessages = 1024
)

// load is how busy the stream is.
type load struct {
	busy    bool // when it was last looked at
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
	l.busy = !bulk && l.applied >= busyMessages*int(took/gatherFor)
	l.began, l.applied = time.Now(), 0
}

// wait is how long a batch that has begun waits for more. The first one after a pause waits for
// nothing.
func (l *load) wait() time.Duration {
	if l.busy && time.Since(l.began) < 2*gatherFor {
		return gatherFor
	}
	return 0
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
