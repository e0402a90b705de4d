package projector

import (
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// accept says, once, whether the stream's configuration keeps what the read model relies on. Lesser
// differences are logged.
func (p *Projector) accept(info *jetstream.StreamInfo) error {
	if p.accepted {
		return nil
	}
	if err := p.refuse(info); err != nil {
		return err
	}
	p.warn(info.Config)
	p.accepted = true
	return nil
}

// Remedies. The broker does not take back every setting of a stream that exists.
const (
	changeIt = "change the stream's configuration"
	makeAnew = "the broker cannot take that back: publish the events into a new stream made without it"
)

// refuse is the error, an unusable, for a stream that would lose last states or is not for this
// process (API contract, the stream).
func (p *Projector) refuse(info *jetstream.StreamInfo) error {
	c := info.Config
	retention := changeIt
	if c.Retention == jetstream.WorkQueuePolicy {
		retention = makeAnew
	}
	losing := []struct {
		is           bool
		what, remedy string
	}{
		{c.MaxAge > 0, fmt.Sprintf("MaxAge %s: events would expire", c.MaxAge), changeIt},
		{c.AllowMsgTTL, "AllowMsgTTL: an event published with a Nats-TTL would expire", makeAnew},
		{c.MaxMsgs > 0, fmt.Sprintf("MaxMsgs %d: old events would be dropped", c.MaxMsgs), changeIt},
		{c.Discard != jetstream.DiscardNew, "discard policy old: a full stream would drop events instead of refusing new ones", changeIt},
		{c.Retention != jetstream.LimitsPolicy, fmt.Sprintf("retention %s: events would go once delivered", c.Retention), retention},
	}
	for _, l := range losing {
		if l.is {
			return unusable{fmt.Errorf("stream %s has %s; %s", c.Name, l.what, l.remedy)}
		}
	}
	return p.acceptMark(info)
}

// acceptMark keeps the demonstration and the real registry apart (API contract, serve --demo).
func (p *Projector) acceptMark(info *jetstream.StreamInfo) error {
	if p.cfg.ReadOnly {
		return nil
	}
	marked := info.Config.Metadata[events.MetadataDemo] == "true"
	switch {
	case marked && !p.cfg.Demo:
		return unusable{fmt.Errorf("stream %s holds the demonstration registry; serve it with --demo, or name another stream or data directory", info.Config.Name)}
	case !marked && p.cfg.Demo && info.State.LastSeq > 0:
		return unusable{fmt.Errorf("stream %s holds events and is not the demonstration's; choose another data directory for --demo", info.Config.Name)}
	}
	return nil
}

// difference is one setting that is not as this program would make it.
type difference struct {
	option          string
	expected, found any
}

// warn logs each difference that costs something but loses nothing.
func (p *Projector) warn(c jetstream.StreamConfig) {
	want := events.StreamConfig(p.cfg.Stream, p.cfg.Replicas, p.cfg.History, "")
	for _, d := range append(differences(c, want), additions(c)...) {
		p.log.Warn("stream differs from the one this program would create",
			"option", d.option, "expected", d.expected, "found", d.found)
	}
}

// differences compares the settings that the contract gives the stream, but for those that refuse
// has seen.
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

// additions are settings that the contract does not name and that stand in somebody's way: of publishers
// (sealed, a full subject, no acknowledgements), of the events' subjects, of more than so many replicas'
// consumers, or of what an acknowledgement promises.
func additions(c jetstream.StreamConfig) (found []difference) {
	add := func(set bool, option string, expected, is any) {
		if set {
			found = append(found, difference{option, expected, is})
		}
	}
	add(c.Mirror != nil || len(c.Sources) > 0, "origin", "published to", "a mirror or with sources")
	add(c.SubjectTransform != nil, "subject transform", "none", c.SubjectTransform)
	add(c.DiscardNewPerSubject, "discard new per subject", false, true)
	add(c.NoAck, "no ack", false, true)
	add(c.Sealed, "sealed", false, true)
	add(c.MaxConsumers > 0, "max consumers", -1, c.MaxConsumers)
	add(c.PersistMode == jetstream.AsyncPersistMode, "persist mode", "default", "async")
	return found
}
