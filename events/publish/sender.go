package publish

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
)

const (
	maxBatch      = 1000                   // messages: the broker's limit, also for unacknowledged single messages
	minBatch      = 8                      // messages: a batch costs the broker about as much as 8 syncs
	maxBatchBytes = 4 << 20                // bytes of payload of one batch, far below the broker's buffer
	maxAttempts   = 4                      // for a message without a reply
	attemptPause  = 250 * time.Millisecond // before sending such a message again
)

// The headers of an atomic batch, for which nats.go has no client yet.
const (
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence" // from 1
	headerBatchCommit   = "Nats-Batch-Commit"   // "1" on the last message
)

// Codes of the broker's errors that are not in nats.go.
const (
	codeAtomicDisabled = 10174 // the stream does not allow atomic batches
	codeInProcess      = 10158 // a message of this id is being stored just now
)

// batch returns how many of messages are the next batch.
func (p *Publisher) batch(messages []Message) int {
	most, size := min(len(messages), p.cfg.BatchSize), 0
	for i := range messages[:most] {
		n := len(messages[i].Payload)
		if n == 0 {
			n = len(events.AppendData(nil, messages[i].Event.Data))
		}
		if size += n; i > 0 && size > maxBatchBytes {
			return i
		}
	}
	return most
}

// sender sends the messages of one batch.
type sender struct {
	p          *Publisher
	nc         *nats.Conn
	sum        *Summary
	duplicates []duplicate
}

// duplicate is a message that the broker did not store, since the stream has had one of its id.
type duplicate struct {
	msg      *nats.Msg
	sequence uint64 // of the other
}

// send stores one batch, as a batch or message by message. It returns the index of the message that
// failed.
func (s *sender) send(ctx context.Context, msgs []*nats.Msg) (int, error) {
	if len(msgs) >= minBatch && !s.p.noAtomic.Load() {
		if done, err := s.atomically(ctx, msgs); done || err != nil {
			return 0, err
		}
	}
	return s.group(ctx, msgs)
}

// atomically sends msgs as one batch: all are stored, or none. done is false if they must be sent
// singly: the batch was refused, or its acknowledgment was lost. err is the context's, or matches
// natserr.ErrRefused.
func (s *sender) atomically(ctx context.Context, msgs []*nats.Msg) (done bool, err error) {
	id := rand.Text()
	last := len(msgs) - 1
	for i, msg := range msgs[:last] {
		if err := s.nc.PublishMsg(member(msg, id, i+1)); err != nil {
			return false, ctx.Err() // sending singly will meet the same error and can retry
		}
	}
	commit := member(msgs[last], id, last+1)
	commit.Header[headerBatchCommit] = []string{"1"}
	wait, cancel := context.WithTimeout(ctx, s.p.cfg.Timeout)
	defer cancel()
	reply, err := s.nc.RequestMsgWithContext(wait, commit)
	if refusal := natserr.PermissionError(s.nc, err, commit.Subject); errors.Is(refusal, natserr.ErrRefused) && ctx.Err() == nil {
		return false, refusal
	}
	if err != nil {
		return false, ctx.Err()
	}
	a, err := parseAck(reply.Data)
	if err != nil {
		if isCode(err, codeAtomicDisabled) {
			s.p.noAtomic.Store(true)
		}
		return false, nil
	}
	s.count(a, msgs...)
	return true, nil
}

// member returns a copy of msg as part of a batch. msg itself may still have to be sent singly.
func member(msg *nats.Msg, id string, sequence int) *nats.Msg {
	header := make(nats.Header, len(msg.Header)+3)
	maps.Copy(header, msg.Header)
	header[headerBatchID] = []string{id}
	header[headerBatchSequence] = []string{strconv.Itoa(sequence)}
	return &nats.Msg{Subject: msg.Subject, Header: header, Data: msg.Data}
}

// parseAck reads the reply to a batch. The error is a *jetstream.APIError if the broker refused it.
func parseAck(reply []byte) (Ack, error) {
	var answer struct {
		jetstream.PubAck
		Error *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(reply, &answer); {
	case err != nil:
		return Ack{}, fmt.Errorf("the broker's answer cannot be read: %w", err)
	case answer.Error != nil:
		return Ack{}, answer.Error
	case answer.Sequence == 0:
		return Ack{}, errors.New("the broker's answer has no sequence")
	}
	return Ack{answer.Sequence, answer.Duplicate}, nil
}

// count adds one acknowledgment, of one message or of a batch, which never is a duplicate.
func (s *sender) count(a Ack, msgs ...*nats.Msg) {
	if a.Duplicate {
		s.duplicates = append(s.duplicates, duplicate{msgs[0], a.Sequence})
	} else {
		s.sum.Sent += len(msgs)
	}
	s.sum.LastSequence = max(s.sum.LastSequence, a.Sequence)
}

// group stores each message singly, and returns the index of the first that is not stored. Their order
// on a subject decides nothing, so they are sent together. It sends messages without a reply again.
func (s *sender) group(ctx context.Context, msgs []*nats.Msg) (int, error) {
	if len(msgs) == 0 {
		return 0, nil
	}
	left := make([]int, len(msgs)) // indices of messages that are not stored yet
	for i := range left {
		left[i] = i
	}
	for attempt := 1; ; attempt++ {
		var err error
		if left, err = s.attempt(ctx, msgs, left); len(left) == 0 {
			return 0, nil
		}
		if ctx.Err() != nil {
			return left[0], ctx.Err()
		}
		// The broker's last error is about the last message.
		if refusal := natserr.PermissionError(s.nc, err, msgs[left[len(left)-1]].Subject); refusal != err {
			return left[0], refusal
		}
		if attempt == maxAttempts || !transient(err) {
			return left[0], err
		}
		if !pause.For(ctx, attemptPause) {
			return left[0], ctx.Err()
		}
	}
}

// attempt sends msgs[i] for each i of left once. It returns the indices that are not stored, and
// the reason: a refusal, if there was one, before a missing reply.
func (s *sender) attempt(ctx context.Context, msgs []*nats.Msg, left []int) (again []int, why error) {
	futures := make([]jetstream.PubAckFuture, len(left))
	errs := make([]error, len(left))
	for k, i := range left {
		futures[k], errs[k] = s.p.async.PublishMsgAsync(msgs[i], jetstream.WithStallWait(s.p.cfg.Timeout))
	}
	for k, i := range left {
		a, err := Ack{}, errs[k]
		if err == nil {
			a, err = wait(ctx, futures[k])
		}
		if err == nil {
			s.count(a, msgs[i])
			continue
		}
		again = append(again, i)
		if why == nil || !transient(err) {
			why = err
		}
	}
	return again, why
}

func wait(ctx context.Context, f jetstream.PubAckFuture) (Ack, error) {
	select {
	case a := <-f.Ok():
		return Ack{a.Sequence, a.Duplicate}, nil
	case err := <-f.Err():
		return Ack{}, err
	case <-ctx.Done():
		return Ack{}, ctx.Err()
	}
}

// transient reports whether err leaves open whether the message is stored. Such a message is sent
// again with its id.
func transient(err error) bool {
	var api *jetstream.APIError
	return !errors.As(err, &api) || api.ErrorCode == codeInProcess
}

func isCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}
