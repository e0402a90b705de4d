package projector

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
)

// Remedies. The broker cannot change every setting of an existing stream.
const (
	changeConfig = "change the stream's configuration"
	makeAnew     = "the broker cannot take that back: publish the events into a new stream made without it"
	makeMirror   = "delete the mirror and make one of all that its origin has"
)

// checkSettings refuses a stream that would lose last states, or that belongs to another kind of
// process. It logs lesser differences once.
func (p *Projector) checkSettings(info *jetstream.StreamInfo) error {
	if err := refuseStream(info.Config); err != nil {
		return &fatalError{err}
	}
	if err := p.refuseMark(info); err != nil {
		return &fatalError{err}
	}
	if p.checked {
		return nil
	}
	p.checked = true
	for _, d := range findDifferences(info.Config, stream.Config(p.cfg.Stream, p.cfg.Replicas, p.cfg.History, stream.Identity{})) {
		p.log.Warn("stream differs from the one this program would create", "option", d.option, "expected", d.expected, "found", d.found)
	}
	return nil
}

// refuseStream returns why a stream would lose last states, with the remedy, or nil.
func refuseStream(c jetstream.StreamConfig) error {
	retention := changeConfig
	if c.Retention == jetstream.WorkQueuePolicy {
		retention = makeAnew
	}
	for _, setting := range []struct {
		loses        bool
		what, remedy string
	}{
		{c.MaxAge > 0, fmt.Sprintf("MaxAge %s: events would expire", c.MaxAge), changeConfig},
		{c.AllowMsgTTL, "AllowMsgTTL: an event published with a Nats-TTL would expire", makeAnew},
		{c.MaxMsgs > 0, fmt.Sprintf("MaxMsgs %d: old events would be dropped", c.MaxMsgs), changeConfig},
		{c.Discard != jetstream.DiscardNew, "discard policy old: a full stream would drop events instead of refusing new ones", changeConfig},
		{c.Retention != jetstream.LimitsPolicy, fmt.Sprintf("retention %s: events would go once delivered", c.Retention), retention},
		{isPartialMirror(c.Mirror), "a mirror's filter or start: it lacks events of its origin", makeMirror},
	} {
		if setting.loses {
			return fmt.Errorf("stream %s has %s; %s", c.Name, setting.what, setting.remedy)
		}
	}
	return nil
}

// isPartialMirror reports whether a stream mirrors only a part of its origin.
func isPartialMirror(m *jetstream.StreamSource) bool {
	if m == nil {
		return false
	}
	return m.FilterSubject != "" || len(m.SubjectTransforms) > 0 || m.OptStartSeq > 1 || m.OptStartTime != nil
}

// refuseMark keeps the demonstration and the real registry apart.
func (p *Projector) refuseMark(info *jetstream.StreamInfo) error {
	isDemo := stream.IdentityOf(info).Demo
	if p.cfg.ReadOnly || isDemo == p.cfg.Demo {
		return nil
	}
	if isDemo {
		return fmt.Errorf("stream %s holds the demonstration registry; serve it with --demo, or name another stream or data directory", info.Config.Name)
	}
	if info.State.LastSeq > 0 {
		return fmt.Errorf("stream %s holds events and is not the demonstration's; choose another data directory for --demo", info.Config.Name)
	}
	return nil
}

// difference is one setting that differs from the one that this program would make. It costs
// something, but loses nothing.
type difference struct {
	option          string
	expected, found any
}

// findDifferences compares a stream's settings with the wanted ones. A mirror takes many from its
// origin, so it is not compared.
func findDifferences(c, want jetstream.StreamConfig) (found []difference) {
	if c.Mirror != nil {
		return nil
	}
	for _, d := range []difference{
		{"storage", want.Storage, c.Storage},
		{"subjects", want.Subjects, c.Subjects},
		{"replicas", want.Replicas, c.Replicas},
		{"messages kept of a subject", want.MaxMsgsPerSubject, c.MaxMsgsPerSubject},
		{"max bytes", want.MaxBytes, c.MaxBytes},
		{"max message size", want.MaxMsgSize, c.MaxMsgSize},
		{"max consumers", 0, max(0, c.MaxConsumers)},
		{"duplicate window", want.Duplicates, c.Duplicates},
		{"deny delete", want.DenyDelete, c.DenyDelete},
		{"deny purge", want.DenyPurge, c.DenyPurge},
		{"allow rollup", want.AllowRollup, c.AllowRollup},
		{"allow direct", want.AllowDirect, c.AllowDirect},
		{"allow atomic publish", want.AllowAtomicPublish, c.AllowAtomicPublish},
		{"discard new per subject", false, c.DiscardNewPerSubject},
		{"no ack", false, c.NoAck},
		{"sealed", false, c.Sealed},
		{"async persist mode", false, c.PersistMode == jetstream.AsyncPersistMode},
		{"subject transform", false, c.SubjectTransform != nil},
		{"sources", 0, len(c.Sources)},
		{"metadata " + events.MetadataEpoch + " is missing", false, c.Metadata[events.MetadataEpoch] == ""},
	} {
		if fmt.Sprint(d.expected) != fmt.Sprint(d.found) {
			found = append(found, d)
		}
	}
	return found
}

// createStream makes the stream.
func (p *Projector) createStream(ctx context.Context) error {
	creating, cancel := context.WithTimeout(ctx, stream.RequestTimeout)
	defer cancel()
	cfg := stream.Config(p.cfg.Stream, p.cfg.Replicas, p.cfg.History, stream.Identity{Demo: p.cfg.Demo})
	_, err := p.cfg.JetStream.CreateStream(creating, cfg)
	if err != nil {
		err = natserr.Explain(p.cfg.JetStream.Conn(), err, jetstream.DefaultAPIPrefix+"STREAM.CREATE."+cfg.Name)
		return p.explainCreate(ctx, fmt.Errorf("create stream %s: %w", cfg.Name, err))
	}
	p.log.Info("stream created", "epoch", cfg.Metadata[events.MetadataEpoch], "replicas", cfg.Replicas, "history", p.cfg.History)
	return nil
}

// The broker's codes for replicas without a cluster, for more replicas than the cluster has running
// nodes, and for subjects that belong to another stream.
const (
	codeReplicas jetstream.ErrorCode = 10074
	codeNoPeers  jetstream.ErrorCode = 10005
	codeOverlap  jetstream.ErrorCode = 10065
)

// explainCreate distinguishes errors that only the operator can fix from temporary ones.
func (p *Projector) explainCreate(ctx context.Context, err error) error {
	api, refused := errors.AsType[*jetstream.APIError](err)
	if !refused || api.Code != 400 && api.ErrorCode != codeReplicas || api.ErrorCode == jetstream.JSErrCodeStreamNameInUse {
		return err
	}
	switch api.ErrorCode {
	case codeNoPeers: // a starting cluster looks like this, and its nodes come up
		return fmt.Errorf("waiting for nodes of the broker's cluster: too few are up for %d replicas of the stream; "+
			"if no more will come, lower --stream-replicas: %w", p.cfg.Replicas, err)
	case codeOverlap:
		return &fatalError{fmt.Errorf("%w: %s", err, p.nameOwner(ctx))}
	case codeReplicas:
		return &fatalError{fmt.Errorf("%w; lower --stream-replicas, or name a cluster with --nats-url", err)}
	}
	return &fatalError{fmt.Errorf("%w; change what the broker names, here or there", err)}
}

// nameOwner names the stream that has some of the registry's subjects, and the remedies.
func (p *Projector) nameOwner(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, stream.RequestTimeout)
	defer cancel()
	name, err := p.cfg.JetStream.StreamNameBySubject(ctx, events.StreamSubjects)
	if err != nil { // deleted, or of an account that may not ask
		return fmt.Sprintf("name the stream that holds %s with --stream, or remove it", events.StreamSubjects)
	}
	return fmt.Sprintf("stream %[1]s holds %[2]s or part of it; if %[1]s is the registry's, start with --stream %[1]s, "+
		"else remove it or take these subjects from it", name, events.StreamSubjects)
}
