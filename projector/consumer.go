package projector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
)

const (
	// maxBatch is how many messages are requested at a time, and applied at a time.
	maxBatch      = 2000
	maxBatchBytes = 8 << 20

	heartbeat = time.Second // of the consumer

	// consumerEnds is when the broker removes a consumer that nobody reads.
	consumerEnds = time.Minute
)

// consumer delivers messages. Its channels stay open.
type consumer struct {
	messages chan jetstream.Msg
	failed   chan error
	pending  uint64 // messages that it had to deliver when it was made

	js      jetstream.JetStream
	made    jetstream.Consumer
	reading jetstream.ConsumeContext
	stopped chan struct{}
	count   uint64 // messages taken
}

// consume makes a consumer of the messages from a sequence on. The caller must stop it.
func (s *source) consume(ctx context.Context, from uint64) (*consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, stream.RequestTimeout)
	defer cancel()
	made, err := s.JS.CreateConsumer(ctx, s.Name, jetstream.ConsumerConfig{
		Description:   "registry projector",
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: consumerEnds,
	})
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", natserr.Explain(s.JS.Conn(), err, jetstream.DefaultAPIPrefix+"CONSUMER."))
	}

	c := &consumer{
		messages: make(chan jetstream.Msg, maxBatch), failed: make(chan error, 1), pending: made.CachedInfo().NumPending,
		js: s.JS, made: made, stopped: make(chan struct{}),
	}

	c.reading, err = made.Consume(c.receive,
		jetstream.PullMaxMessagesWithBytesLimit(maxBatch, maxBatchBytes), jetstream.PullHeartbeat(heartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case c.failed <- err:
			default: // an earlier error waits already
			}
		}))
	if err != nil {
		c.remove()
		return nil, fmt.Errorf("consumer: %w", err)
	}
	return c, nil
}

func (c *consumer) receive(m jetstream.Msg) {
	select {
	case c.messages <- m:
	case <-c.stopped:
	}
}

// take returns the next messages: first, and all that have arrived behind it. An error means that a message
// is missing after the returned batch: the client library may have taken its headers for the broker's own.
func (c *consumer) take(first jetstream.Msg) (batch []stream.Message, err error) {
	for next := first; ; {
		meta, err := next.Metadata()
		if err != nil {
			return batch, fmt.Errorf("a delivery cannot be read: %w", err)
		}
		c.count++
		if meta.Sequence.Consumer != c.count {
			return batch, errors.New("a delivery is missing")
		}
		batch = append(batch, stream.Message{
			Subject: next.Subject(), Sequence: meta.Sequence.Stream, Time: meta.Timestamp, Header: map[string][]string(next.Headers()), Data: next.Data(),
		})
		if len(batch) == maxBatch {
			return batch, nil
		}

		select {
		case next = <-c.messages:
		default:
			return batch, nil
		}
	}
}

func (c *consumer) stop() {
	close(c.stopped)
	c.reading.Stop()
	c.remove()
}

// remove removes the consumer at the broker, which otherwise does so after consumerEnds.
func (c *consumer) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), stream.RequestTimeout/4)
	defer cancel()
	_ = c.js.DeleteConsumer(ctx, c.made.CachedInfo().Stream, c.made.CachedInfo().Name)
}
