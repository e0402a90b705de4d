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

// IdentityOf returns what tells a stream from another of its name: the epoch in its metadata, else its creation time
// in nanoseconds (events/CONTRACT.md#stream).
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

// IdentityError says that a stream is not the one that a checkpoint was taken from, or not as it must be.
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

// Check compares the stream with a checkpoint: its epoch, its length, and the message at the checkpoint. The error is
// an *IdentityError, or says why the broker did not answer.
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

// Compare is the part of Check that needs nothing but what the stream says about itself. The error is an
// *IdentityError.
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

// CompareMessage is the part of Check that reads the message at the checkpoint. That message alone can tell a stream
// that lost its tail and has grown past the checkpoint since.
//
// A missing message proves nothing, since newer messages of its subject push it out, with two exceptions: the stream
// was created at another time, so that it may be a new one with the old one's metadata; or it was seen to be wrong
// before (Checkpoint.Unconfirmed). The creation time counts only here, because a restore into a cluster changes it too.
func (s Stream) CompareMessage(ctx context.Context, info *jetstream.StreamInfo, at readmodel.Checkpoint) error {
	if at.Sequence == 0 {
		return nil
	}
	m, err := s.Message(ctx, at.Sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound) && !at.StreamCreated.IsZero() && !info.Created.Equal(at.StreamCreated):
		return &IdentityError{Sentence: fmt.Sprintf("The stream %s was made again at %s and has no message at the checkpoint %d.",
			s.Name, info.Created.UTC().Format(time.RFC3339), at.Sequence)}
	case errors.Is(err, jetstream.ErrMsgNotFound) && at.Unconfirmed:
		return &IdentityError{Kind: Unproven, Sentence: fmt.Sprintf("The stream %s looked wrong before and has no message at the "+
			"checkpoint %d that would prove it right.", s.Name, at.Sequence)}
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil
	case err != nil:
		return err
	case m.ID != at.MessageID || !m.Time.Equal(at.MessageTime):
		return &IdentityError{Sentence: fmt.Sprintf("The stream %s holds another message at the checkpoint %d.", s.Name, at.Sequence)}
	}
	return nil
}
