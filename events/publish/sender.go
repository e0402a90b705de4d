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

// batch returns the messages of the next batch.
func (p *Publisher) batch(messages []Message) ([]*nats.Msg, error) {
	var (
		most = min(len(messages), p.cfg.BatchSize)
		out  = make([]*nats.Msg, 0, most)
		size int
	)
	for i := range messages[:most] {
		msg, err := p.message(&messages[i])
		if err != nil {
			return nil, err
		}
		size += len(msg.Data)
		if i > 0 && size > maxBatchBytes {
			break
		}
		out = append(out, msg)
	}
	return out, nil
}

// sender is one call of PublishAll.
type sender struct {
	p     *Publisher
	nc    *nats.Conn
	order ackTracker // the run's
	sum   Summary
}

// send stores one batch, as a batch or message by message. It returns the index of the message that
// failed.
func (s *sender) send(ctx context.Context, msgs []*nats.Msg) (int, error) {
	if ctx.Err() != nil { // begin no batch that would stay half sent in the broker
		return 0, ctx.Err()
	}
	if len(msgs) >= minBatch && !s.p.noAtomic.Load() {
		if done, err := s.atomically(ctx, msgs); done || err != nil {
			return 0, err
		}
	}
	for start := 0; start < len(msgs); {
		group := distinct(msgs[start:])
		if failed, err := s.group(ctx, group); err != nil {
			return start + failed, err
		}
		start += len(group)
	}
	return 0, nil
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

// count adds one acknowledgment, of one message or of a batch.
func (s *sender) count(a Ack, msgs ...*nats.Msg) {
	if a.Duplicate {
		s.sum.Duplicates += len(msgs)
	} else {
		s.sum.Sent += len(msgs)
	}
	s.sum.LastSequence = max(s.sum.LastSequence, a.Sequence)
	for _, msg := range msgs {
		s.order.add(msg.Subject, a)
	}
}

// distinct returns the longest prefix of msgs with no subject twice.
func distinct(msgs []*nats.Msg) []*nats.Msg {
	seen := make(map[string]struct{}, len(msgs))
	for i, msg := range msgs {
		if _, there := seen[msg.Subject]; there {
			return msgs[:i]
		}
		seen[msg.Subject] = struct{}{}
	}
	return msgs
}

// group stores messages of different subjects, each as a single message, and returns the index of
// the first that is not stored. It sends messages without a reply again. Messages that the stream
// has in another order than the run are also sent again, without their ids.
func (s *sender) group(ctx context.Context, msgs []*nats.Msg) (int, error) {
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
		if err == nil { // all that is left has just lost its id, which happens to a message once
			attempt = 0
			continue
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
// the reason: a refusal, if there was one, before a missing reply. Outdated duplicates are among
// them, without an error, and have lost their id.
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
		switch {
		case err != nil:
			again = append(again, i)
			if why == nil || !transient(err) {
				why = err
			}
		case s.order.outdated(msgs[i].Subject, a):
			again = append(again, i)
			msgs[i] = withoutID(msgs[i])
		default:
			s.count(a, msgs[i])
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

// withoutID returns msg in a form that the broker stores even if it knows its id
// (events/CONTRACT.md#publishing: the header may be missing). A made-up id would look like another
// event. Without an id, a repetition after a lost acknowledgment is stored twice, which changes
// nothing.
func withoutID(msg *nats.Msg) *nats.Msg {
	header := maps.Clone(msg.Header)
	header.Del(jetstream.MsgIDHeader)
	return &nats.Msg{Subject: msg.Subject, Header: header, Data: msg.Data}
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
