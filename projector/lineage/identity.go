// Package lineage decides whether a stream is still the one that a checkpoint was taken from, and
// begins and names its histories (events/CONTRACT.md#histories).
//
// # Promises
//
//   - Check compares the stream with a checkpoint in the same way for all callers: the projector,
//     before and while it follows a stream, and a server that starts from a snapshot.
//   - The same stream passes Check, whatever was purged, displaced or moved to other brokers, and
//     however much their clocks differ.
//   - A stream that was rewound, and has grown past the checkpoint since, fails Check as long as it
//     has a message at the checkpoint, or any message before the checkpoint that was stored since.
//
// # Why
//
// The message at the checkpoint may have been displaced by newer messages of its subject, in the
// same stream as in a rewound one. Then time distinguishes them. Everything up to the checkpoint
// has been read, and Checkpoint.NewestTime is the latest time at which any of it was stored. If a
// message below the checkpoint was stored later, it was not there to be read. The time of the
// checkpoint's own message would not do: if the clock of one of the brokers was once fast, older
// messages have later times forever. The request is a STREAM.MSG.GET by time, which every user who
// reads messages may make. A consumer by start time would work too, for three requests and a state
// in the broker.
//
// Messages stored since may also have been displaced, up to the checkpoint, or purged. Then only
// Checkpoint.Unconfirmed is left to tell, if the stream was seen while it was shorter.
package lineage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/readmodel"
)

// Of returns the identity of a stream, which distinguishes it from others of its name: the epoch in
// its metadata, else its creation time in nanoseconds (events/CONTRACT.md#stream).
func Of(info *jetstream.StreamInfo) readmodel.StreamIdentity {
	id := readmodel.StreamIdentity{
		Stream:        info.Config.Name,
		StreamEpoch:   info.Config.Metadata[events.MetadataEpoch],
		StreamCreated: info.Created.UTC(),
	}
	if id.StreamEpoch == "" {
		id.StreamEpoch = strconv.FormatInt(info.Created.UnixNano(), 10)
	}
	return id
}

// Error means that a stream is not the one of a checkpoint, or not in the required state.
type Error struct {
	Sentence string // for the operator
	Kind     Kind
}

func (e *Error) Error() string { return e.Sentence }

// Kind is a kind of problem with a stream.
type Kind int

const (
	Different Kind = iota // another stream, none, or one that cannot be used
	Shorter               // it ends before the checkpoint, but may grow back
	Unproven              // it had a problem, and has no message at the checkpoint to prove that it is right
)

// MayRecover reports whether the stream has only looked shorter than it was.
func (e *Error) MayRecover() bool { return e.Kind == Shorter || e.Kind == Unproven }

// Check compares the stream with a checkpoint: its epoch, its length, and the message at the
// checkpoint. The error is an *Error, or the reason why the broker did not answer.
func Check(ctx context.Context, s leader.Stream, at readmodel.Checkpoint) error {
	info, err := s.Info(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return Missing(s.Name)
	}
	if err != nil {
		return err
	}
	if err := Compare(info, at); err != nil {
		return err
	}
	return CompareMessage(ctx, s, info, at)
}

// Missing returns the error for a stream that does not exist.
func Missing(name string) *Error {
	return &Error{Sentence: "The stream " + name + " is missing."}
}

// Compare is the part of Check that uses only the stream's info. The error is an *Error.
func Compare(info *jetstream.StreamInfo, at readmodel.Checkpoint) error {
	epoch := Of(info).StreamEpoch
	switch {
	case at.StreamEpoch != "" && at.StreamEpoch != epoch:
		return &Error{Sentence: fmt.Sprintf("The stream %s is another one: its epoch is %.64s, not %.64s.",
			info.Config.Name, epoch, at.StreamEpoch)}
	case info.State.LastSeq < at.Sequence:
		return &Error{Kind: Shorter, Sentence: fmt.Sprintf("The stream %s ends at %d, before the checkpoint %d.",
			info.Config.Name, info.State.LastSeq, at.Sequence)}
	}
	return nil
}

// CompareMessage is the part of Check that reads messages. Only messages reveal a stream that lost
// its end and has grown past the checkpoint since.
//
// A missing message at the checkpoint proves nothing, since newer messages of its subject displace
// it. There are three exceptions. The stream was created at another time, so it may be a new one
// with the old one's metadata. Messages before the checkpoint were stored after everything that has
// been read. Or the stream had a problem before (Checkpoint.Unconfirmed). The creation time counts
// only here, because a restore into a cluster changes it too.
func CompareMessage(ctx context.Context, s leader.Stream, info *jetstream.StreamInfo, at readmodel.Checkpoint) error {
	if at.Sequence == 0 {
		return nil
	}
	if err := compareHistory(ctx, s, at); err != nil {
		return err
	}
	m, err := s.Message(ctx, at.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return compareOthers(ctx, s, info, at)
	}
	if err == nil && (m.ID != at.MessageID || !m.Time.Equal(at.MessageTime)) {
		return &Error{Sentence: fmt.Sprintf("The stream %s holds another message at the checkpoint %d.", s.Name, at.Sequence)}
	}
	return err
}

// compareOthers is CompareMessage for a checkpoint without a message.
func compareOthers(ctx context.Context, s leader.Stream, info *jetstream.StreamInfo, at readmodel.Checkpoint) error {
	if !at.StreamCreated.IsZero() && !info.Created.Equal(at.StreamCreated) {
		return &Error{Sentence: fmt.Sprintf("The stream %s was made again at %s and has no message at the checkpoint %d.",
			s.Name, info.Created.UTC().Format(time.RFC3339), at.Sequence)}
	}
	if newest := NewestTime(at); !newest.IsZero() {
		m, err := s.FirstAfter(ctx, newest)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
		if err == nil && m.Sequence < at.Sequence {
			return &Error{Sentence: fmt.Sprintf("The stream %s was put back to an older state: message %d, before the checkpoint %d, "+
				"was stored at %s, later than all that has been read.", s.Name, m.Sequence, at.Sequence, m.Time.UTC().Format(time.RFC3339))}
		}
	}
	if at.Unconfirmed {
		return &Error{Kind: Unproven, Sentence: fmt.Sprintf("The stream %s looked wrong before and has no message at the "+
			"checkpoint %d that would prove it right.", s.Name, at.Sequence)}
	}
	return nil
}

// clocksDiffer is how much the clocks of a cluster's brokers may differ unless the actual
// difference is known.
const clocksDiffer = time.Minute

// NewestTime returns Checkpoint.NewestTime. A checkpoint of an older program lacks it; NewestTime
// then returns an upper bound of the times at which messages up to the checkpoint were stored, if
// the brokers' clocks never differed by more than a minute. Zero means unknown.
func NewestTime(at readmodel.Checkpoint) time.Time {
	if at.NewestTime.IsZero() && !at.MessageTime.IsZero() {
		return at.MessageTime.Add(clocksDiffer)
	}
	return at.NewestTime
}
