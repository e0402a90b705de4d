// Package publish sends events to their stream.
//
// A Publisher validates an event before it sends it, so that the registry does not reject it. It also asks
// for the last message on the event's subject, and sends only a newer event. So publishing events
// again, in any order and in any parts, is harmless.
//
// Start with Publisher.Publish; PublishAll does the same for a file or a database.
//
//	publish.go  Publisher: Publish
//	bulk.go     PublishAll
//	batch.go    atomic batches, for which nats.go has no client yet
//
// The events themselves are in another package, so that the read model and the HTTP API import no NATS
// client.
package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
)

// headerRoom is the number of bytes for the headers: the stream's limit, MaxPayload, includes them.
const headerRoom = 512

// Config configures a Publisher. The zero value is usable.
type Config struct {
	// Stream is the stream that stores the events. If empty, it is events.DefaultStream.
	Stream string

	// Timeout bounds the wait for one acknowledgment. 0 means 10 seconds.
	Timeout time.Duration

	// DryRun makes PublishAll send nothing, and count as Sent the messages that it would send.
	DryRun bool

	// AnyRevision sends events whose revision is far ahead of the clock. It is for states that a
	// registry already has.
	AnyRevision bool

	// Progress, if not nil, is called by PublishAll after each batch with the summary so far, on
	// PublishAll's goroutine.
	Progress func(Summary)
}

// Publisher publishes events. Any goroutine may call its methods. The caller owns the connection.
type Publisher struct {
	js  jetstream.JetStream
	cfg Config

	mu         sync.Mutex
	looked     bool            // PublishAll has asked whether the stream is empty
	beganEmpty bool            // the stream was empty then
	sent       map[string]bool // subjects sent so far, if the stream began empty
}

// New returns a Publisher.
func New(js jetstream.JetStream, cfg Config) *Publisher {
	if cfg.Stream == "" {
		cfg.Stream = events.DefaultStream
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	return &Publisher{js: js, cfg: cfg, sent: map[string]bool{}}
}

// StaleError is the error for an event that was not sent, since the stream has a newer state of its
// subject.
type StaleError struct {
	Known int64 // revision that the stream has
}

// Error names the known revision.
func (e *StaleError) Error() string {
	return fmt.Sprintf("not sent: the stream has the newer revision %d", e.Known)
}

// Ack acknowledges that the stream has the event.
type Ack struct {
	Sequence uint64 // in the stream
	Known    bool   // the stream had the event already, so it was not sent
}

// Publish sends one event and waits until it is stored. A *StaleError in the chain means that the
// event changes nothing: a backend publishes the state again with a greater revision. An
// *events.Error means that the event violates the contract. In both cases the event was not sent. After
// any other error it may or may not be stored: publishing it again is safe.
func (p *Publisher) Publish(ctx context.Context, e events.Event) (Ack, error) {
	msg, err := (&Message{Event: e}).encodeMessage()
	if err != nil {
		return Ack{}, err
	}

	// What does the stream have?
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	last, err := p.lastState(ctx, msg.Subject)
	if err != nil {
		return Ack{}, err
	}
	order, err := p.compareStates(e.Data, last.data)
	if err != nil {
		return Ack{}, err
	}

	switch order {
	case known:
		return Ack{Sequence: last.sequence, Known: true}, nil
	case stale:
		return Ack{Sequence: last.sequence}, &StaleError{events.Revision(last.data)}
	}

	ack, err := p.js.PublishMsg(ctx, msg, jetstream.WithExpectStream(p.cfg.Stream))
	if err != nil {
		return Ack{}, natserr.Explain(p.js.Conn(), err, msg.Subject)
	}
	return Ack{Sequence: ack.Sequence}, nil
}

// Message is one event to publish in bulk.
type Message struct {
	Event events.Event

	// Payload is the JSON that Event was decoded from, sent unchanged. If nil, Event is encoded.
	Payload []byte
}

// ParseMessage returns a Message of one event's JSON, whose memory it shares. The error is an
// *events.Error.
func ParseMessage(payload []byte) (Message, error) {
	e, err := events.Decode(payload)
	if err != nil {
		return Message{}, err
	}
	m := Message{Event: e, Payload: payload}
	return m, m.Check()
}

// Check returns the *events.Error because of which the message cannot be sent. A Payload must come from
// ParseMessage, which has validated its event.
func (m *Message) Check() error {
	if m.Payload == nil {
		return events.Validate(m.Event)
	}
	if len(m.Payload) > events.MaxPayload-headerRoom {
		return &events.Error{Field: "event", Problem: fmt.Sprintf("longer than %d bytes with its headers", events.MaxPayload)}
	}
	return nil
}

func (m *Message) encodeMessage() (*nats.Msg, error) {
	payload := m.Payload
	if payload == nil {
		var err error
		if payload, err = events.Encode(m.Event); err != nil {
			return nil, err
		}
	}

	return &nats.Msg{
		Subject: m.Event.Data.Subject().String(),
		Header:  nats.Header{events.HeaderContent: {events.ContentType}},
		Data:    payload,
	}, nil
}

// state is the last state of a subject in the stream.
type state struct {
	data     events.Data // nil if there is none
	sequence uint64
}

// lastState returns the state in the last message of a subject. The state is empty if there is no message, or
// if readers reject the message.
func (p *Publisher) lastState(ctx context.Context, subject string) (state, error) {
	m, err := stream.Stream{JS: p.js, Name: p.cfg.Stream}.LastMessage(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}

	e, err := m.Event()
	if err != nil {
		return state{}, nil // readers reject it
	}
	return state{e.Data, m.Sequence}, nil
}

// order is the result of comparing a state with the last state in the stream.
type order int

const (
	newer order = iota // the stream has an older state of the subject, or none
	known              // the stream has the same state
	stale              // the stream has a greater state
)

// compareStates compares d with last, the last state of its subject in the stream, or nil if there is none.
// The error is an *events.Error: the revision is far ahead of the clock, or the stream has a greater state
// with the same revision.
func (p *Publisher) compareStates(d, last events.Data) (order, error) {
	lastRevision := int64(0)
	if last != nil {
		lastRevision = events.Revision(last)
	}
	if !p.cfg.AnyRevision {
		if err := events.CheckRevision(d, lastRevision, time.Now()); err != nil {
			return newer, err
		}
	}

	if last == nil {
		return newer, nil
	}

	difference := events.Compare(d, last)
	if difference > 0 {
		return newer, nil
	}
	if difference == 0 {
		return known, nil
	}
	// Of two states with one revision, the stream's is the greater: readers would reject d.
	if events.Revision(d) == lastRevision {
		return stale, &events.Error{Field: "data.revision", Problem: fmt.Sprintf("revision %d has another state", lastRevision)}
	}
	return stale, nil
}
