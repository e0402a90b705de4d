package projector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/stream"
	"example.org/registry/snapshots"
)

// source is the stream that a projector reads.
type source struct {
	stream.Stream
	cfg Config
}

// fatalError means that the operator must act before the stream can be followed.
type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

// frozenError means that the stream is missing or another registry's. why is the value for Progress.Frozen,
// and sentence tells the operator the remedy.
type frozenError struct{ why, sentence string }

func (e *frozenError) Error() string { return e.sentence }

// find returns the stream's state. If the stream is missing and mayCreate is true, find creates it.
func (s *source) find(ctx context.Context, mayCreate bool) (*jetstream.StreamInfo, error) {
	info, err := s.Info(ctx)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return info, err
	}

	if s.cfg.ReadOnly || !mayCreate {
		return nil, &frozenError{FrozenMissing, "The stream " + s.Name +
			" is missing; this server goes on when it is back, or after registry recover --create-stream."}
	}

	if err := s.create(ctx); err != nil {
		return nil, err
	}
	return s.Info(ctx)
}

// checkReplaced fails if the stream was deleted and created again since it was accepted.
func (s *source) checkReplaced(ctx context.Context, accepted *jetstream.StreamInfo) error {
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	if !info.Created.Equal(accepted.Created) {
		return errors.New("the stream was replaced")
	}
	return nil
}

// recognition is the result of a comparison of the stream with the marks of the last messages that were read.
type recognition int

const (
	unknownStream recognition = iota // the stream has no message at any mark: all were displaced or erased
	sameStream                       // the stream has the message of a mark
	otherStream                      // the stream ends before the checkpoint, or has another message at a mark
)

// recognize compares the stream with the marks, the newest first. The first mark at which the stream has a message
// decides.
func (s *source) recognize(ctx context.Context, info *jetstream.StreamInfo, known snapshots.Meta) (recognition, error) {
	if info.State.LastSeq < known.Sequence {
		return otherStream, nil
	}
	if known.Sequence == 0 {
		return sameStream, nil
	}

	for _, mark := range slices.Backward(known.Marks) {
		m, err := s.Message(ctx, mark.Sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // a displaced or erased message proves nothing: try an older mark
		}
		if err != nil {
			return unknownStream, err
		}
		if !m.Time.Equal(mark.Time) {
			return otherStream, nil
		}
		return sameStream, nil
	}
	return unknownStream, nil
}

// checkSettings refuses a stream that would lose latest states. It also keeps the demonstration apart: a
// demonstration follows no other stream with events, and no other server follows the demonstration's stream. A
// replay (ReadOnly) reads any stream.
func (s *source) checkSettings(info *jetstream.StreamInfo) error {
	if err := refuseStream(info.Config); err != nil {
		return &fatalError{err}
	}

	isDemo := stream.IdentityOf(info).Demo
	if s.cfg.ReadOnly || isDemo == s.cfg.Demo {
		return nil
	}

	if isDemo {
		return &fatalError{fmt.Errorf("stream %s holds the demonstration registry; serve it with --demo, or name another stream or data directory", s.Name)}
	}

	if info.State.LastSeq > 0 {
		return &fatalError{fmt.Errorf("stream %s holds events and is not the demonstration's; choose another data directory for --demo", s.Name)}
	}
	return nil
}

// refuseStream returns why a stream would lose latest states, with the remedy, or nil.
func refuseStream(c jetstream.StreamConfig) error {
	for _, setting := range []struct {
		loses   bool
		problem string
	}{
		{c.MaxAge > 0, fmt.Sprintf("MaxAge %s: events would expire", c.MaxAge)},
		{c.AllowMsgTTL, "AllowMsgTTL: an event published with a Nats-TTL would expire"},
		{c.MaxMsgs > 0, fmt.Sprintf("MaxMsgs %d: old events would be dropped", c.MaxMsgs)},
		{c.Discard != jetstream.DiscardNew, "discard policy old: a full stream would drop events instead of refusing new ones"},
		{c.Retention != jetstream.LimitsPolicy, fmt.Sprintf("retention %s: events would go once delivered", c.Retention)},
	} {
		if setting.loses {
			return fmt.Errorf("stream %s has %s; change the stream's configuration, or publish the events into a new stream made without it",
				c.Name, setting.problem)
		}
	}
	return nil
}

func (s *source) create(ctx context.Context) error {
	cfg := stream.Config(s.Name, s.cfg.Replicas, s.cfg.History, stream.Identity{Demo: s.cfg.Demo})
	if err := s.Create(ctx, cfg); err != nil {
		return s.explainCreate(fmt.Errorf("create stream %s: %w", s.Name, err))
	}
	s.cfg.Logger.Info("stream created", "epoch", cfg.Metadata[events.MetadataEpoch], "replicas", cfg.Replicas, "history", s.cfg.History)
	return nil
}

// The broker's error codes.
const (
	codeReplicas jetstream.ErrorCode = 10074 // replicas without a cluster
	codeNoPeers  jetstream.ErrorCode = 10005 // more replicas than the cluster has running nodes
	codeOverlap  jetstream.ErrorCode = 10065 // the subjects belong to another stream
)

// explainCreate distinguishes errors that only the operator can fix from temporary ones.
func (s *source) explainCreate(err error) error {
	reply, isReply := errors.AsType[*jetstream.APIError](err)
	if !isReply {
		return err
	}

	switch reply.ErrorCode {
	case jetstream.JSErrCodeStreamNameInUse: // another server created the stream first: the next session finds it
		return err
	case codeNoPeers: // the nodes of a starting cluster come up one by one
		return fmt.Errorf("waiting for nodes of the broker's cluster: too few are up for %d replicas of the stream; "+
			"if no more will come, lower --stream-replicas: %w", s.cfg.Replicas, err)
	case codeReplicas:
		return &fatalError{fmt.Errorf("%w; lower --stream-replicas, or name a cluster with --nats-url", err)}
	case codeOverlap:
		return &fatalError{fmt.Errorf("%w: another stream holds %s or part of it; if it is the registry's, name it with --stream, "+
			"else remove it or take these subjects from it", err, events.StreamSubjects)}
	}

	if reply.Code == 400 {
		return &fatalError{fmt.Errorf("%w; change the setting that the broker names, here or there", err)}
	}
	return err
}

// describeFull returns a sentence if the stream has no room for a message of the maximal size, or "".
func describeFull(info *jetstream.StreamInfo) string {
	c := info.Config
	maxMessage := uint64(max(c.MaxMsgSize, 0)) // MaxMsgSize is -1 without a limit
	if c.MaxBytes > 0 && info.State.Bytes+maxMessage > uint64(c.MaxBytes) {
		return "The stream " + c.Name + " is full: it takes in no events; raise its MaxBytes."
	}
	return ""
}

// countMissingPeers counts the replicas of the stream that are missing or not current.
func countMissingPeers(info *jetstream.StreamInfo) int {
	if info.Cluster == nil {
		return 0
	}

	current := 1 // the leader
	for _, replica := range info.Cluster.Replicas {
		if replica.Current && !replica.Offline {
			current++
		}
	}
	return max(0, info.Config.Replicas-current)
}
