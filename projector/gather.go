package projector

import (
	"context"
	"time"
)

// A batch is all waiting messages, at most maxBatch. Each batch copies the tree nodes that it
// changes, so large batches are cheaper: a tenth less an event at 100,000 entries, more at a
// million. While busyMessages or more arrive in gatherFor, a batch also takes the messages of the
// next gatherFor. The model does not depend on where batches end.
const (
	maxBatch     = 8192
	gatherFor    = 500 * time.Millisecond
	busyMessages = 1024
)

// load measures how busy the stream is.
type load struct {
	busy    bool // at the last measurement
	began   time.Time
	applied int // messages since began
}

func newLoad() *load { return &load{began: time.Now()} }

// add counts n applied messages. In bulk there are no queries, and messages are always waiting.
func (l *load) add(n int, bulk bool) {
	l.applied += n
	took := time.Since(l.began)
	if took < gatherFor {
		return
	}
	l.busy = !bulk && l.applied >= busyMessages*int(took/gatherFor)
	l.began, l.applied = time.Now(), 0
}

// wait returns how long a batch waits for more messages. The first one after a pause does not wait.
func (l *load) wait() time.Duration {
	if l.busy && time.Since(l.began) < 2*gatherFor {
		return gatherFor
	}
	return 0
}

// gather adds the waiting chunks, and those that arrive within wait. n counts the messages.
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
