package leader

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// IdentityOf returns what tells a stream from another of its name: the epoch in its metadata, else
// its creation time in nanoseconds (events/CONTRACT.md#stream).
func IdentityOf(info *jetstream.StreamInfo) readmodel.StreamIdentity {
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

// IdentityError says that a stream is not the one that a checkpoint was taken from, or not as it
// must be.
type IdentityError struct {
	Sentence string // for the operator
	Kind     Kind
}

func (e *IdentityError) Error() string { return e.Sentence }

// Kind is what is wrong with a stream.
type Kind int

const (
	Different Kind = iota // another stream, none, or one that cannot be used
	Shorter               // it ends before the checkpoint: it may yet grow back
	Unproven              // it was seen to be wrong, and has no message at the checkpoint that would prove it right
)

// MayRecover says that the stream has only looked shorter than it was.
func (e *IdentityError) MayRecover() bool { return e.Kind == Shorter || e.Kind == Unproven }

// Check compares the stream with a checkpoint: its epoch, its length, and the message at the
// checkpoint. The error is an *IdentityError, or says why the broker did not answer.
func (s Stream) Check(ctx context.Context, at readmodel.Checkpoint) error {
	info, err := s.Info(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return s.Missing()
	}
	if err != nil {
		return err
	}
	if err := Compare(info, at); err != nil {
		return err
	}
	return s.CompareMessage(ctx, info, at)
}

// Missing returns the error for a stream that does not exist.
func (s Stream) Missing() *IdentityError {
	return &IdentityError{Sentence: "The stream " + s.Name + " is missing."}
}

// Compare is the part of Check that needs nothing but what the stream says about itself. The error
// is an *IdentityError.
func Compare(info *jetstream.StreamInfo, at readmodel.Checkpoint) error {
	epoch := IdentityOf(info).StreamEpoch
	switch {
	case at.StreamEpoch != "" && at.StreamEpoch != epoch:
		return &IdentityError{Sentence: fmt.Sprintf("The stream %s is another one: its epoch is %.64s, not %.64s.",
			info.Config.Name, epoch, at.StreamEpoch)}
	case info.State.LastSeq < at.Sequence:
		return &IdentityError{Kind: Shorter, Sentence: fmt.Sprintf("The stream %s ends at %d, before the checkpoint %d.",
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
func (s Stream) CompareMessage(ctx context.Context, info *jetstream.StreamInfo, at readmodel.Checkpoint) error {
	if at.Sequence == 0 {
		return nil
	}
	if err := s.compareHistory(ctx, at); err != nil {
		return err
	}
	m, err := s.Message(ctx, at.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return s.compareOthers(ctx, info, at)
	}
	if err == nil && (m.ID != at.MessageID || !m.Time.Equal(at.MessageTime)) {
		return &IdentityError{Sentence: fmt.Sprintf("The stream %s holds another message at the checkpoint %d.", s.Name, at.Sequence)}
	}
	return err
}

// compareOthers is CompareMessage where there is no message at the checkpoint.
func (s Stream) compareOthers(ctx context.Context, info *jetstream.StreamInfo, at readmodel.Checkpoint) error {
	if !at.StreamCreated.IsZero() && !info.Created.Equal(at.StreamCreated) {
		return &IdentityError{Sentence: fmt.Sprintf("The stream %s was made again at %s and has no message at the checkpoint %d.",
			s.Name, info.Created.UTC().Format(time.RFC3339), at.Sequence)}
	}
	if newest := NewestTime(at); !newest.IsZero() {
		m, err := s.FirstAfter(ctx, newest)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return err
		}
		if err == nil && m.Sequence < at.Sequence {
			return &IdentityError{Sentence: fmt.Sprintf("The stream %s was put back to an older state: message %d, before the checkpoint %d, "+
				"was stored at %s, later than all that has been read.", s.Name, m.Sequence, at.Sequence, m.Time.UTC().Format(time.RFC3339))}
		}
	}
	if at.Unconfirmed {
		return &IdentityError{Kind: Unproven, Sentence: fmt.Sprintf("The stream %s looked wrong before and has no message at the "+
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
