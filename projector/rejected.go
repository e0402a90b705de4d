package projector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// Rejected is the stream of rejected events as an operator sees it: what a projector copied there. One
// goroutine at a time.
type Rejected struct {
	js     jetstream.JetStream
	stream string // of the events
	epoch  string // its, as in the copies' subjects
}

// Copy is the copy of one rejected event. What it says was written by others.
type Copy struct {
	Epoch     string // of the stream that the event is in, as in the copy's subject
	Sequence  uint64 // in that stream
	Subject   string // of the event
	Reason    string
	Time      time.Time // when the event was stored; when it was copied, where that is not known
	Truncated bool      // the copy's payload is not whole

	subject string // of the copy
	payload []byte
}

// OpenRejected looks which stream the events are in.
func OpenRejected(ctx context.Context, js jetstream.JetStream, stream string) (*Rejected, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", stream, events.Refusal(js.Conn(), err, ""))
	}
	epoch := identityOf(s.CachedInfo(), events.MetadataEpoch).Epoch
	return &Rejected{js: js, stream: stream, epoch: token(epoch)}, nil
}

// Epoch is that of the event stream, as in the subjects of copies.
func (r *Rejected) Epoch() string { return r.epoch }

// explained is err, or that this user of the broker may not ask what it has asked.
func (r *Rejected) explained(err error) error { return events.Refusal(r.js.Conn(), err, "") }

// List returns every copy, in the order of epoch and sequence; none when nothing was ever rejected.
func (r *Rejected) List(ctx context.Context) (copies []Copy, err error) {
	defer func() { err = r.explained(err) }()
	stream, err := r.copies(ctx)
	if err != nil || stream == nil {
		return nil, err
	}
	if copies, err = readCopies(ctx, stream); err != nil {
		return nil, err
	}
	slices.SortFunc(copies, func(a, b Copy) int {
		return cmp.Or(strings.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Sequence, b.Sequence))
	})
	return copies, nil
}

// readCopies reads what the stream holds when it is asked.
func readCopies(ctx context.Context, stream jetstream.Stream) (copies []Copy, err error) {
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	info, err := consumer.Info(ctx)
	if err != nil || info.NumPending == 0 {
		return nil, err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, err
	}
	defer messages.Stop()
	for left := info.NumPending; left > 0; {
		waiting, cancel := context.WithTimeout(ctx, 5*requestTimeout)
		m, err := messages.Next(jetstream.NextContext(waiting))
		cancel()
		if err != nil {
			return nil, fmt.Errorf("read the rejected events: %w", err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		left = meta.NumPending
		if x, ok := copyOf(m.Subject(), m.Headers(), m.Data(), meta.Timestamp); ok {
			copies = append(copies, x)
		}
	}
	return copies, nil
}

// copies is the stream of copies; nil while there is none.
func (r *Rejected) copies(ctx context.Context) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := r.js.Stream(ctx, events.RejectedStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return stream, err
}

// copyOf is false for a message that no projector made.
func copyOf(subject string, header nats.Header, payload []byte, stored time.Time) (Copy, bool) {
	epoch, number, found := strings.Cut(strings.TrimPrefix(subject, events.RejectedPrefix), ".")
	seq, err := strconv.ParseUint(number, 10, 64)
	if !found || err != nil {
		return Copy{}, false
	}
	x := Copy{
		Epoch: epoch, Sequence: seq, Subject: header.Get(events.HeaderSubject), Reason: header.Get(events.HeaderReason),
		Time: stored, Truncated: header.Get(events.HeaderTruncated) != "", subject: subject, payload: payload,
	}
	if t, err := time.Parse(time.RFC3339Nano, header.Get(events.HeaderTime)); err == nil {
		x.Time = t
	}
	return x, true
}
