package projector

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/events/publish"
)

// unusableError means that the operator must act before the stream can be followed. Until the model
// has caught up it ends Run.
type unusableError struct{ err error }

func (u *unusableError) Error() string { return u.err.Error() }
func (u *unusableError) Unwrap() error { return u.err }

func unusable(format string, args ...any) error {
	return &unusableError{fmt.Errorf(format, args...)}
}

// ensureStream returns the stream's state. It creates the stream if there is none and nothing
// has been read.
func (p *Projector) ensureStream(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := p.stream.Info(ctx)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return info, err
	}
	if p.cfg.ReadOnly || !p.knowsNothing() {
		return nil, missing("The stream " + p.stream.Name + " is missing")
	}
	if sentence := p.owesStream(); sentence != "" {
		p.tracker.setTrouble(troubleOwed, sentence)
		return nil, errors.New("the stream is missing, and is not made while something is known to be lost")
	}
	cfg := publish.StreamConfig(p.cfg.Stream, p.cfg.Replicas, p.cfg.History, events.NewEpoch())
	if p.cfg.Demo {
		cfg.Metadata[events.MetadataDemo] = "true"
	}
	created, err := p.createStream(ctx, cfg)
	if err != nil {
		return nil, p.explainCreate(ctx, err)
	}
	p.log.Info("stream created", "epoch", cfg.Metadata[events.MetadataEpoch],
		"replicas", cfg.Replicas, "history", p.cfg.History)
	return created.CachedInfo(), nil
}

func (p *Projector) createStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, leader.RequestTimeout)
	defer cancel()
	created, err := p.js.CreateStream(ctx, cfg)
	return created, natserr.Explain(p.js.Conn(), err, jetstream.DefaultAPIPrefix+"STREAM.CREATE."+cfg.Name)
}

// The broker's codes for replicas without a cluster, for more replicas than the cluster has running
// nodes, and for subjects that belong to another stream.
const (
	errReplicas jetstream.ErrorCode = 10074
	errNoPeers  jetstream.ErrorCode = 10005
	errOverlap  jetstream.ErrorCode = 10065
)

// explainCreate distinguishes errors that only the operator can fix from temporary ones.
func (p *Projector) explainCreate(ctx context.Context, err error) error {
	var api *jetstream.APIError
	permanent := errors.As(err, &api) && (api.Code == 400 || api.ErrorCode == errReplicas) &&
		api.ErrorCode != jetstream.JSErrCodeStreamNameInUse
	err = fmt.Errorf("create stream %s: %w", p.cfg.Stream, err)
	if !permanent {
		return err
	}
	switch api.ErrorCode {
	case errNoPeers: // a starting cluster looks like this, and its nodes come up
		return fmt.Errorf("waiting for nodes of the broker's cluster: too few are up for %d replicas of the stream; "+
			"if no more will come, lower --stream-replicas: %w", p.cfg.Replicas, err)
	case errOverlap:
		return unusable("%w: %s", err, p.subjectsTaken(ctx))
	case errReplicas:
		return unusable("%w; lower --stream-replicas, or name a cluster with --nats-url", err)
	}
	return unusable("%w; change what the broker names, here or there", err)
}

// subjectsTaken names the stream that has some of the registry's subjects, and the remedies.
func (p *Projector) subjectsTaken(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, leader.RequestTimeout)
	defer cancel()
	name, err := p.js.StreamNameBySubject(ctx, events.StreamSubjects)
	if err != nil { // deleted, or of an account that may not ask
		return fmt.Sprintf("name the stream that holds %s with --stream, or remove it", events.StreamSubjects)
	}
	return fmt.Sprintf("stream %[1]s holds %[2]s or part of it; if %[1]s is the registry's, start with --stream %[1]s, "+
		"else remove it or take these subjects from it", name, events.StreamSubjects)
}

// acceptStream checks, once, whether the stream's configuration keeps the messages that the read
// model relies on. It logs lesser differences.
func (p *Projector) acceptStream(info *jetstream.StreamInfo) error {
	if p.accepted {
		return nil
	}
	if err := p.refuse(info); err != nil {
		return err
	}
	want := asMirror(info.Config, publish.StreamConfig(p.cfg.Stream, p.cfg.Replicas, p.cfg.History, ""))
	for _, d := range append(differences(info.Config, want), additions(info.Config)...) {
		p.log.Warn("stream differs from the one this program would create",
			"option", d.option, "expected", d.expected, "found", d.found)
	}
	p.accepted = true
	return nil
}

// Remedies. The broker cannot change every setting of an existing stream.
const (
	changeConfig = "change the stream's configuration"
	makeAnew     = "the broker cannot take that back: publish the events into a new stream made without it"
	makeMirror   = "delete the mirror and make one of all that its origin has"
)

// refuse returns an unusableError for a stream that would lose last states, or that belongs to
// another kind of process (events/CONTRACT.md#stream).
func (p *Projector) refuse(info *jetstream.StreamInfo) error {
	c := info.Config
	retention := changeConfig
	if c.Retention == jetstream.WorkQueuePolicy {
		retention = makeAnew
	}
	for _, l := range []struct {
		loses        bool
		what, remedy string
	}{
		{c.MaxAge > 0, fmt.Sprintf("MaxAge %s: events would expire", c.MaxAge), changeConfig},
		{c.AllowMsgTTL, "AllowMsgTTL: an event published with a Nats-TTL would expire", makeAnew},
		{c.MaxMsgs > 0, fmt.Sprintf("MaxMsgs %d: old events would be dropped", c.MaxMsgs), changeConfig},
		{c.Discard != jetstream.DiscardNew, "discard policy old: a full stream would drop events instead of refusing new ones", changeConfig},
		{c.Retention != jetstream.LimitsPolicy, fmt.Sprintf("retention %s: events would go once delivered", c.Retention), retention},
		{part(c.Mirror) != "", part(c.Mirror), makeMirror},
	} {
		if l.loses {
			return unusable("stream %s has %s; %s", c.Name, l.what, l.remedy)
		}
	}
	return p.refuseMark(info)
}

// refuseMark keeps the demonstration and the real registry apart
// (cmd/registry/CONTRACT.md#commands).
func (p *Projector) refuseMark(info *jetstream.StreamInfo) error {
	if p.cfg.ReadOnly {
		return nil
	}
	marked := info.Config.Metadata[events.MetadataDemo] == "true"
	switch {
	case marked && !p.cfg.Demo:
		return unusable("stream %s holds the demonstration registry; serve it with --demo, or name another stream or data directory", info.Config.Name)
	case !marked && p.cfg.Demo && info.State.LastSeq > 0:
		return unusable("stream %s holds events and is not the demonstration's; choose another data directory for --demo", info.Config.Name)
	}
	return nil
}

// difference is one setting that differs from the one that this program would make. It costs
// something, but loses nothing.
type difference struct {
	option          string
	expected, found any
}

// differences compares the settings that the contract gives the stream, apart from those that
// refuse checks.
func differences(c, want jetstream.StreamConfig) (found []difference) {
	compare := func(option string, expected, is any) {
		if fmt.Sprint(expected) != fmt.Sprint(is) {
			found = append(found, difference{option, expected, is})
		}
	}
	compare("storage", want.Storage.String(), c.Storage.String())
	compare("subjects", want.Subjects, c.Subjects)
	compare("replicas", want.Replicas, c.Replicas)
	compare("messages kept of a subject", want.MaxMsgsPerSubject, c.MaxMsgsPerSubject)
	compare("max bytes", want.MaxBytes, c.MaxBytes)
	compare("max message size", want.MaxMsgSize, c.MaxMsgSize)
	compare("duplicate window", want.Duplicates, c.Duplicates)
	compare("deny delete", want.DenyDelete, c.DenyDelete)
	compare("deny purge", want.DenyPurge, c.DenyPurge)
	compare("allow rollup", want.AllowRollup, c.AllowRollup)
	compare("allow direct", want.AllowDirect, c.AllowDirect)
	compare("allow atomic publish", want.AllowAtomicPublish, c.AllowAtomicPublish)
	if c.Metadata[events.MetadataEpoch] == "" {
		compare("metadata "+events.MetadataEpoch, "a random text", "none; its creation time stands in")
	}
	return found
}

// additions returns settings outside the contract that obstruct others: publishers (sealed, a full
// subject, no acknowledgments), the events' subjects, the consumers if there are too many replicas,
// or the guarantees of an acknowledgment.
func additions(c jetstream.StreamConfig) (found []difference) {
	add := func(set bool, option string, expected, is any) {
		if set {
			found = append(found, difference{option, expected, is})
		}
	}
	add(len(c.Sources) > 0, "origin", "published to, or a mirror", "with sources")
	add(c.SubjectTransform != nil, "subject transform", "none", c.SubjectTransform)
	add(c.DiscardNewPerSubject, "discard new per subject", false, true)
	add(c.NoAck, "no ack", false, true)
	add(c.Sealed, "sealed", false, true)
	add(c.MaxConsumers > 0, "max consumers", -1, c.MaxConsumers)
	add(c.PersistMode == jetstream.AsyncPersistMode, "persist mode", "default", "async")
	return found
}
