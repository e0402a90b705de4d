package events

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go"
)

// The headers of an atomic batch, for which nats.go has no client yet.
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence" // from 1
	headerBatchCommit   = "Nats-Batch-Commit"   // "1" on the last message
)

// atomic sends msgs as one batch: all are stored, or none. done is false when they must be
// sent singly: the batch was refused, or nobody knows, because the acknowledgement is lost.
// err is the context's, or matches ErrRefused.
func (b *bulk) atomic(ctx context.Context, msgs []*nats.Msg) (done bool, err error) {
	id := rand.Text()
	last := len(msgs) - 1
	for i, msg := range msgs[:last] {
		if err := b.nc.PublishMsg(member(msg, id, i+1)); err != nil {
			return false, ctx.Err() // sending singly will meet the same and can retry
		}
	}
	commit := member(msgs[last], id, last+1)
	commit.Header[headerBatchCommit] = []string{"1"}
	wait, cancel := context.WithTimeout(ctx, b.p.cfg.Timeout)
	defer cancel()
	reply, err := b.nc.RequestMsgWithContext(wait, commit)
	if refusal := Refusal(b.nc, err, commit.Subject); errors.Is(refusal, ErrRefused) && ctx.Err() == nil {
		return false, refusal
	}
	if err != nil {
		return false, ctx.Err()
	}
	a, err := parseAck(reply)
	if err != nil {
		b.refused(err)
		return false, nil
	}
	b.count(a, msgs...)
	return true, nil
}

// refused remembers a stream that takes no batches at all.
func (b *bulk) refused(err error) {
	var api *ackError
	if errors.As(err, &api) && api.ErrorCode == codeAtomicDisabled {
		b.p.noAtomic.Store(true)
	}
}

// member is msg as part of a batch. msg itself may still have to be sent singly.
func member(msg *nats.Msg, id string, sequence int) *nats.Msg {
	header := make(nats.Header, len(msg.Header)+3)
	maps.Copy(header, msg.Header)
	header[headerBatchID] = []string{id}
	header[headerBatchSequence] = []string{strconv.Itoa(sequence)}
	return &nats.Msg{Subject: msg.Subject, Header: header, Data: msg.Data}
}
