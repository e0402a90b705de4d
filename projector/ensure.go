package projector

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// unusable is an error that ends Run: the operator must do something.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

// ensure returns the stream's state, after creating it when there is none and nothing is
// known of one.
func (p *Projector) ensure(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := p.streamInfo(ctx, p.cfg.Stream)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return info, err
	}
	if at := p.checkpoint(); at.Sequence > 0 || at.Stream.Epoch != "" {
		return nil, notOurs{sentence: "The stream " + p.cfg.Stream + " is missing."}
	}
	cfg := events.StreamConfig(p.cfg.Stream, p.cfg.Replicas, p.cfg.History, events.NewEpoch())
	if p.cfg.Demo {
		cfg.Metadata[events.MetadataDemo] = "true"
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := p.js.CreateStream(ctx, cfg)
	if err != nil {
		return nil, p.cannotCreate(err)
	}
	p.log.Info("stream created", "epoch", cfg.Metadata[events.MetadataEpoch],
		"replicas", cfg.Replicas, "history", p.cfg.History)
	return s.CachedInfo(), nil
}

// errReplicas is the broker's code for replicas without a cluster.
const errReplicas jetstream.ErrorCode = 10074

// cannotCreate tells what only the operator can change from what may pass.
func (p *Projector) cannotCreate(err error) error {
	err = fmt.Errorf("create stream %s: %w", p.cfg.Stream, err)
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.Code == 400 || api.ErrorCode == errReplicas) &&
		api.ErrorCode != jetstream.JSErrCodeStreamNameInUse {
		return unusable{err}
	}
	return err
}

// accept says whether the stream's configuration keeps what the read model relies on. Lesser
// differences are logged.
func (p *Projector) accept(info *jetstream.StreamInfo) error {
	c := info.Config
	losing := []struct {
		is   bool
		what string
	}{
		{c.MaxAge > 0, fmt.Sprintf("MaxAge %s: events would expire", c.MaxAge)},
		{c.MaxMsgs > 0, fmt.Sprintf("MaxMsgs %d: old events would be dropped", c.MaxMsgs)},
		{c.Discard != jetstream.DiscardNew, "discard policy old: a full stream would drop events instead of refusing new ones"},
		{c.Retention != jetstream.LimitsPolicy, fmt.Sprintf("retention %s: events would go once delivered", c.Retention)},
	}
	for _, l := range losing {
		if l.is {
			return unusable{fmt.Errorf("stream %s has %s; change the stream's configuration", c.Name, l.what)}
		}
	}
	if err := p.acceptMark(info); err != nil {
		return err
	}
	p.warn(c)
	return nil
}

// acceptMark keeps the demonstration and the real registry apart (API contract, serve --demo).
func (p *Projector) acceptMark(info *jetstream.StreamInfo) error {
	marked := info.Config.Metadata[events.MetadataDemo] == "true"
	switch {
	case marked && !p.cfg.Demo:
		return unusable{fmt.Errorf("stream %s holds the demonstration registry; serve it with --demo, or name another stream or data directory", info.Config.Name)}
	case !marked && p.cfg.Demo && info.State.LastSeq > 0:
		return unusable{fmt.Errorf("stream %s holds events and is not the demonstration's; choose another data directory for --demo", info.Config.Name)}
	}
	return nil
}

// warn logs, once, each difference from the stream that this program would create which costs
// something but loses nothing.
func (p *Projector) warn(c jetstream.StreamConfig) {
	want := events.StreamConfig(p.cfg.Stream, p.cfg.Replicas, p.cfg.History, "")
	differences := []struct {
		is              bool
		option          string
		expected, found any
	}{
		{c.Storage != want.Storage, "storage", want.Storage.String(), c.Storage.String()},
		{len(c.Subjects) != 1 || c.Subjects[0] != events.StreamSubjects, "subjects", want.Subjects, c.Subjects},
		{c.Replicas < want.Replicas, "replicas", want.Replicas, c.Replicas},
		{c.MaxMsgsPerSubject != want.MaxMsgsPerSubject, "messages kept of a subject", want.MaxMsgsPerSubject, c.MaxMsgsPerSubject},
		{c.MaxBytes > 0, "max bytes", want.MaxBytes, c.MaxBytes},
		{c.MaxMsgSize != want.MaxMsgSize, "max message size", want.MaxMsgSize, c.MaxMsgSize},
		{!c.DenyDelete, "deny delete", true, false},
		{!c.AllowRollup, "allow rollup", true, false},
		{!c.AllowAtomicPublish, "allow atomic publish", true, false},
		{c.Duplicates < want.Duplicates, "duplicate window", want.Duplicates, c.Duplicates},
		{c.Metadata[events.MetadataEpoch] == "", "metadata " + events.MetadataEpoch, "a random text", "none; its creation time stands in"},
		{c.Mirror != nil || len(c.Sources) > 0, "origin", "published to", "a mirror or with sources"},
	}
	for _, d := range differences {
		if d.is {
			p.log.Warn("stream differs from the one this program would create",
				"option", d.option, "expected", d.expected, "found", d.found)
		}
	}
}

// identify keeps which stream this is, when nothing was known of one before.
func (p *Projector) identify(info *jetstream.StreamInfo) {
	at := p.checkpoint()
	if at.Stream.Epoch != "" {
		return
	}
	at.Stream = identityOf(info, events.MetadataEpoch)
	p.setCheckpoint(at)
}

func (p *Projector) setCheckpoint(at readmodel.Checkpoint) {
	p.at.Store(&at)
	p.status.update(func(s *Progress) {
		s.Checkpoint, s.Epoch, s.Created = at.Sequence, at.Stream.Epoch, at.Stream.Created
	})
}
