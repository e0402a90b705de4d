package publish

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
)

// Config configures a Publisher. The zero value is usable.
type Config struct {
	// Stream is the stream that must store the events, such as events.DefaultStream. If empty, any
	// stream with the subject may.
	Stream string

	// Timeout bounds the wait for one acknowledgment. 0 means 10 seconds.
	Timeout time.Duration

	// BatchSize is how many messages PublishAll sends as one atomic batch, at most 1,000, the
	// broker's own limit. 0 means 1,000.
	BatchSize int

	// Progress, if not nil, is called by PublishAll after each batch with the summary so far, on
	// PublishAll's goroutine.
	Progress func(Summary)
}

// Publisher publishes events. It validates before it sends, so the registry does not reject its
// events. Any goroutine may call its methods. The caller owns the connection; closing that also
// releases the Publisher's resources.
type Publisher struct {
	js       jetstream.JetStream
	async    jetstream.JetStream // for many messages at a time, with our own bounds
	cfg      Config
	noAtomic atomic.Bool // the stream accepts no atomic batches
}

// New returns a Publisher. With a nil js only its Check may be called.
func New(js jetstream.JetStream, cfg Config) *Publisher {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.BatchSize <= 0 || cfg.BatchSize > maxBatch {
		cfg.BatchSize = maxBatch
	}
	p := &Publisher{js: js, cfg: cfg}
	if js != nil {
		// The maker of js sets its bounds and handlers. These options cannot fail.
		p.async, _ = jetstream.New(js.Conn(), jetstream.WithPublishAsyncMaxPending(maxBatch), jetstream.WithPublishAsyncTimeout(cfg.Timeout))
	}
	return p
}

// Ack is the broker's acknowledgment: the event is stored.
type Ack struct {
	Sequence  uint64 // in the stream; of the first copy if Duplicate
	Duplicate bool   // the stream received an event with this id within the last two minutes
}

// Publish sends one event and waits until it is stored. An *events.Error in the chain means that
// the event violates the contract, or that its revision is more than a day ahead of the clock and not
// known, and that it was not sent. After any other error it may or may not be stored: publishing the
// same event again, with its id, is safe.
func (p *Publisher) Publish(ctx context.Context, e events.Event) (Ack, error) {
	msg, err := p.message(&Message{Event: e})
	if err != nil {
		return Ack{}, fmt.Errorf("publish: %w", err)
	}
	if err := p.checkAhead(ctx, e.Data); err != nil {
		return Ack{}, fmt.Errorf("publish: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	ack, err := p.js.PublishMsg(ctx, msg)
	if err != nil {
		return Ack{}, fmt.Errorf("publish on %s: %w", msg.Subject, natserr.PermissionError(p.js.Conn(), err, msg.Subject))
	}
	return Ack{Sequence: ack.Sequence, Duplicate: ack.Duplicate}, nil
}

// Message is one event to publish in bulk.
type Message struct {
	Event events.Event

	// Payload is the JSON that Event was decoded from, sent unchanged. If nil, Event is encoded.
	Payload []byte

	checked bool // made by ParseMessage: need not be decoded again
}

// ParseMessage returns a Message of one event's JSON, whose memory it shares. The error is an
// *events.Error.
func ParseMessage(payload []byte) (Message, error) {
	e, err := events.Decode(payload)
	if err != nil {
		return Message{}, err
	}
	return Message{Event: e, Payload: payload, checked: true}, nil
}

// headerRoom bounds the headers of a message: the longest id has 1 KiB.
const headerRoom = 4 << 10

// Check returns the *events.Error for which PublishAll would not send the message, including its
// headers. It needs no connection.
func (p *Publisher) Check(m *Message) error {
	if m.Payload == nil {
		return events.Validate(m.Event)
	}
	if !m.checked {
		e, err := events.Decode(m.Payload)
		if err != nil {
			return err
		}
		if e != m.Event {
			return &events.Error{Field: "event", Problem: "the payload is not that of the event"}
		}
	}
	if len(m.Payload)+headerRoom <= events.MaxPayload {
		return nil
	}
	_, err := p.message(m)
	return err
}

// message returns m as it is sent to the broker, with its headers (events/CONTRACT.md#publishing).
func (p *Publisher) message(m *Message) (*nats.Msg, error) {
	payload := m.Payload
	if payload == nil {
		var err error
		if payload, err = events.Encode(m.Event); err != nil {
			return nil, err
		}
	}
	header := nats.Header{
		events.HeaderContent:  {events.ContentType},
		jetstream.MsgIDHeader: {m.Event.ID},
	}
	if p.cfg.Stream != "" {
		header[jetstream.ExpectedStreamHeader] = []string{p.cfg.Stream}
	}
	if len(payload)+headerSize(header) > events.MaxPayload {
		return nil, &events.Error{Field: "event", Problem: fmt.Sprintf("longer than %d bytes with its headers", events.MaxPayload)}
	}
	return &nats.Msg{Subject: m.Event.Data.Subject().String(), Header: header, Data: payload}, nil
}

// headerSize returns how many bytes the broker counts for a header.
func headerSize(h nats.Header) int {
	n := len("NATS/1.0\r\n\r\n")
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(": ") + len(v) + len("\r\n")
		}
	}
	return n
}
