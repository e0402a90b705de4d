package projector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

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
