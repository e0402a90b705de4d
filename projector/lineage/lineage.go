// Package lineage tells from which stream a state was made: it proves a position, and names the
// histories of a stream (events/CONTRACT.md#histories).
//
// # Promises
//
//   - A position is proven by a message of the stream that is as it was read. Nothing else proves
//     anything: neither a name, nor a length, nor a clock.
//   - Two histories that have nothing to do with each other share no name.
package lineage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/readmodel"
)

// Of returns the identity of a stream, which distinguishes it from others of its name: the epoch in
// its metadata, else its creation time in nanoseconds (events/CONTRACT.md#stream). Its History is
// that of no marker.
func Of(info *jetstream.StreamInfo) readmodel.StreamIdentity {
	id := readmodel.StreamIdentity{
		Stream:        info.Config.Name,
		StreamEpoch:   info.Config.Metadata[events.MetadataEpoch],
		StreamCreated: info.Created.UTC(),
		Demo:          info.Config.Metadata[events.MetadataDemo] == "true",
	}
	if id.StreamEpoch == "" {
		id.StreamEpoch = strconv.FormatInt(info.Created.UnixNano(), 10)
	}
	return id
}

// Same reports whether two identities are of one stream, which has not been made again.
func Same(a, b readmodel.StreamIdentity) bool {
	return a.StreamEpoch == b.StreamEpoch && a.StreamCreated.Equal(b.StreamCreated)
}

// Share reports whether two states or streams have a history in common.
func Share(a, b []string) bool {
	return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}

// Marker is the message that began a history. The zero Marker stands for none.
type Marker struct {
	events.History
	Sequence uint64
}

// Names returns the histories of a stream: those of its newest marker, or its epoch.
func (m Marker) Names(id readmodel.StreamIdentity) []string {
	if m.Sequence == 0 {
		return []string{id.StreamEpoch}
	}
	return m.History.Names()
}

// Newest returns the newest marker of the stream up to a sequence, and the sequence of the last
// message on its subject, which may be another one.
func Newest(ctx context.Context, s leader.Stream, upTo uint64) (newest Marker, last uint64, err error) {
	for {
		m, err := s.NextMessage(ctx, last+1, events.HistorySubject)
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Sequence > upTo {
			return newest, last, nil
		}
		if err != nil {
			return Marker{}, 0, err
		}
		last = m.Sequence
		if h, bad := events.DecodeHistory(m.Data); bad == nil && h.Revision >= newest.Revision {
			newest = Marker{h, m.Sequence}
		}
	}
}

// Prove returns the newest of the positions that the stream holds unchanged, or 0 if it holds none.
// The stream was rewound if it ends before the checkpoint, or has another message at one of its
// positions. A message that is gone proves nothing: newer ones of its subject displace it.
func Prove(ctx context.Context, s leader.Stream, info *jetstream.StreamInfo, at readmodel.Checkpoint) (proven uint64, rewound bool, err error) {
	rewound = info.State.LastSeq < at.Sequence
	for _, p := range slices.Backward(at.Positions) {
		if p.Sequence > info.State.LastSeq {
			continue
		}
		m, err := s.Message(ctx, p.Sequence)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
		case err != nil:
			return 0, false, err
		case m.Time.Equal(p.Time):
			return p.Sequence, rewound, nil
		default:
			rewound = true
		}
	}
	return 0, rewound, nil
}

// Begin publishes a marker if last is still the sequence of the last message on its subject, else
// the error is a conflict (natserr.IsConflict).
func Begin(ctx context.Context, s leader.Stream, h events.History, last uint64) (sequence uint64, err error) {
	payload, err := events.EncodeHistory(h)
	if err != nil {
		return 0, err
	}
	sequence, err = s.PublishAfter(ctx, events.HistorySubject, payload, h.Name, last)
	if err != nil {
		return 0, fmt.Errorf("begin a history: %w", err)
	}
	return sequence, nil
}
