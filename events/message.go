package events

import (
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// headerRoom is more than the headers of a message take: the longest id has 1 KiB.
const headerRoom = 4 << 10

// Message is one event to publish in bulk.
type Message struct {
	Event Event

	// Payload is the JSON that Event was decoded from, sent as it is. Nil: Event is encoded.
	Payload []byte

	checked bool // made by ParseMessage: no need to decode again
}

// ParseMessage makes a Message of one event's JSON, kept as it is. The error is an *Error.
// The message shares the payload's memory.
func ParseMessage(payload []byte) (Message, error) {
	e, err := Decode(payload)
	if err != nil {
		return Message{}, err
	}
	return Message{Event: e, Payload: payload, checked: true}, nil
}

// Check says whether PublishAll would send the message, its headers counted; the error is an
// *Error. It needs no connection: the Publisher may have been made with a nil JetStream.
func (p *Publisher) Check(m *Message) error {
	if m.Payload == nil {
		return Validate(m.Event)
	}
	if err := m.checkPayload(); err != nil {
		return err
	}
	if len(m.Payload)+headerRoom <= MaxPayload {
		return nil
	}
	_, err := p.message(m)
	return err
}

func (m *Message) checkPayload() error {
	if m.checked {
		return nil
	}
	e, err := Decode(m.Payload)
	if err != nil {
		return err
	}
	if e != m.Event {
		return wrong("event", "the payload is not that of the event")
	}
	return nil
}

// NewEventID makes an event id: a UUID of version 7.
func NewEventID() string { return uuid.Must(uuid.NewV7()).String() }

// message is what goes over the wire. Headers are those of the API contract, events.
func (p *Publisher) message(m *Message) (*nats.Msg, error) {
	payload := m.Payload
	if payload == nil {
		var err error
		if payload, err = Encode(m.Event); err != nil {
			return nil, err
		}
	}
	header := nats.Header{
		HeaderContent:         {ContentType},
		jetstream.MsgIDHeader: {m.Event.ID},
	}
	if m.Event.Type.Tombstone() {
		header[jetstream.MsgRollup] = []string{jetstream.MsgRollupSubject}
	}
	if p.cfg.Stream != "" {
		header[jetstream.ExpectedStreamHeader] = []string{p.cfg.Stream}
	}
	if len(payload)+headerSize(header) > MaxPayload {
		return nil, wrong("event", "longer than 262144 bytes with its headers")
	}
	return &nats.Msg{Subject: m.Event.Data.Subject(), Header: header, Data: payload}, nil
}

// headerSize is how many bytes the broker counts for a header.
func headerSize(h nats.Header) int {
	n := len("NATS/1.0\r\n\r\n")
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(": ") + len(v) + len("\r\n")
		}
	}
	return n
}
