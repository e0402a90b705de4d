// Package leader reads a stream: it queries the stream's leader for the current state and for single
// messages, and reads all messages in order.
//
// # Promises
//
//   - Every reply is the leader's. A reply from a node that knows no leader is an error, since it may
//     be outdated.
//   - No request takes longer than RequestTimeout, and none is sent while disconnected.
//   - No message of a stream stops a reader of it, whatever a publisher has stored. A stored message
//     has one decoder, which cannot fail, and is told apart from the broker's own messages by what
//     only the broker sets (Reader).
//
// # Why
//
// The client library's GetMsg uses direct access if the stream allows it, and any replica answers
// that. A replica that lags reports "no message" for a message that exists. Package lineage would
// take that for a message displaced by newer ones of its subject, and accept a stream that holds
// another message at the checkpoint. NextMessage decides that nothing follows the checkpoint: an
// outdated reply would skip events. And a snapshot whose name a replica does not have yet would be
// taken for one that was never stored.
package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
)

// RequestTimeout bounds one request to the broker.
const RequestTimeout = 2 * time.Second

// Reasons for the lack of a valid reply, besides the errors of natserr.
var (
	// ErrNotConnected means that there is no connection, so that a request would only wait.
	ErrNotConnected = errors.New("not connected")

	// ErrLeaderless means that the reply came from a node that only knows an earlier state of the
	// stream. The nodes of a cluster without a quorum keep answering like that.
	ErrLeaderless = errors.New("the stream has no leader: too few nodes of the broker's cluster are up and connected")
)

// Stream is a stream as its leader knows it. Any goroutine may call its methods.
type Stream struct {
	JS   jetstream.JetStream
	Name string
}

// Prefix returns the beginning of the subjects of JetStream's API, which depends on the domain.
func (s Stream) Prefix() string {
	if other := s.JS.Options().APIPrefix; other != "" {
		return strings.TrimSuffix(other, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}

// Info returns the stream's configuration and state. The error is jetstream.ErrStreamNotFound, or
// the reason for the lack of a valid reply.
func (s Stream) Info(ctx context.Context) (*jetstream.StreamInfo, error) {
	if !s.JS.Conn().IsConnected() {
		return nil, ErrNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	stream, err := s.JS.Stream(ctx, s.Name)
	if err != nil {
		return nil, natserr.Explain(s.JS.Conn(), err, s.Prefix()+"STREAM.INFO."+s.Name)
	}
	info := stream.CachedInfo()
	if info.Cluster != nil && info.Cluster.Leader == "" {
		return nil, ErrLeaderless
	}
	return info, nil
}

// Message is a message as its stream stores it.
type Message struct {
	Subject  string
	Sequence uint64
	ID       string    // Nats-Msg-Id; empty if it has none
	Time     time.Time // when the broker stored it
	Header   nats.Header
	Data     []byte

	Unreadable bool // it has headers that do not decode; Header is then nil
}

// request is the request of STREAM.MSG.GET.
type request struct {
	Sequence uint64 `json:"seq,omitempty"`
	Subject  string `json:"next_by_subj,omitempty"`
	Last     string `json:"last_by_subj,omitempty"`
}

// Message returns the message at seq, or jetstream.ErrMsgNotFound.
func (s Stream) Message(ctx context.Context, seq uint64) (Message, error) {
	return s.get(ctx, request{Sequence: seq})
}

// NextMessage returns the first message at or after seq on subject, which may have wildcards, or
// jetstream.ErrMsgNotFound.
func (s Stream) NextMessage(ctx context.Context, seq uint64, subject string) (Message, error) {
	return s.get(ctx, request{Sequence: seq, Subject: subject})
}

// LastMessage returns the last message on subject, or jetstream.ErrMsgNotFound.
func (s Stream) LastMessage(ctx context.Context, subject string) (Message, error) {
	return s.get(ctx, request{Last: subject})
}

// publishTimeout bounds the wait for an acknowledgment, for which a broker syncs its disk.
const publishTimeout = 5 * RequestTimeout

// PublishAfter stores an event's JSON if the last message on its subject has the sequence last, 0 for
// none, and returns its sequence. Otherwise the error is a conflict (natserr.IsConflict). An empty id
// is none.
func (s Stream) PublishAfter(ctx context.Context, subject string, payload []byte, id string, last uint64) (sequence uint64, err error) {
	nc := s.JS.Conn()
	if !nc.IsConnected() {
		return 0, ErrNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	m := &nats.Msg{Subject: subject, Data: payload, Header: nats.Header{events.HeaderContent: {events.ContentType}}}
	if id != "" {
		m.Header[jetstream.MsgIDHeader] = []string{id}
	}
	ack, err := s.JS.PublishMsg(ctx, m, jetstream.WithExpectStream(s.Name), jetstream.WithExpectLastSequencePerSubject(last))
	if err != nil {
		return 0, natserr.Explain(nc, err, subject)
	}
	return ack.Sequence, nil
}

// PurgeBefore deletes the messages on subject before the sequence.
func (s Stream) PurgeBefore(ctx context.Context, subject string, sequence uint64) error {
	var reply struct {
		Error *jetstream.APIError `json:"error"`
	}
	err := s.api(ctx, RequestTimeout, "STREAM.PURGE", jetstream.StreamPurgeRequest{Subject: subject, Sequence: sequence}, &reply)
	if err == nil && reply.Error != nil {
		return reply.Error
	}
	return err
}

// subjectsTimeout bounds a request of Subjects, whose reply may have 100,000 subjects.
const subjectsTimeout = 5 * RequestTimeout

// Subjects returns a page of the subjects that match filter, each with the number of its messages,
// and how many match in all. Callers request pages by offset until they have all.
func (s Stream) Subjects(ctx context.Context, filter string, offset int) (page map[string]uint64, total int, err error) {
	var reply struct {
		Error   *jetstream.APIError    `json:"error"`
		Total   int                    `json:"total"`
		Cluster *jetstream.ClusterInfo `json:"cluster"`
		State   struct {
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	err = s.api(ctx, subjectsTimeout, "STREAM.INFO", map[string]any{"subjects_filter": filter, "offset": offset}, &reply)
	switch {
	case err != nil:
		return nil, 0, err
	case reply.Error != nil:
		return nil, 0, reply.Error
	case reply.Cluster != nil && reply.Cluster.Leader == "":
		return nil, 0, ErrLeaderless
	}
	return reply.State.Subjects, reply.Total, nil
}

// api makes a request of JetStream's API about the stream.
func (s Stream) api(ctx context.Context, timeout time.Duration, what string, body, reply any) error {
	nc := s.JS.Conn()
	if !nc.IsConnected() {
		return ErrNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	subject := s.Prefix() + what + "." + s.Name
	m, err := nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return natserr.Explain(nc, err, subject)
	}
	return json.Unmarshal(m.Data, reply)
}

func (s Stream) get(ctx context.Context, r request) (Message, error) {
	var reply json.RawMessage
	if err := s.api(ctx, RequestTimeout, "STREAM.MSG.GET", r, &reply); err != nil {
		return Message{}, err
	}
	m, err := parse(reply)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return Message{}, fmt.Errorf("message %d of the stream %s: %w", r.Sequence, s.Name, err)
	}
	return m, err
}

// parse reads the answer of STREAM.MSG.GET.
func parse(reply []byte) (Message, error) {
	var r struct {
		Error   *jetstream.APIError `json:"error"`
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
	if r.Error != nil {
		if r.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return Message{}, jetstream.ErrMsgNotFound
		}
		return Message{}, r.Error
	}
	return newMessage(r.Message.Subject, r.Message.Sequence, r.Message.Time, decodeHeaders(r.Message.Header), r.Message.Data), nil
}
