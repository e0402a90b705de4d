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
	// maxBatch is the most messages that are requested at a time, and applied at a time.
	maxBatch      = 2000
	maxBatchBytes = 8 << 20

	heartbeat = time.Second // between two signs of life while the broker has no message

	// consumerExpiry is how long the broker keeps a consumer that no client reads.
	consumerExpiry = time.Minute
)

// consumer delivers messages. Its channels stay open.
type consumer struct {
	messages chan jetstream.Msg
	failed   chan error
	pending  uint64 // number of messages that the stream had for the consumer at its creation

	js       jetstream.JetStream
	handle   jetstream.Consumer
	delivery jetstream.ConsumeContext
	stopped  chan struct{}
	taken    uint64 // number of messages that take has taken
}

// consume creates a consumer of the messages from a sequence on. The caller must stop it.
func (s *source) consume(ctx context.Context, from uint64) (*consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, stream.RequestTimeout)
	defer cancel()

	handle, err := s.JS.CreateConsumer(ctx, s.Name, jetstream.ConsumerConfig{
		Description:   "registry projector",
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: consumerExpiry,
	})
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", natserr.Explain(s.JS.Conn(), err, jetstream.DefaultAPIPrefix+"CONSUMER."))
	}

	c := &consumer{
		messages: make(chan jetstream.Msg, maxBatch), failed: make(chan error, 1), pending: handle.CachedInfo().NumPending,
		js: s.JS, handle: handle, stopped: make(chan struct{}),
	}
	c.delivery, err = handle.Consume(c.receive,
		jetstream.PullMaxMessagesWithBytesLimit(maxBatch, maxBatchBytes), jetstream.PullHeartbeat(heartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case c.failed <- err:
			default: // an earlier error waits in the channel
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

// take returns first and the messages that have arrived after it, maxBatch at most. An error means that a message is
// missing after the returned batch.
func (c *consumer) take(first jetstream.Msg) (batch []stream.Message, err error) {
	for next := first; ; {
		meta, err := next.Metadata()
		if err != nil {
			return batch, fmt.Errorf("a delivery cannot be read: %w", err)
		}

		// The broker numbers the deliveries without gaps, so a gap shows a lost one: the client library silently drops
		// a message whose headers it mistakes for a control message of the broker.
		c.taken++
		if meta.Sequence.Consumer != c.taken {
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
	c.delivery.Stop()
	c.remove()
}

// remove removes the consumer at the broker. If that fails, the broker removes it after consumerExpiry.
func (c *consumer) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), stream.RequestTimeout/4)
	defer cancel()
	_ = c.js.DeleteConsumer(ctx, c.handle.CachedInfo().Stream, c.handle.CachedInfo().Name)
}
