package events

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrConflict says that the subject's last message is not the one that PublishExpecting was
// given: somebody else has published since. Read again, decide again.
var ErrConflict = errors.New("the subject has another last message than expected")

// PublisherConfig says how to publish. The zero value is usable.
type PublisherConfig struct {
	// Stream is the stream that must take the events, such as DefaultStream. Empty:
	// whichever has the subject.
	Stream string

	// Timeout bounds the wait for one acknowledgement. 0: 10 seconds.
	Timeout time.Duration

	// BatchSize is how many messages PublishAll sends as one atomic batch, at most 1000,
	// which is the broker's own limit. 0: 1000.
	BatchSize int

	// Progress, when set, is called by PublishAll after each batch with the summary so far,
	// on the goroutine of PublishAll.
	Progress func(Summary)
}

// Publisher publishes events. It validates before it sends, so what it has sent is not
// rejected. Its methods may be called from any goroutine; the connection stays the caller's.
type Publisher struct {
	js       jetstream.JetStream
	cfg      PublisherConfig
	noAtomic atomic.Bool // the stream has refused an atomic batch as such
}

// Ack is the broker's acknowledgement: the event is stored.
type Ack struct {
	Sequence  uint64 // in the stream; of the first copy when Duplicate
	Duplicate bool   // the stream had an event of this id within the last two minutes
}

// NewPublisher makes a Publisher. With a nil js only its Check may be called.
func NewPublisher(js jetstream.JetStream, cfg PublisherConfig) *Publisher {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.BatchSize <= 0 || cfg.BatchSize > maxBatch {
		cfg.BatchSize = maxBatch
	}
	return &Publisher{js: js, cfg: cfg}
}

// Publish sends one event and waits until it is stored. An *Error in the chain means that
// the event breaks the contract and was not sent. After any other error it may be stored or
// not: publishing the same event again, with its id, is safe as long as nothing newer has been
// published on its subject. Several events that are to be repeated in order are for a Run.
func (p *Publisher) Publish(ctx context.Context, e Event) (Ack, error) {
	return p.publish(ctx, e)
}

// PublishExpecting is Publish on condition that the last message of the event's subject has
// the sequence lastSubjectSequence, 0 for none; else the error is ErrConflict. So is the
// error when the same call is made again after a lost acknowledgement: whoever gets it reads
// the subject's last message, which may be their own.
func (p *Publisher) PublishExpecting(ctx context.Context, e Event, lastSubjectSequence uint64) (Ack, error) {
	ack, err := p.publish(ctx, e, jetstream.WithExpectLastSequencePerSubject(lastSubjectSequence))
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
		return Ack{}, fmt.Errorf("publish on %s: %w", e.Data.Subject(), ErrConflict)
	}
	return ack, err
}

func (p *Publisher) publish(ctx context.Context, e Event, opts ...jetstream.PublishOpt) (Ack, error) {
	msg, err := p.message(&Message{Event: e})
	if err != nil {
		return Ack{}, fmt.Errorf("publish: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	ack, err := p.js.PublishMsg(ctx, msg, opts...)
	if err != nil {
		return Ack{}, fmt.Errorf("publish on %s: %w", msg.Subject, Refusal(p.js.Conn(), err, msg.Subject))
	}
	return Ack{Sequence: ack.Sequence, Duplicate: ack.Duplicate}, nil
}
