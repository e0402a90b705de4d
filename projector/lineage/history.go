package lineage

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/readmodel"
)

// History returns the marker of the stream's current history (events/CONTRACT.md#histories) and its
// sequence. If there is no readable marker, the sequence is 0 and the stream's epoch is the
// history's name.
func History(ctx context.Context, s leader.Stream) (h events.History, sequence uint64, err error) {
	h, sequence, readable, err := lastMarker(ctx, s)
	if !readable {
		return events.History{}, 0, err
	}
	return h, sequence, err
}

// lastMarker reads the last message on the markers' subject; at is 0 if there is none.
func lastMarker(ctx context.Context, s leader.Stream) (h events.History, at uint64, readable bool, err error) {
	m, err := s.LastMessage(ctx, events.HistorySubject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return events.History{}, 0, false, nil
	}
	if err != nil {
		return events.History{}, 0, false, err
	}
	h, bad := events.DecodeHistory(m.Data)
	return h, m.Sequence, bad == nil, nil
}

// Begin begins a new history of the stream, for a server or an operator that accepts the stream
// although it does not continue the history previous. If a marker of the stream follows previous
// already, the current history stays, so all that accept the stream agree, even if yet another
// history has begun. Begin returns the sequence of the current marker.
func Begin(ctx context.Context, s leader.Stream, previous string) (name string, sequence uint64, err error) {
	for {
		h, at, readable, err := lastMarker(ctx, s)
		if err != nil {
			return "", 0, err
		}
		if readable {
			follows, err := follows(ctx, s, previous)
			if err != nil {
				return "", 0, err
			}
			if follows {
				return h.Name, at, nil
			}
		}
		name, at, err = publishMarker(ctx, s, events.History{Name: events.NewEpoch(), Previous: previous}, at)
		if natserr.IsConflict(err) {
			continue // another server was faster
		}
		return name, at, err
	}
}

// follows reports whether any marker of the stream follows the history previous.
func follows(ctx context.Context, s leader.Stream, previous string) (bool, error) {
	for from := uint64(1); ; {
		m, err := s.NextMessage(ctx, from, events.HistorySubject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if h, bad := events.DecodeHistory(m.Data); bad == nil && h.Previous == previous {
			return true, nil
		}
		from = m.Sequence + 1
	}
}

// publishMarker publishes h if last is still the sequence of the last marker.
func publishMarker(ctx context.Context, s leader.Stream, h events.History, last uint64) (string, uint64, error) {
	payload, err := events.EncodeHistory(h)
	if err != nil {
		return "", 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, leader.RequestTimeout)
	defer cancel()
	ack, err := s.JS.PublishMsg(ctx, &nats.Msg{Subject: events.HistorySubject, Data: payload, Header: nats.Header{
		events.HeaderContent:  {events.ContentType},
		jetstream.MsgIDHeader: {h.Name},
	}}, jetstream.WithExpectStream(s.Name), jetstream.WithExpectLastSequencePerSubject(last))
	if err != nil {
		return "", 0, fmt.Errorf("begin a history: %w", natserr.PermissionError(s.JS.Conn(), err, events.HistorySubject))
	}
	return h.Name, ack.Sequence, nil
}

// compareHistory is the part of CompareMessage that neither clocks nor lost messages can mislead:
// messages read beyond the marker of another history are not part of the stream.
func compareHistory(ctx context.Context, s leader.Stream, at readmodel.Checkpoint) error {
	h, sequence, err := History(ctx, s)
	if err != nil || sequence == 0 || sequence > at.Sequence || h.Name == at.HistoryName() {
		return err
	}
	return &Error{Sentence: fmt.Sprintf("The stream %s is of the history %.64s since %d, and the read model at %d is of %.64s.",
		s.Name, h.Name, sequence, at.Sequence, at.HistoryName())}
}
