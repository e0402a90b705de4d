package projector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/leader"
	"example.org/registry/events/pause"
	"example.org/registry/projector/lineage"
)

// A stream may be a mirror of another one, its origin (events/CONTRACT.md#mirrors). It has the
// origin's messages under the origin's sequences, some time later. It cannot know where the origin
// ends, and whether the origin is still the stream that was mirrored; the projector asks the
// origin. If the origin does not answer, the projector waits, and serves a model that was complete
// once.

// findOrigin records the origin of the stream, if any.
func (p *Projector) findOrigin(info *jetstream.StreamInfo) error {
	m := info.Config.Mirror
	if m == nil || p.cfg.ReadOnly || p.origin.Load() != nil {
		return nil
	}
	js := p.js
	if m.External != nil && m.External.APIPrefix != "" {
		var err error
		if js, err = jetstream.NewWithAPIPrefix(p.js.Conn(), m.External.APIPrefix); err != nil {
			return unusable("stream %s: the origin's API prefix %q: %w", info.Config.Name, m.External.APIPrefix, err)
		}
	}
	p.origin.Store(&leader.Stream{JS: js, Name: m.Name})
	return nil
}

// whole asks where the stream ends, and when: asOf is zero if that is unknown. info was requested
// at the time asked. The error is that of an origin that does not answer, if the model has never
// been complete.
func (p *Projector) whole(ctx context.Context, info *jetstream.StreamInfo, asked time.Time) (end uint64, asOf time.Time, err error) {
	origin := p.origin.Load()
	if origin == nil {
		return info.State.LastSeq, asked, nil
	}
	asked = time.Now()
	end, err = lastMessage(ctx, *origin)
	switch {
	case err == nil:
		return end, asked, nil
	case p.complete():
		return info.State.LastSeq, time.Time{}, nil
	}
	return 0, time.Time{}, fmt.Errorf("the stream %s mirrors %s, which does not answer, and only that knows whether the mirror is complete: %w",
		info.Config.Name, origin.Name, err)
}

// askEnd is whole for callers that have not requested the stream's info yet.
func (p *Projector) askEnd(ctx context.Context) (end uint64, asOf time.Time, err error) {
	asked := time.Now()
	info, err := p.stream.Info(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	return p.whole(ctx, info, asked)
}

// lastMessage returns the sequence of the stream's last message, or 0 if it has none. A mirror does
// not receive erasures after that.
func lastMessage(ctx context.Context, s leader.Stream) (uint64, error) {
	m, err := s.LastMessage(ctx, ">")
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nil
	case errors.Is(err, nats.ErrNoResponders):
		return 0, errors.New("no broker that has it can be reached")
	}
	return m.Sequence, err
}

// knownOrigin is known for the origin of a mirror, which itself follows any stream that has its
// origin's name and is longer. An origin that does not answer is no reason.
func (p *Projector) knownOrigin(ctx context.Context) error {
	origin := p.origin.Load()
	if origin == nil {
		return nil
	}
	info, err := origin.Info(ctx)
	if err != nil {
		return nil
	}
	if err := p.ours(ctx, *origin, lineage.Of(info), "The origin "+origin.Name+" of the mirror "+p.stream.Name); errors.As(err, new(*frozenError)) {
		return err
	}
	return nil
}

// verifyOrigin returns why the origin is not as the mirror was read.
func (p *Projector) verifyOrigin(ctx context.Context, origin leader.Stream) error {
	info, err := origin.Info(ctx)
	if err != nil {
		return nil // said elsewhere
	}
	if err := check(ctx, origin, info, p.Checkpoint()); errors.Is(err, errChanged) {
		return errors.New("it is not the stream any more that was mirrored: make the mirror anew")
	}
	return nil
}

// watchOrigin asks the origin where it ends, every PollEvery. It runs in its own goroutine: the
// link to the origin may be slow, and no poll of the mirror waits for it.
func (p *Projector) watchOrigin(ctx context.Context) {
	var wrong error
	verified, away := time.Now(), false
	for pause.For(ctx, p.cfg.PollEvery) {
		origin := p.origin.Load()
		if origin == nil || p.Status().Frozen {
			continue
		}
		asked := time.Now()
		end, err := lastMessage(ctx, *origin)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			p.tracker.ended(end, asked)
		}
		away = p.originAnswers(origin.Name, cmp.Or(err, wrong), away)
		if time.Since(verified) < p.cfg.VerifyEvery {
			continue
		}
		verified = time.Now()
		if wrong = p.verifyOrigin(ctx, *origin); wrong != nil && p.knownOrigin(ctx) != nil {
			p.recheck(wrong) // the next session freezes
		}
	}
}

// originAnswers reports to the operator whether the origin answers, and returns whether it is away.
func (p *Projector) originAnswers(name string, err error, was bool) (away bool) {
	switch away = err != nil && p.js.Conn().IsConnected(); {
	case away && !was:
		p.log.Warn("the mirror's origin cannot be followed; what the mirror has is served", "origin", name, "error", err)
	case was && err == nil:
		p.log.Info("the mirror's origin can be followed again", "origin", name)
	}
	sentence := ""
	if away {
		sentence = fmt.Sprintf("The origin %s of the mirror %s cannot be followed, so newer events are missing: %v.", name, p.stream.Name, err)
	}
	p.tracker.setTrouble(troubleOrigin, sentence)
	return away || was && err != nil
}

// asMirror removes from want the settings that a mirror cannot have.
func asMirror(c, want jetstream.StreamConfig) jetstream.StreamConfig {
	if c.Mirror != nil {
		want.Subjects, want.Duplicates, want.AllowAtomicPublish = nil, c.Duplicates, false
	}
	return want
}

// part returns the reason why a mirror lacks some of its origin's messages, or "".
func part(m *jetstream.StreamSource) string {
	switch {
	case m == nil:
	case m.FilterSubject != "" || len(m.SubjectTransforms) > 0:
		return "a mirror's filter: some events would not come"
	case m.OptStartSeq > 0 || m.OptStartTime != nil:
		return "a mirror's start: older events would not come"
	}
	return ""
}
