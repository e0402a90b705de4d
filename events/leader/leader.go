// Package leader asks a stream's leader: what the stream is like now, and for its messages.
//
// # Promises
//
//   - Every answer is the leader's. An answer from a node that knows no leader is an error: it may
//     be old.
//   - No request takes longer than RequestTimeout, and none is sent while there is no connection.
//
// # Why
//
// The client library's GetMsg uses direct access where the stream allows it, and any replica
// answers that. A replica that lags says "no message" about a message that is there. To package
// lineage that means "pushed out by newer messages of its subject", and a stream that holds another
// message at the checkpoint would pass for ours. NextMessage decides that nothing follows the
// checkpoint: a stale answer would skip events. A snapshot's name that a replica does not have yet
// would pass for one that was never stored.
package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// RequestTimeout bounds one request to the broker.
const RequestTimeout = 2 * time.Second

// Why there is no answer that counts, beside the errors of natserr.
var (
	// ErrNotConnected means that there is no connection, so that a request would only wait.
	ErrNotConnected = errors.New("not connected")

	// ErrLeaderless means that the answer came from a node that only knows how the stream once was.
	// The nodes of a cluster that are too few to agree on anything go on answering like that.
	ErrLeaderless = errors.New("the stream has no leader: too few nodes of the broker's cluster are up and connected")
)

// Stream is a stream as its leader knows it. Any goroutine may call its methods.
type Stream struct {
	JS   jetstream.JetStream
	Name string
}

// prefix is what the subjects of JetStream's API begin with: another one in another domain.
func (s Stream) prefix() string {
	if other := s.JS.Options().APIPrefix; other != "" {
		return strings.TrimSuffix(other, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}

// Info returns the stream's configuration and state. The error is jetstream.ErrStreamNotFound, or
// says why there was no answer that counts.
func (s Stream) Info(ctx context.Context) (*jetstream.StreamInfo, error) {
	if !s.JS.Conn().IsConnected() {
		return nil, ErrNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	stream, err := s.JS.Stream(ctx, s.Name)
	if err != nil {
		return nil, natserr.Explain(s.JS.Conn(), err, s.prefix()+"STREAM.INFO."+s.Name)
	}
	info := stream.CachedInfo()
	if info.Cluster != nil && info.Cluster.Leader == "" {
		return nil, ErrLeaderless
	}
	return info, nil
}

// Message is a message as its stream keeps it.
type Message struct {
	Subject  string
	Sequence uint64
	ID       string    // Nats-Msg-Id; empty without one
	Binary   bool      // by its headers a CloudEvent in binary mode
	Time     time.Time // when the broker stored it
	Header   nats.Header
	Data     []byte
}

// request is what STREAM.MSG.GET takes.
type request struct {
	Sequence uint64    `json:"seq,omitempty"`
	From     time.Time `json:"start_time,omitzero"`
	Subject  string    `json:"next_by_subj,omitempty"`
	Last     string    `json:"last_by_subj,omitempty"`
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

// FirstAfter returns the first message, by sequence, that the broker stored after t, or
// jetstream.ErrMsgNotFound. The broker bisects: where clocks differed it may be a later one, or
// none.
func (s Stream) FirstAfter(ctx context.Context, t time.Time) (Message, error) {
	m, err := s.get(ctx, request{From: t.Add(1), Subject: ">"})
	if err == nil && !m.Time.After(t) { // a broker that does not know the question answers with its first message
		return Message{}, jetstream.ErrMsgNotFound
	}
	return m, err
}

// PurgeBefore erases the messages on subject before the sequence.
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

// subjectsTimeout bounds a request of Subjects, whose answer may have a hundred thousand.
const subjectsTimeout = 5 * RequestTimeout

// Subjects returns a page of the subjects that match filter, each with the number of its messages,
// and how many match in all. Pages are asked for by offset until all have come.
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
	subject := s.prefix() + what + "." + s.Name
	m, err := nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return natserr.Explain(nc, err, subject)
	}
	return json.Unmarshal(m.Data, reply)
}

func (s Stream) get(ctx context.Context, r request) (Message, error) {
	nc := s.JS.Conn()
	if !nc.IsConnected() {
		return Message{}, ErrNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	body, err := json.Marshal(r)
	if err != nil {
		return Message{}, err
	}
	subject := s.prefix() + "STREAM.MSG.GET." + s.Name
	reply, err := nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		return Message{}, natserr.Explain(nc, err, subject)
	}
	m, err := parse(reply.Data)
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
	m := Message{Subject: r.Message.Subject, Sequence: r.Message.Sequence, Time: r.Message.Time, Data: r.Message.Data}
	if len(r.Message.Header) == 0 {
		return m, nil
	}
	header, err := nats.DecodeHeadersMsg(r.Message.Header)
	if err != nil {
		return Message{}, err
	}
	m.Header, m.ID, m.Binary = header, header.Get(jetstream.MsgIDHeader), events.IsBinaryMode(header)
	return m, nil
}
