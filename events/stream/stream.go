// Package stream makes single requests about the event stream, and has the stream's configuration and
// identity.
//
// The stream's leader answers every request: a replica that lags would deny a message that exists. No
// request is sent while disconnected, and none takes longer than RequestTimeout, or writeTimeout if it writes.
//
//	stream.go    Stream: Info, Ensure, Message, PurgeBefore
//	config.go    Config, RejectedConfig
//	identity.go  Identity: the epoch of a stream, and its earlier epochs
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
)

// RequestTimeout bounds one request to the broker.
const RequestTimeout = 2 * time.Second

// writeTimeout bounds a request for which a broker syncs its disk.
const writeTimeout = 5 * RequestTimeout

// Reasons for the lack of a reply, besides the errors of natserr.
var (
	// ErrNotConnected means that there is no connection, so that a request would only wait.
	ErrNotConnected = errors.New("not connected")

	// ErrLeaderless means that the reply came from a node that only knows an earlier state of the
	// stream.
	ErrLeaderless = errors.New("the stream has no leader: too few nodes of the broker's cluster are up and connected")
)

// Stream is a stream as its leader knows it. Any goroutine may call its methods.
type Stream struct {
	JS   jetstream.JetStream
	Name string
}

// Info returns the stream's configuration and state. Options ask for more, such as its subjects. The error
// is jetstream.ErrStreamNotFound, or the reason for the lack of a reply.
func (s Stream) Info(ctx context.Context, options ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	nc := s.JS.Conn()
	if !nc.IsConnected() {
		return nil, ErrNotConnected
	}

	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	info, err := s.requestInfo(ctx, options)
	if err != nil {
		return nil, natserr.Explain(nc, err, s.apiPrefix()+"STREAM.INFO."+s.Name)
	}

	// A node that has lost its leader answers, too, but with an earlier state.
	if info.Cluster != nil && info.Cluster.Leader == "" {
		return nil, ErrLeaderless
	}
	return info, nil
}

// Create creates the stream. The name in cfg is s.Name.
func (s Stream) Create(ctx context.Context, cfg jetstream.StreamConfig) error {
	nc := s.JS.Conn()
	if !nc.IsConnected() {
		return ErrNotConnected
	}

	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err := s.JS.CreateStream(ctx, cfg)
	return natserr.Explain(nc, err, s.apiPrefix()+"STREAM.CREATE."+s.Name)
}

// Ensure creates the stream if it is missing. An existing stream keeps its configuration.
func (s Stream) Ensure(ctx context.Context, cfg jetstream.StreamConfig) (created bool, err error) {
	_, err = s.Info(ctx)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, err
	}

	err = s.Create(ctx, cfg)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return false, nil // another process was first
	}
	return err == nil, err
}

func (s Stream) requestInfo(ctx context.Context, options []jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	found, err := s.JS.Stream(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	if len(options) == 0 {
		return found.CachedInfo(), nil // the broker has just sent it
	}
	return found.Info(ctx, options...)
}

// Message is a message as its stream stores it.
type Message struct {
	Subject  string
	Sequence uint64
	Time     time.Time   // when the broker stored it
	Header   nats.Header // nil also if the headers do not decode: the client library does the same
	Data     []byte
}

// Event returns the event that the message carries, or the reason to reject it, an *events.Error. Every
// reader of events uses it, so that all take the same messages for events.
func (m *Message) Event() (events.Event, error) {
	if err := events.CheckHeaders(m.Header); err != nil {
		return events.Event{}, err
	}

	e, err := events.DecodeMessage(m.Subject, m.Data)
	if err != nil && events.IsBinaryMode(m.Header) {
		err = events.ErrBinaryMode
	}
	return e, err
}

// request is the request of STREAM.MSG.GET.
type request struct {
	Sequence uint64 `json:"seq,omitempty"`          // of the message, if Next and Last are empty
	Next     string `json:"next_by_subj,omitempty"` // the subject of the first message at or after Sequence
	Last     string `json:"last_by_subj,omitempty"` // the subject of the last message
}

// Message returns the message at a sequence. If no message is found, Message and the next three methods return
// jetstream.ErrMsgNotFound.
func (s Stream) Message(ctx context.Context, sequence uint64) (Message, error) {
	return s.getMessage(ctx, request{Sequence: sequence})
}

// NextMessage returns the first message at or after a sequence.
func (s Stream) NextMessage(ctx context.Context, sequence uint64) (Message, error) {
	return s.NextMessageOf(ctx, ">", sequence)
}

// NextMessageOf is NextMessage for the messages on a subject.
func (s Stream) NextMessageOf(ctx context.Context, subject string, sequence uint64) (Message, error) {
	return s.getMessage(ctx, request{Sequence: sequence, Next: subject})
}

// LastMessage returns the last message on a subject.
func (s Stream) LastMessage(ctx context.Context, subject string) (Message, error) {
	return s.getMessage(ctx, request{Last: subject})
}

// getMessage asks for one message. Its headers come inside the JSON of the reply, so that the client library
// takes none of them for the broker's own.
func (s Stream) getMessage(ctx context.Context, r request) (Message, error) {
	reply, err := s.requestAPI(ctx, "STREAM.MSG.GET", r)
	if err != nil {
		return Message{}, err
	}
	return parseMessage(reply)
}

// parseMessage reads the reply of STREAM.MSG.GET.
func parseMessage(reply []byte) (Message, error) {
	var r struct {
		Message struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return Message{}, err
	}

	m := Message{Subject: r.Message.Subject, Sequence: r.Message.Sequence, Time: r.Message.Time, Data: r.Message.Data}

	// Headers that do not decode are no reason to lose the message.
	if header, err := nats.DecodeHeadersMsg(r.Message.Header); err == nil {
		m.Header = header
	}
	return m, nil
}

// PurgeBefore deletes the messages on a subject before a sequence.
func (s Stream) PurgeBefore(ctx context.Context, subject string, sequence uint64) error {
	_, err := s.requestAPI(ctx, "STREAM.PURGE", jetstream.StreamPurgeRequest{Subject: subject, Sequence: sequence})
	return err
}

// PublishAfter stores an event's JSON if last is the sequence of the last message on its subject.
// Otherwise the error is a conflict (natserr.IsConflict).
func (s Stream) PublishAfter(ctx context.Context, subject string, payload []byte, last uint64) error {
	m := &nats.Msg{Subject: subject, Data: payload, Header: nats.Header{events.HeaderContent: {events.ContentType}}}
	return s.Publish(ctx, m, jetstream.WithExpectLastSequencePerSubject(last))
}

// Publish stores a message in the stream.
func (s Stream) Publish(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) error {
	nc := s.JS.Conn()
	if !nc.IsConnected() {
		return ErrNotConnected
	}

	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err := s.JS.PublishMsg(ctx, m, append(options, jetstream.WithExpectStream(s.Name))...)
	return natserr.Explain(nc, err, m.Subject)
}

// requestAPI sends a request to JetStream's API about the stream. It returns the reply, which is JSON, or the
// broker's error in the reply.
func (s Stream) requestAPI(ctx context.Context, operation string, body any) ([]byte, error) {
	nc := s.JS.Conn()
	if !nc.IsConnected() {
		return nil, ErrNotConnected
	}

	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	subject := s.apiPrefix() + operation + "." + s.Name
	m, err := nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return nil, natserr.Explain(nc, err, subject)
	}
	return m.Data, readRefusal(m.Data)
}

// readRefusal returns the broker's error in a reply, or nil.
func readRefusal(reply []byte) error {
	var r struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return err
	}
	if r.Error != nil {
		return r.Error
	}
	return nil
}

// apiPrefix returns the beginning of the subjects of JetStream's API, which depends on the domain.
func (s Stream) apiPrefix() string {
	if other := s.JS.Options().APIPrefix; other != "" {
		return strings.TrimSuffix(other, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}
