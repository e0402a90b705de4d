package publish

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
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
// if the registry rejects the message.
func (p *Publisher) lastState(ctx context.Context, subject string) (state, error) {
	m, err := stream.Stream{JS: p.js, Name: p.cfg.Stream}.LastMessage(ctx, subject)
	if errors.Is(err, stream.ErrNoMessage) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	e, err := m.Event()
	if err != nil {
		return state{}, nil
	}
	return state{e.Data, m.Sequence}, nil
}

// sendBatch stores messages as one atomic batch. After an error all or none are stored.
func (p *Publisher) sendBatch(ctx context.Context, batch []*nats.Msg, sum *Summary) error {
	if len(batch) == 0 {
		return nil
	}
	if p.cfg.DryRun {
		sum.Sent += len(batch)
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
		return natserr.Explain(p.js.Conn(), err, batch[last].Subject)
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
