package projector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// requestTimeout bounds one question to the broker.
const requestTimeout = 2 * time.Second

// errAway means that there is no connection, so that asking would only wait.
var errAway = errors.New("not connected")

// ErrLeaderless means that the answer came from a node that only knows how the stream once was: the nodes of a
// cluster that are too few to agree on anything go on answering so.
var ErrLeaderless = errors.New("the stream has no leader: too few nodes of the broker's cluster are up and connected")

// Why a broker that is reached does not answer about a stream.
var (
	ErrNoJetStream = errors.New("it has no JetStream, or this user may not use it")
	ErrSilent      = errors.New("its JetStream does not answer; in a cluster: it has no leader, since too few nodes are up and connected")
)

// silence is the reason of an answer that did not come, and says that one of the above is it.
type silence struct{ is, because error }

func (s silence) Error() string   { return s.is.Error() }
func (s silence) Unwrap() []error { return []error{s.is, s.because} }

// Reason says what the client library's error for an unanswered question means. Any other is returned as it is, and nil too.
func Reason(err error) error {
	switch {
	case errors.Is(err, events.ErrRefused):
		return err
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, nats.ErrNoResponders):
		return silence{ErrNoJetStream, err}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return silence{ErrSilent, err}
	}
	return err
}

// StreamInfo asks for a stream's configuration and state, as its leader knows them, for 2 s at most. The error
// is jetstream.ErrStreamNotFound, or says that there was no answer that counts. Any goroutine may call it.
func StreamInfo(ctx context.Context, js jetstream.JetStream, name string) (*jetstream.StreamInfo, error) {
	if !js.Conn().IsConnected() {
		return nil, errAway
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := js.Stream(ctx, name)
	if err != nil {
		return nil, Reason(events.Refusal(js.Conn(), err, jetstream.DefaultAPIPrefix+"STREAM.INFO."+name))
	}
	info := s.CachedInfo()
	if info.Cluster != nil && info.Cluster.Leader == "" {
		return nil, ErrLeaderless
	}
	return info, nil
}

// stored is a message as its stream keeps it.
type stored struct {
	subject string
	seq     uint64
	id      string // Nats-Msg-Id; empty without one
	time    time.Time
	data    []byte
}

// getMessage asks the stream's leader for the message at seq, or with next not empty for the first at
// or after seq on the subjects next; jetstream.ErrMsgNotFound when there is none. The client library
// would ask any replica, and one that is behind answers with what is no longer true.
func getMessage(ctx context.Context, nc *nats.Conn, stream string, seq uint64, next string) (stored, error) {
	if !nc.IsConnected() {
		return stored{}, errAway
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	question, err := json.Marshal(struct {
		Seq  uint64 `json:"seq,omitempty"`
		Next string `json:"next_by_subj,omitempty"`
	}{seq, next})
	if err != nil {
		return stored{}, err
	}
	subject := jetstream.DefaultAPIPrefix + "STREAM.MSG.GET." + stream
	reply, err := nc.RequestWithContext(ctx, subject, question)
	if err != nil {
		return stored{}, Reason(events.Refusal(nc, err, subject))
	}
	return readStored(reply.Data)
}

func readStored(reply []byte) (stored, error) {
	var r struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return stored{}, fmt.Errorf("answer about a message: %w", err)
	}
	if r.Error != nil {
		if r.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return stored{}, jetstream.ErrMsgNotFound
		}
		return stored{}, r.Error
	}
	m := stored{subject: r.Message.Subject, seq: r.Message.Seq, time: r.Message.Time, data: r.Message.Data}
	if len(r.Message.Header) == 0 {
		return m, nil
	}
	header, err := nats.DecodeHeadersMsg(r.Message.Header)
	if err != nil {
		return stored{}, fmt.Errorf("answer about a message: %w", err)
	}
	m.id = header.Get(jetstream.MsgIDHeader)
	return m, nil
}

// identityOf is what tells the stream from another of its name: the epoch in its metadata, else
// its creation time.
func identityOf(info *jetstream.StreamInfo, metadataEpoch string) readmodel.StreamIdentity {
	id := readmodel.StreamIdentity{
		Name:    info.Config.Name,
		Epoch:   info.Config.Metadata[metadataEpoch],
		Created: info.Created.UTC(),
	}
	if id.Epoch == "" {
		id.Epoch = strconv.FormatInt(info.Created.UnixNano(), 10)
	}
	return id
}
