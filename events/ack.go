package events

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// Error codes of the broker that are not in nats.go.
const (
	codeAtomicDisabled = 10174 // the stream does not allow atomic batches
	codeInProcess      = 10158 // a message of this id is being stored just now
)

// ack is the broker's answer to a message or to a batch's last one.
type ack struct {
	Sequence  uint64 `json:"seq"`
	Duplicate bool   `json:"duplicate"`
}

// ackError is the broker's refusal.
type ackError struct {
	ErrorCode   int    `json:"err_code"`
	Description string `json:"description"`
}

// Error is the broker's description with its code.
func (e *ackError) Error() string {
	return fmt.Sprintf("the broker refused it: %s (%d)", e.Description, e.ErrorCode)
}

// parseAck reads an answer. The error is nats.ErrNoResponders when nobody takes the subject,
// an *ackError when the broker refused.
func parseAck(reply *nats.Msg) (ack, error) {
	if len(reply.Data) == 0 && reply.Header.Get("Status") == "503" {
		return ack{}, nats.ErrNoResponders
	}
	var answer struct {
		ack   `json:",inline"`
		Error *ackError `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return ack{}, fmt.Errorf("the broker's answer cannot be read: %w", err)
	}
	if answer.Error != nil {
		return ack{}, answer.Error
	}
	if answer.Sequence == 0 {
		return ack{}, fmt.Errorf("the broker's answer has no sequence")
	}
	return answer.ack, nil
}
