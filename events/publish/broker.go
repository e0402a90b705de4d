package publish

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
)

// The headers of an atomic batch, for which nats.go has no client yet.
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence" // from 1
	headerBatchCommit   = "Nats-Batch-Commit"   // "1" on the last message
)

// codeAtomicDisabled is the broker's error code for a stream that takes no atomic batches.
const codeAtomicDisabled = 10174

// state is the last state of a subject in the stream.
type state struct {
	data     events.Data // nil if there is none
	sequence uint64
}

// lastState returns the state in the last message of a subject. It is empty if there is no message, or
// if the registry rejects the message. The stream's leader answers: nats.go's own request may reach a
// replica that lags, and takes some headers of a stored message for the broker's.
func (p *Publisher) lastState(ctx context.Context, subject string) (state, error) {
	request, err := json.Marshal(map[string]string{"last_by_subj": subject})
	if err != nil {
		return state{}, err
	}
	api := p.apiPrefix() + "STREAM.MSG.GET." + p.cfg.Stream
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	answer, err := p.js.Conn().RequestWithContext(ctx, api, request)
	if err != nil {
		return state{}, natserr.Explain(p.js.Conn(), err, api)
	}

	var reply struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Sequence uint64 `json:"seq"`
			Header   []byte `json:"hdrs"`
			Data     []byte `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(answer.Data, &reply); err != nil {
		return state{}, fmt.Errorf("the broker's reply cannot be read: %w", err)
	}
	if reply.Error != nil && reply.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
		return state{}, nil
	}
	if reply.Error != nil {
		return state{}, reply.Error
	}
	header, err := nats.DecodeHeadersMsg(reply.Message.Header)
	if err != nil {
		header = nil // the client library delivers such a message without headers
	}
	e, err := events.DecodeStored(subject, header, reply.Message.Data)
	if err != nil {
		return state{}, nil
	}
	return state{e.Data, reply.Message.Sequence}, nil
}

// apiPrefix returns the beginning of the subjects of JetStream's API, which depends on the domain.
func (p *Publisher) apiPrefix() string {
	if prefix := p.js.Options().APIPrefix; prefix != "" {
		return strings.TrimSuffix(prefix, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}

// sendBatch stores messages as one atomic batch. After an error all or none are stored.
func (p *Publisher) sendBatch(ctx context.Context, batch []*nats.Msg, sum *Summary) error {
	if len(batch) == 0 {
		return nil
	}
	id, last := rand.Text(), len(batch)-1
	for i, msg := range batch {
		msg.Header[jetstream.ExpectedStreamHeader] = []string{p.cfg.Stream}
		msg.Header[headerBatchID] = []string{id}
		msg.Header[headerBatchSequence] = []string{strconv.Itoa(i + 1)}
		if i == last {
			break
		}
		if err := p.js.Conn().PublishMsg(msg); err != nil {
			return err
		}
	}
	batch[last].Header[headerBatchCommit] = []string{"1"}

	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	reply, err := p.js.Conn().RequestMsgWithContext(ctx, batch[last])
	if err != nil {
		return natserr.PermissionError(p.js.Conn(), err, batch[last].Subject)
	}
	sequence, err := parseAck(reply.Data)
	if refusal, ok := errors.AsType[*jetstream.APIError](err); ok && refusal.ErrorCode == codeAtomicDisabled {
		return fmt.Errorf("the stream takes no atomic batches; permit them: nats stream edit %s --allow-batch: %w", p.cfg.Stream, err)
	}
	if err != nil {
		return err
	}
	sum.Sent += len(batch)
	sum.LastSequence = max(sum.LastSequence, sequence)
	return nil
}

// parseAck returns the sequence of the batch's last message. The error is a *jetstream.APIError if the
// broker refused the batch.
func parseAck(reply []byte) (uint64, error) {
	var ack struct {
		Sequence uint64              `json:"seq"`
		Error    *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply, &ack); err != nil {
		return 0, fmt.Errorf("the broker's reply cannot be read: %w", err)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	if ack.Sequence == 0 {
		return 0, errors.New("the broker's reply has no sequence")
	}
	return ack.Sequence, nil
}
