package projector

import (
	"context"
	"sync"
	"sync/atomic"

	"example.org/registry/events/leader"
)

// maxDecoding is how many chunks wait between the broker and the model.
const maxDecoding = maxBatch / chunkMessages

// receiver is one reading of the stream. dispatch cuts its messages into chunks, which it gives to
// the workers and, in stream order, to the session.
type receiver struct {
	*leader.Reader

	received atomic.Uint64 // stream sequence of the last message received

	ordered chan *chunk // in stream order, decoded or being decoded
	trouble chan error  // the reason to end the session; holds one

	stop    context.CancelFunc // of dispatch; nil before start
	running sync.WaitGroup
}

// newReceiver makes a consumer that starts after the checkpoint.
func (p *Projector) newReceiver(ctx context.Context) (*receiver, error) {
	r, err := p.stream.NewReader(ctx, leader.ReaderConfig{
		Description: "registry projector", After: p.Checkpoint().Sequence, Pull: p.cfg.Limits.Pull})
	if err != nil {
		return nil, err
	}
	return &receiver{Reader: r, ordered: make(chan *chunk, maxDecoding), trouble: make(chan error, 1)}, nil
}

// start starts the delivery of messages.
func (r *receiver) start(ctx context.Context, workers chan<- *chunk) {
	ctx, r.stop = context.WithCancel(ctx)
	r.running.Go(func() { r.trouble <- r.dispatch(ctx, workers) })
}

// dispatch passes received messages to the workers, in chunks, until ctx ends or nothing more can
// be received, and returns the reason.
func (r *receiver) dispatch(ctx context.Context, workers chan<- *chunk) error {
	for {
		messages, err := r.Read(ctx, chunkMessages, chunkBytes)
		if err != nil {
			return err
		}
		// Before they are passed on: a check that finds one in the stream must see that it was received.
		r.received.Store(messages[len(messages)-1].Sequence)
		c := &chunk{messages: messages, done: make(chan struct{})}
		for _, to := range []chan<- *chunk{workers, r.ordered} {
			select {
			case to <- c:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// close deletes the consumer and ends the goroutine of start. Messages that have not been applied
// are dropped: the next session receives them again.
func (r *receiver) close() {
	if r.stop != nil {
		r.stop()
	}
	r.running.Wait()
	r.Close()
}
