package projector

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
	slices.SortFunc(copies, func(a, b Copy) int {
		return cmp.Or(strings.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Sequence, b.Sequence))
	})
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

// Retry publishes the event at seq again, with a new message id, if nothing newer is on its subject, and
// returns its new sequence. It can never bring back an older state than the subject has: the broker itself refuses.
func (r *Rejected) Retry(ctx context.Context, seq uint64) (_ uint64, err error) {
	defer func() { err = r.explained(err) }()
	x, err := r.find(ctx, seq)
	if err != nil {
		return 0, err
	}
	if x.Truncated {
		return 0, errors.New("the copy was cut at 64 KiB, so the event cannot be published from it; its publisher has to")
	}
	m := &nats.Msg{Subject: x.Subject, Data: x.payload, Header: nats.Header{
		events.HeaderContent:  {events.ContentType},
		jetstream.MsgIDHeader: {events.NewEventID()},
	}}
	if e, err := events.Decode(x.payload); err == nil && e.Type.Tombstone() {
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*requestTimeout)
	defer cancel()
	ack, err := r.js.PublishMsg(ctx, m, jetstream.WithExpectStream(r.stream), jetstream.WithExpectLastSequencePerSubject(seq))
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return 0, fmt.Errorf("%s has something newer, or the event is no longer there; not published, so that no older state comes back", x.Subject)
	}
	if err != nil {
		return 0, fmt.Errorf("publish on %s: %w", x.Subject, err)
	}
	return ack.Sequence, nil
}

// find is the copy of the event at seq of this stream, and of no other.
func (r *Rejected) find(ctx context.Context, seq uint64) (Copy, error) {
	stream, err := r.copies(ctx)
	if err != nil {
		return Copy{}, err
	}
	missing := fmt.Errorf("no rejected event of this stream has this sequence")
	if stream == nil {
		return Copy{}, missing
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := stream.GetLastMsgForSubject(ctx, events.RejectedPrefix+r.epoch+"."+strconv.FormatUint(seq, 10))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Copy{}, missing
	}
	if err != nil {
		return Copy{}, err
	}
	x, _ := copyOf(m.Subject, m.Header, bytes.Clone(m.Data), m.Time) // it was found by its form
	return x, nil
}

// Purge erases the copies under subject, or of events that were on subject, which may have wildcards (CheckPattern), and returns how
// many there were. The events stay in their stream: who replays it finds and copies them again.
func (r *Rejected) Purge(ctx context.Context, subject string) (n uint64, err error) {
	defer func() { err = r.explained(err) }()
	stream, err := r.copies(ctx)
	if err != nil || stream == nil {
		return 0, err
	}
	if strings.HasPrefix(subject, events.RejectedPrefix) {
		return purge(ctx, stream, subject)
	}
	copies, err := r.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, x := range copies {
		if !matches(x.Subject, subject) {
			continue
		}
		erased, err := purge(ctx, stream, x.subject)
		if err != nil {
			return n, err
		}
		n += erased
	}
	return n, nil
}

// purge erases what is under a subject, wildcards included, and counts it before.
func purge(ctx context.Context, stream jetstream.Stream, subject string) (n uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*requestTimeout)
	defer cancel()
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, err
	}
	for count := range maps.Values(info.State.Subjects) {
		n += count
	}
	return n, stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
}
