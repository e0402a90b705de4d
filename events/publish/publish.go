// Package publish sends events to their stream.
//
// A Publisher validates an event before it sends it, so that the registry does not reject it. It asks
// for the last message of the event's subject first, and sends only what is newer: publishing
// anything again, in any order and in any pieces, is harmless.
//
//	publish.go  Publisher: Publish, PublishAll
//	broker.go   last messages, and atomic batches, for which nats.go has no client yet
//
// It is a package of its own so that the events, the read model and the HTTP API do not import a
// NATS client.
package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/events/stream"
)

const (
	maxBatch      = 1000        // messages: the broker's limit
	maxBatchBytes = 4 << 20     // payload, far below the broker's buffer
	maxQuestions  = 64          // about last messages, at once
	maxAttempts   = 4           // to send a batch that is not acknowledged
	attemptPause  = time.Second // before sending such a batch again
	headerRoom    = 512         // bytes for the headers of a message
)

// Config configures a Publisher. The zero value is usable.
type Config struct {
	// Stream is the stream that stores the events. If empty, it is events.DefaultStream.
	Stream string

	// Timeout bounds the wait for one acknowledgment. 0 means 10 seconds.
	Timeout time.Duration

	// BatchSize is how many messages PublishAll sends as one atomic batch, at most 1,000, the
	// broker's own limit. 0 means 1,000.
	BatchSize int

	// DryRun makes PublishAll count as Sent what it would send, and send nothing.
	DryRun bool

	// AnyRevision sends events whose revision is far ahead of the clock. It is for states that a
	// registry already has.
	AnyRevision bool

	// Progress, if not nil, is called by PublishAll after each batch with the summary so far, on
	// PublishAll's goroutine.
	Progress func(Summary)
}

// Publisher publishes events. Any goroutine may call its methods. The caller owns the connection.
type Publisher struct {
	js  jetstream.JetStream
	cfg Config

	mu     sync.Mutex
	looked bool                // whether PublishAll has looked if the stream is empty
	sent   map[string]struct{} // subjects that it has sent into an empty stream; nil if it was not empty
}

// New returns a Publisher.
func New(js jetstream.JetStream, cfg Config) *Publisher {
	if cfg.Stream == "" {
		cfg.Stream = events.DefaultStream
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.BatchSize <= 0 || cfg.BatchSize > maxBatch {
		cfg.BatchSize = maxBatch
	}
	return &Publisher{js: js, cfg: cfg}
}

// StaleError is the error for an event that was not sent, since the stream has a newer state of its
// subject.
type StaleError struct {
	Known int64 // revision that the stream has
}

// Error names the known revision.
func (e *StaleError) Error() string {
	return fmt.Sprintf("not sent: the stream has the newer revision %d", e.Known)
}

// Ack acknowledges that the stream has the event.
type Ack struct {
	Sequence uint64 // in the stream
	Known    bool   // the stream had the event already, so it was not sent
}

// Publish sends one event and waits until it is stored. A *StaleError in the chain means that the
// event changes nothing: a backend publishes the state again with a greater revision. An
// *events.Error means that the event violates the contract. In both cases it was not sent. After
// any other error it may or may not be stored: publishing it again is safe.
func (p *Publisher) Publish(ctx context.Context, e events.Event) (Ack, error) {
	m := Message{Event: e}
	if err := m.Check(); err != nil {
		return Ack{}, fmt.Errorf("publish: %w", err)
	}
	msg, err := m.encode()
	if err != nil {
		return Ack{}, fmt.Errorf("publish: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	last, err := p.lastState(ctx, msg.Subject)
	if err != nil {
		return Ack{}, fmt.Errorf("publish on %s: %w", msg.Subject, err)
	}

	verdict, err := p.compare(e.Data, last.data)
	if err != nil {
		return Ack{}, fmt.Errorf("publish: %w", err)
	}
	switch verdict {
	case known:
		return Ack{Sequence: last.sequence, Known: true}, nil
	case stale:
		return Ack{Sequence: last.sequence}, fmt.Errorf("publish on %s: %w", msg.Subject, &StaleError{events.Revision(last.data)})
	}
	ack, err := p.js.PublishMsg(ctx, msg, jetstream.WithExpectStream(p.cfg.Stream))
	if err != nil {
		return Ack{}, fmt.Errorf("publish on %s: %w", msg.Subject, natserr.PermissionError(p.js.Conn(), err, msg.Subject))
	}
	return Ack{Sequence: ack.Sequence}, nil
}

// Message is one event to publish in bulk.
type Message struct {
	Event events.Event

	// Payload is the JSON that Event was decoded from, sent unchanged. If nil, Event is encoded.
	Payload []byte
}

// ParseMessage returns a Message of one event's JSON, whose memory it shares. The error is an
// *events.Error.
func ParseMessage(payload []byte) (Message, error) {
	e, err := events.Decode(payload)
	if err != nil {
		return Message{}, err
	}
	m := Message{Event: e, Payload: payload}
	return m, m.Check()
}

// Check returns the *events.Error for which the message would not be sent. A Payload must come from
// ParseMessage.
func (m *Message) Check() error {
	if m.Payload == nil {
		return events.Validate(m.Event)
	}
	if len(m.Payload) > events.MaxPayload-headerRoom {
		return &events.Error{Field: "event", Problem: fmt.Sprintf("longer than %d bytes with its headers", events.MaxPayload)}
	}
	return nil
}

// encode returns the message for the broker.
func (m *Message) encode() (*nats.Msg, error) {
	payload := m.Payload
	if payload == nil {
		var err error
		if payload, err = events.Encode(m.Event); err != nil {
			return nil, err
		}
	}
	return &nats.Msg{
		Subject: m.Event.Data.Subject().String(),
		Header:  nats.Header{events.HeaderContent: {events.ContentType}},
		Data:    payload,
	}, nil
}

// verdict is the place of a state among those that the stream has.
type verdict int

const (
	newer verdict = iota // or the first of its subject
	known
	stale
)

// compare compares a state with the last one of its subject, which may be nil. The error is an
// *events.Error: the revision is far ahead of the clock, or is that of another state, which wins.
func (p *Publisher) compare(d, last events.Data) (verdict, error) {
	if last == nil {
		return newer, p.checkRevision(d, 0)
	}
	revision := events.Revision(last)
	if err := p.checkRevision(d, revision); err != nil {
		return newer, err
	}
	order := events.Compare(d, last)
	if order > 0 {
		return newer, nil
	}
	if order == 0 {
		return known, nil
	}
	if events.Revision(d) == revision {
		return stale, &events.Error{Field: "data.revision", Problem: fmt.Sprintf("revision %d has another state", revision)}
	}
	return stale, nil
}

func (p *Publisher) checkRevision(d events.Data, known int64) error {
	if p.cfg.AnyRevision {
		return nil
	}
	return events.CheckRevision(d, known, time.Now())
}

// Summary counts the results of PublishAll.
type Summary struct {
	Sent         int    // stored
	Known        int    // not sent: the stream has them
	Stale        int    // not sent: the stream has a greater revision
	LastSequence uint64 // the highest of what was sent and of what the stream had, or 0 for none
}

// Done returns how many messages were dealt with.
func (s Summary) Done() int { return s.Sent + s.Known + s.Stale }

// MessageError is the error of the first message of PublishAll that is not certainly dealt with.
type MessageError struct {
	Index int // in the slice
	Err   error
}

// Error returns "message <index>: <reason>".
func (e *MessageError) Error() string { return fmt.Sprintf("message %d: %v", e.Index, e.Err) }

// Unwrap returns the reason.
func (e *MessageError) Unwrap() error { return e.Err }

// PublishAll sends those messages that are newer than what the stream has on their subjects, and
// returns when all are stored. If one violates the contract, nothing is sent. The error is a
// *MessageError: the messages before it are dealt with, and so are those that the summary counts.
//
// It sends atomic batches, because the broker syncs to disk once a batch, ten times as fast as once
// a message.
func (p *Publisher) PublishAll(ctx context.Context, messages []Message) (Summary, error) {
	var sum Summary
	for i := range messages {
		if err := messages[i].Check(); err != nil {
			return sum, &MessageError{i, err}
		}
	}
	for from := 0; from < len(messages); {
		batch := p.nextBatch(messages[from:])
		n, err := p.publishBatch(ctx, batch, &sum)
		if err != nil {
			return sum, &MessageError{from + n, err}
		}
		from += len(batch)
		if p.cfg.Progress != nil {
			p.cfg.Progress(sum)
		}
	}
	return sum, nil
}

// nextBatch returns the messages of the next batch.
func (p *Publisher) nextBatch(messages []Message) []Message {
	size := 0
	for i := range messages {
		size += len(messages[i].Payload)
		if i == p.cfg.BatchSize || i > 0 && size > maxBatchBytes {
			return messages[:i]
		}
	}
	return messages
}

// publishBatch publishes a batch, and again if it is not acknowledged: what is stored by then is known
// to the stream. It returns the index of the message that failed.
func (p *Publisher) publishBatch(ctx context.Context, batch []Message, sum *Summary) (int, error) {
	for attempt := 1; ; attempt++ {
		plan, err := p.planBatch(ctx, batch)
		if err == nil {
			err = p.sendBatch(ctx, plan.send, &plan.sum)
		}
		if err == nil {
			sum.Sent += plan.sum.Sent
			sum.Known += plan.sum.Known
			sum.Stale += plan.sum.Stale
			sum.LastSequence = max(sum.LastSequence, plan.sum.LastSequence)
			if plan.wrong != nil {
				return plan.end, plan.wrong
			}
			return 0, nil
		}

		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		var refusal *jetstream.APIError
		if attempt == maxAttempts || errors.As(err, &refusal) || errors.Is(err, natserr.ErrRefused) || !pause.For(ctx, attemptPause) {
			return 0, err
		}
	}
}

// plan is what is to be done about a batch.
type plan struct {
	send  []*nats.Msg
	sum   Summary // of those that are not sent
	end   int     // index of the first message that is wrong, or the number of messages
	wrong error   // an *events.Error, or nil
}

// planBatch asks for the last states of the batch's subjects and decides about each message, up to
// the first that is wrong.
func (p *Publisher) planBatch(ctx context.Context, batch []Message) (*plan, error) {
	last, err := p.lastStates(ctx, batch)
	if err != nil {
		return nil, err
	}

	todo := &plan{end: len(batch)}
	for i := range batch {
		msg, err := batch[i].encode()
		if err != nil {
			return nil, err
		}
		has := last[msg.Subject]
		verdict, err := p.compare(batch[i].Event.Data, has.data)
		if err != nil {
			todo.end, todo.wrong = i, err
			break
		}
		switch verdict {
		case newer:
			todo.send = append(todo.send, msg)
			last[msg.Subject] = state{data: batch[i].Event.Data}
		case known:
			todo.sum.Known++
		case stale:
			todo.sum.Stale++
		}
		todo.sum.LastSequence = max(todo.sum.LastSequence, has.sequence)
	}
	return todo, nil
}

// lastStates returns the last states of the batch's subjects, by subject.
func (p *Publisher) lastStates(ctx context.Context, batch []Message) (map[string]state, error) {
	index := map[string]int{}
	for i := range batch {
		index[batch[i].Event.Data.Subject().String()] = i
	}
	if err := p.dropUnsent(ctx, index); err != nil {
		return nil, err
	}
	states := make([]state, len(batch))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(maxQuestions)
	for subject, i := range index {
		group.Go(func() (err error) {
			states[i], err = p.lastState(asking, subject)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	last := make(map[string]state, len(index))
	for subject, i := range index {
		last[subject] = states[i]
	}
	return last, nil
}

// dropUnsent takes the subjects out of index of which the stream can have nothing: it was empty before
// the first batch, and this Publisher has sent nothing on them. So a first import asks no questions. What
// somebody else publishes meanwhile is not seen, which is harmless: the revision decides.
func (p *Publisher) dropUnsent(ctx context.Context, index map[string]int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.looked {
		info, err := stream.Stream{JS: p.js, Name: p.cfg.Stream}.Info(ctx)
		if err != nil {
			return err
		}
		p.looked = true
		if info.State.LastSeq == 0 {
			p.sent = map[string]struct{}{}
		}
	}
	if p.sent == nil {
		return nil
	}

	for subject := range index {
		if _, was := p.sent[subject]; !was {
			p.sent[subject] = struct{}{} // from now on it may be there, also if the batch is not acknowledged
			delete(index, subject)
		}
	}
	return nil
}
