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
	// upkeepWithin bounds one call of run, so that the next messages are applied soon.
	upkeepWithin = 100 * time.Millisecond

	// upkeepRetry is the wait after a purge that failed. If the account forbids purges, each one fails.
	upkeepRetry = 5 * time.Second
)

// upkeep purges the messages before removals, and publishes latest states again that other messages have
// displaced. Run's goroutine calls its methods.
type upkeep struct {
	cfg      Config
	stream   stream.Stream
	problems *tracker

	isActive  bool                         // this server may write, and knows the removals in the store
	purges    map[events.Subject]uint64    // sequence of a removal
	displaced map[events.Subject]uint64    // sequence of a message that is not the subject's latest state
	restored  map[events.Subject]time.Time // when a subject's state was last published again
	notBefore time.Time
}

func newUpkeep(cfg Config, problems *tracker) *upkeep {
	return &upkeep{
		cfg:       cfg,
		stream:    stream.Stream{JS: cfg.JetStream, Name: cfg.Stream},
		problems:  problems,
		purges:    map[events.Subject]uint64{},
		displaced: map[events.Subject]uint64{},
		restored:  map[events.Subject]time.Time{},
	}
}

// findRemovals looks in the store for removals after the sequence erased: an earlier process, or another
// server, may not have purged the messages before these removals.
func (u *upkeep) findRemovals(erased uint64) {
	err := u.cfg.Store.Each(nil, func(state snapshots.State) error {
		// Decode only lines that contain the type of a removal. It may be in another member, such as a reason.
		mayBeRemoval := bytes.Contains(state.Line, []byte(events.TypeDelisted)) || bytes.Contains(state.Line, []byte(events.TypeDonationRemoved))
		if state.Sequence <= erased || !mayBeRemoval {
			return nil
		}
		if e, err := events.Decode(state.Line); err == nil && e.Type.Removes() {
			u.purges[e.Data.Subject()] = state.Sequence
		}
		return nil
	})
	u.isActive = err == nil
	if err != nil {
		u.cfg.Logger.Warn("removals cannot be looked for in the store; trying again", "error", err)
	}
}

// addState notes a message with the latest state of its subject.
func (u *upkeep) addState(m *stream.Message, record *readmodel.Record) {
	delete(u.displaced, record.Subject)
	if record.Removed {
		u.purges[record.Subject] = m.Sequence
	}
}

// addDisplaced notes a message that has set no state: the message may be the last of its subject, after the
// message with the latest state.
func (u *upkeep) addDisplaced(m *stream.Message) {
	if subject, err := events.ParseSubject(m.Subject); err == nil {
		u.displaced[subject] = m.Sequence
	}
}

// forgetUpTo drops the work that follows from messages up to a sequence. It is found again in the store, or in
// the stream.
func (u *upkeep) forgetUpTo(sequence uint64) {
	isForgotten := func(_ events.Subject, seq uint64) bool { return seq <= sequence }
	maps.DeleteFunc(u.purges, isForgotten)
	maps.DeleteFunc(u.displaced, isForgotten)
}

// hasPurged reports whether no removal up to a sequence waits for a purge. It is false while u is not active.
func (u *upkeep) hasPurged(upTo uint64) bool {
	for _, seq := range u.purges {
		if seq <= upTo {
			return false
		}
	}
	return u.isActive
}

// run does some of the work that follows from saved messages, those up to the sequence saved. It returns how
// many states it has published again. Removals in the store after the sequence erased may need a purge.
func (u *upkeep) run(ctx context.Context, saved, erased uint64, mayRestore bool) (restored uint64) {
	// Another server does the work. If this server takes it over, it looks for removals in the store again.
	if !u.cfg.MayWrite() {
		u.isActive = false
		u.forgetUpTo(saved)
		return 0
	}
	if !u.isActive {
		u.findRemovals(erased)
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
	isNew := u.problems.setProblem(purgesProblem, sentence)
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

// purgeBefore purges the messages before a removal, if the stream still has the removal there: the stream
// may have been replaced since.
func (u *upkeep) purgeBefore(ctx context.Context, subject events.Subject, seq uint64) error {
	m, err := u.stream.Message(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil // displaced, or of another stream, where it is read again
	}
	if err != nil {
		return err
	}

	if e, err := m.Event(); err != nil || e.Data.Subject() != subject || !e.Type.Removes() {
		return nil
	}
	return u.stream.PurgeBefore(ctx, subject.String(), seq)
}

// restoreAll publishes displaced states again. Another program may do the same, so between two publications
// of a subject's state restoreEvery must pass.
func (u *upkeep) restoreAll(ctx context.Context, saved uint64, deadline time.Time) (restored uint64) {
	for subject, seq := range u.displaced {
		if time.Now().After(deadline) {
			return restored
		}
		isRecent := time.Since(u.restored[subject]) < u.cfg.pace.restoreEvery
		if isRecent || seq > saved {
			continue
		}
		// A message hides nothing if there is no state, or if the latest state comes later in the stream.
		state, isKnown, err := u.cfg.Store.State(subject)
		if err != nil {
			continue
		}
		if !isKnown || state.Sequence >= seq {
			delete(u.displaced, subject)
			continue
		}

		err = u.stream.PublishAfter(ctx, subject.String(), state.Line, seq)
		if err == nil {
			u.restored[subject] = time.Now()
			restored++
		}
		if err == nil || natserr.IsConflict(err) { // a conflict: the subject has a newer message
			delete(u.displaced, subject)
		}
	}
	return restored
}
