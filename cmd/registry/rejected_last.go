package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/httpapi"
)

// lookedAt is how many sequences are looked at for each rejected event that is to be shown: copies that
// were made again, purged or have expired leave gaps.
const lookedAt = 3

// lastRejected is at most so many of the last rejected events, newest first, for the operators' page.
func (l *live) lastRejected(ctx context.Context, most int) ([]httpapi.RejectedEvent, error) {
	s := l.broker.Load()
	if s == nil {
		return nil, errors.New("loading the saved state")
	}
	if p, running := l.progress(); running && !p.Connected {
		return nil, errors.New("the broker is away")
	}
	stream, err := s.js.Stream(ctx, events.RejectedStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil // nothing has ever been rejected
	}
	if err != nil {
		return nil, err
	}
	state := stream.CachedInfo().State
	var found []httpapi.RejectedEvent
	for seq, looked := state.LastSeq, 0; seq >= max(state.FirstSeq, 1) && len(found) < most && looked < lookedAt*most; seq, looked = seq-1, looked+1 {
		m, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return found, err
		}
		found = append(found, rejectedEvent(m))
	}
	slices.SortFunc(found, func(a, b httpapi.RejectedEvent) int { return cmp.Compare(b.Sequence, a.Sequence) }) // copies are made side by side
	return found, nil
}

// rejectedEvent reads a copy. Its headers are the projector's; whatever else is there is shown as it is.
func rejectedEvent(m *jetstream.RawStreamMsg) httpapi.RejectedEvent {
	seq, _ := strconv.ParseUint(m.Header.Get(events.HeaderSequence), 10, 64) // 0 where it is no number
	return httpapi.RejectedEvent{
		Sequence: seq,
		Time:     m.Time,
		Subject:  m.Header.Get(events.HeaderSubject),
		Reason:   m.Header.Get(events.HeaderReason),
	}
}
