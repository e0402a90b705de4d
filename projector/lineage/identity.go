// Package lineage decides whether a stream is still the one that a checkpoint was taken from, and
// begins and names its histories (events/CONTRACT.md#histories).
//
// # Promises
//
//   - Check compares the stream with a checkpoint in one way for everybody: the projector before
//     and while it follows a stream, and a server that starts from a snapshot.
//   - A stream that is ours passes Check, whatever has been purged, pushed out or moved to other
//     brokers, and however much their clocks differ.
//   - A stream that was rewound, and has grown past the checkpoint since, fails Check as long as it
//     has a message at the checkpoint, or any message before the checkpoint that was stored since.
//
// # Why
//
// Newer messages of its subject may have pushed out the one at the checkpoint, in our stream as in
// a rewound one. Then time tells them apart: everything up to the checkpoint has been read, and
// Checkpoint.NewestTime is when the newest of it was stored. A message below the checkpoint that
// was stored later was not there to be read. The time of the checkpoint's own message would not do:
// where the clock of one of the brokers was once fast, older messages have later times forever.
// The question is a STREAM.MSG.GET by time, which every user who reads messages may ask. A consumer
// by start time would answer it too, for three requests and a state in the broker.
//
// What was stored since may have been pushed out as well, up to the checkpoint, or purged. Then
// nothing is left that could tell, but Checkpoint.Unconfirmed, where the stream was seen when it
// was shorter.
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

// Of returns what tells a stream from another of its name: the epoch in its metadata, else
// its creation time in nanoseconds (events/CONTRACT.md#stream).
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

// Error says that a stream is not the one that a checkpoint was taken from, or not as it
// must be.
type Error struct {
	Sentence string // for the operator
	Kind     Kind
}

func (e *Error) Error() string { return e.Sentence }

// Kind is what is wrong with a stream.
type Kind int

const (
	Different Kind = iota // another stream, none, or one that cannot be used
	Shorter               // it ends before the checkpoint: it may yet grow back
	Unproven              // it was seen to be wrong, and has no message at the checkpoint that would prove it right
)

// MayRecover says that the stream has only looked shorter than it was.
func (e *Error) MayRecover() bool { return e.Kind == Shorter || e.Kind == Unproven }

// Check compares the stream with a checkpoint: its epoch, its length, and the message at the
// checkpoint. The error is an *Error, or says why the broker did not answer.
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

// Compare is the part of Check that needs nothing but what the stream says about itself. The error
// is an *Error.
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

// CompareMessage is the part of Check that reads messages. They alone can tell a stream that lost
// its tail and has grown past the checkpoint since.
//
// That the checkpoint's message is missing proves nothing, since newer messages of its subject push
// it out, with three exceptions: the stream was created at another time, so that it may be a new
// one with the old one's metadata; messages before the checkpoint were stored after everything that
// has been read; or it was seen to be wrong before (Checkpoint.Unconfirmed). The creation time
// counts only here, because a restore into a cluster changes it too.
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

// compareOthers is CompareMessage where there is no message at the checkpoint.
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

// clocksDiffer is how much the clocks of a cluster's brokers may differ where nothing better is
// known.
const clocksDiffer = time.Minute

// NewestTime returns Checkpoint.NewestTime; of a checkpoint that an older program made, which did
// not keep it, a time that nothing up to the checkpoint was stored after, if the brokers' clocks
// never differed by more than a minute. Zero: not known.
func NewestTime(at readmodel.Checkpoint) time.Time {
	if at.NewestTime.IsZero() && !at.MessageTime.IsZero() {
		return at.MessageTime.Add(clocksDiffer)
	}
	return at.NewestTime
}
