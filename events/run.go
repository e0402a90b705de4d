package events

import "context"

// Run is one publishing of a sequence of messages, in as many calls of PublishAll as it takes:
// a file in pieces, say. Whatever of it the stream had before, whole or in part, and whichever
// ids the broker still knows, a subject's last message of the run is stored after its earlier
// ones: nobody is brought back by an old state.
//
// After an error go on in the same Run, from the message at fault, or begin the sequence again
// in a new Run: a Run knows nothing of what another one has stored.
//
// It remembers each subject in 30 to 40 bytes, 300 MB for ten million, and needs no closing.
// One goroutine at a time may use it.
type Run struct {
	p     *Publisher
	order order
}

// NewRun begins a run.
func (p *Publisher) NewRun() *Run { return &Run{p: p, order: newOrder()} }

// PublishAll sends messages in their order and returns when all are stored. When one breaks
// the contract, nothing is sent. Any error is a *MessageError, or the context's; what the
// summary counts is stored nevertheless.
//
// It sends atomic batches, which the broker syncs once each. A batch that the stream refuses
// (a message known already, no atomic publishing) or does not acknowledge is sent again
// message by message with the same ids, many at a time but never two of one subject. A message
// that the broker takes for a duplicate of one stored before the run's earlier messages of its
// subject is sent once more without its id, which makes it the last again.
func (r *Run) PublishAll(ctx context.Context, messages []Message) (Summary, error) {
	for i := range messages {
		if err := r.p.Check(&messages[i]); err != nil {
			return Summary{}, &MessageError{i, err}
		}
	}
	b := bulk{p: r.p, nc: r.p.js.Conn(), order: r.order}
	defer b.close()
	for next := 0; next < len(messages); {
		msgs, err := r.p.cut(messages[next:])
		if err != nil {
			return b.sum, &MessageError{next, err}
		}
		if failed, err := b.send(ctx, msgs); err != nil {
			return b.sum, &MessageError{next + failed, err}
		}
		next += len(msgs)
		if r.p.cfg.Progress != nil {
			r.p.cfg.Progress(b.sum)
		}
	}
	return b.sum, nil
}
