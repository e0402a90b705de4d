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

	"example.org/registry/events/natserr"
)

// The headers of an atomic batch.
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence" // from 1
	headerBatchCommit   = "Nats-Batch-Commit"   // "1" on the last message
)

// codeAtomicDisabled is the broker's error code for a stream that takes no atomic batches.
const codeAtomicDisabled = 10174

// sendBatch stores messages as one atomic batch and returns the sequence of the last message. After an
// error, either all messages are stored or none.
func (p *Publisher) sendBatch(ctx context.Context, batch []*nats.Msg) (uint64, error) {
	nc := p.js.Conn()
	id := rand.Text()
	for i, msg := range batch {
		msg.Header[jetstream.ExpectedStreamHeader] = []string{p.cfg.Stream}
		msg.Header[headerBatchID] = []string{id}
		msg.Header[headerBatchSequence] = []string{strconv.Itoa(i + 1)}
	}

	for _, msg := range batch[:len(batch)-1] {
		if err := nc.PublishMsg(msg); err != nil {
			return 0, err
		}
	}

	// The last message commits the batch, and the broker replies to it alone.
	last := batch[len(batch)-1]
	last.Header[headerBatchCommit] = []string{"1"}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	reply, err := nc.RequestMsgWithContext(ctx, last)
	if err != nil {
		return 0, natserr.Explain(nc, err, last.Subject)
	}

	sequence, err := parseAck(reply.Data)
	if refusal, ok := errors.AsType[*jetstream.APIError](err); ok && refusal.ErrorCode == codeAtomicDisabled {
		return 0, fmt.Errorf("the stream takes no atomic batches; permit them: nats stream edit %s --allow-batch: %w", p.cfg.Stream, err)
	}
	return sequence, err
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
