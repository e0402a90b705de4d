package projector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

const (
	// upkeepWithin is the time after which run begins no further request, so that the next messages are applied soon.
	upkeepWithin = 100 * time.Millisecond

	// upkeepRetry is the wait after a failed purge. An account that may not purge fails each time.
	upkeepRetry = 5 * time.Second
)

// upkeep purges the messages before removals, and restores states: it publishes a subject's latest state again if
// another message has displaced it in the stream. Only Run's goroutine calls the methods.
type upkeep struct {
	cfg     Config
	stream  stream.Stream
	tracker *tracker

	isActive  bool                         // this server may write, and has looked for removals in the store
	purges    map[events.Subject]uint64    // sequence of a removal
	displaced map[events.Subject]uint64    // sequence of a message that may have displaced the latest state
	restored  map[events.Subject]time.Time // when the latest state was last published again
	notBefore time.Time                    // when the next work may begin, after a failed purge
}

func newUpkeep(cfg Config, t *tracker) *upkeep {
	return &upkeep{
		cfg:       cfg,
		stream:    stream.Stream{JS: cfg.JetStream, Name: cfg.Stream},
		tracker:   t,
		purges:    map[events.Subject]uint64{},
		displaced: map[events.Subject]uint64{},
		restored:  map[events.Subject]time.Time{},
	}
}

// findRemovals looks in the store for removals after the sequence purgedUpTo: an earlier process, or another
// server, may not have purged the messages before these removals.
func (u *upkeep) findRemovals(purgedUpTo uint64) {
	err := u.cfg.Store.Each(nil, func(state snapshots.State) error {
		// Decoding takes long, so first look for the type of a removal anywhere in the line.
		mayBeRemoval := bytes.Contains(state.Line, []byte(events.TypeDelisted)) || bytes.Contains(state.Line, []byte(events.TypeDonationRemoved))
		if state.Sequence <= purgedUpTo || !mayBeRemoval {
			return nil
		}

		if e, err := events.Decode(state.Line); err == nil && e.Type.Removes() {
			u.purges[e.Data.Subject()] = state.Sequence
		}
		return nil
	})

	u.isActive = err == nil // else run tries again
	if err != nil {
		u.cfg.Logger.Warn("removals cannot be looked for in the store; trying again", "error", err)
	}
}

// noteState notes a message that has set the latest state of its subject.
func (u *upkeep) noteState(m *stream.Message, record *readmodel.Record) {
	delete(u.displaced, record.Subject)
	if record.Removed {
		u.purges[record.Subject] = m.Sequence
	}
}

// noteDisplacement notes a message that has set no state. If the message with the latest state of its subject comes
// earlier in the stream, it may have been displaced.
func (u *upkeep) noteDisplacement(m *stream.Message) {
	if subject, err := events.ParseSubject(m.Subject); err == nil {
		u.displaced[subject] = m.Sequence
	}
}

// forgetUpTo drops the purges and restorations that follow from messages up to a sequence.
func (u *upkeep) forgetUpTo(sequence uint64) {
	isForgotten := func(_ events.Subject, seq uint64) bool { return seq <= sequence }
	maps.DeleteFunc(u.purges, isForgotten)
	maps.DeleteFunc(u.displaced, isForgotten)
}

// hasPurged reports whether this server does the upkeep and has purged behind every removal up to a sequence.
func (u *upkeep) hasPurged(upTo uint64) bool {
	for _, seq := range u.purges {
		if seq <= upTo {
			return false
		}
	}
	return u.isActive
}

// run purges and, if mayRestore, restores what the messages up to the sequence saved require, for about upkeepWithin.
// It returns how many states it has restored. Removals up to the sequence purgedUpTo need no purge.
func (u *upkeep) run(ctx context.Context, saved, purgedUpTo uint64, mayRestore bool) (restored uint64) {
	// Another server does the work. If this server takes it over later, findRemovals finds the removals in the store.
	if !u.cfg.MayWrite() {
		u.isActive = false
		u.forgetUpTo(saved)
		return 0
	}
	if !u.isActive {
		u.findRemovals(purgedUpTo) // sets isActive, unless the store cannot be read
	}

	if time.Now().Before(u.notBefore) {
		return 0
	}

	deadline := time.Now().Add(upkeepWithin)
	sentence := ""
	if err := u.purgeAll(ctx, saved, deadline); err != nil {
		sentence = fmt.Sprintf("Messages before removals are not purged: %v.", err)
		u.notBefore = time.Now().Add(upkeepRetry)
	}
	isNew := u.tracker.setProblem(purgesProblem, sentence)
	if isNew && sentence != "" {
		u.cfg.Logger.Warn("messages before removals are not purged; trying again", "problem", sentence)
	}

	if mayRestore {
		restored = u.restoreAll(ctx, saved, deadline)
	}
	return restored
}

func (u *upkeep) purgeAll(ctx context.Context, saved uint64, deadline time.Time) error {
	for subject, seq := range u.purges {
		if time.Now().After(deadline) {
			return nil
		}
		if seq > saved {
			continue
		}
		if err := u.purgeBefore(ctx, subject, seq); err != nil {
			return err
		}
		delete(u.purges, subject)
	}
	return nil
}

// purgeBefore purges the messages before a removal, if the stream has the removal at the sequence: the stream may
// have been replaced since the removal was read.
func (u *upkeep) purgeBefore(ctx context.Context, subject events.Subject, seq uint64) error {
	m, err := u.stream.Message(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil // the removal was displaced, or the stream was replaced and will be reread
	}
	if err != nil {
		return err
	}

	if e, err := m.Event(); err != nil || e.Data.Subject() != subject || !e.Type.Removes() {
		return nil
	}
	return u.stream.PurgeBefore(ctx, subject.String(), seq)
}

// restoreAll publishes displaced states again, if the displacing message has a sequence up to saved. Another program
// may displace a state again and again, so this server restores the state once in restoreEvery at most.
func (u *upkeep) restoreAll(ctx context.Context, saved uint64, deadline time.Time) (restored uint64) {
	for subject, displacer := range u.displaced { // the sequence of a message
		if time.Now().After(deadline) {
			return restored
		}
		isRecent := time.Since(u.restored[subject]) < u.cfg.pace.restoreEvery
		if isRecent || displacer > saved { // the store may not have the subject's state yet
			continue
		}

		// Nothing was displaced if the subject has no state, or if its latest state comes after the message.
		state, isKnown, err := u.cfg.Store.State(subject)
		if err != nil {
			continue
		}
		if !isKnown || state.Sequence >= displacer {
			delete(u.displaced, subject)
			continue
		}

		err = u.stream.PublishAfter(ctx, subject.String(), state.Line, displacer)
		if err == nil {
			u.restored[subject] = time.Now()
			restored++
		}
		if err == nil || natserr.IsConflict(err) { // a conflict: the subject has a newer message, which will be read
			delete(u.displaced, subject)
		}
	}
	return restored
}
