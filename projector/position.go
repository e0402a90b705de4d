package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/stream"
	"example.org/registry/snapshots"
)

// phase says how far the model is from being served. The projector asks for the stream's end twice. At the
// first end the model may lack the state of a subject whose message was displaced by a newer one before the projector
// read it. At the second end the model has the newer message, too.
type phase int

const (
	toFirstEnd phase = iota
	toSecondEnd
	servingSaved // no session has caught up yet, and the saved state is served meanwhile
	caughtUp
)

// isServed reports whether readers are answered.
func (p phase) isServed() bool { return p >= servingSaved }

// end is the stream's last sequence, and when it was asked for.
type end struct {
	sequence uint64
	askedAt  time.Time // zero if there is nothing to reach
}

// rereadAfterLoss is the shortest time between two rereadings of the stream because it has lost subjects.
const rereadAfterLoss = time.Minute

// acceptStream decides from where the stream is read: from after the checkpoint, or from its beginning.
func (p *Projector) acceptStream(ctx context.Context, info *jetstream.StreamInfo) error {
	if err := p.source.checkSettings(info); err != nil {
		return err
	}

	// A server that knows nothing follows any stream.
	found := stream.IdentityOf(info)
	if p.projection.isEmpty() {
		p.projection.update(func(m *snapshots.Meta) { m.Identity = found })
		return nil
	}

	known := p.projection.meta
	if !found.Related(known.Identity) {
		return &frozenError{FrozenForeign, fmt.Sprintf("The stream %s is another registry's: its epoch is %s, and not %s or one that it follows; "+
			"correct --nats-url or --stream, or move the data directory away.", p.cfg.Stream, found.Epoch, known.Epoch)}
	}

	// The epoch is the known one: go on after the checkpoint if the stream still holds a message that was read.
	if found.Epoch == known.Epoch {
		result, err := p.source.recognize(ctx, info, known)
		if err == nil && result != sameStream {
			isRewound := known.Rewound || result == otherStream
			p.readAgain(known.Identity, isRewound)
		}
		return err
	}

	// The epoch is another one of the same registry. The server follows the known epochs, too: it forgets none.
	joined := found
	joined.Follows = stream.Follow(found.Epoch, found, known.Identity)

	// A stream with an earlier epoch was restored from a copy made before a recovery.
	isRewound := slices.Contains(known.Follows, found.Epoch)
	p.readAgain(joined, isRewound)
	return nil
}

// readAgain begins to read the stream from its beginning. The known states stay and are shown.
func (p *Projector) readAgain(id stream.Identity, isRewound bool) {
	level := slog.LevelWarn
	if isRewound {
		level = slog.LevelError // registry recover has to publish the lost states
	}

	p.log.Log(context.Background(), level, "reading the stream again from its beginning; the known states are shown",
		"rewound", isRewound, "epoch", id.Epoch, "knownEpoch", p.projection.meta.Epoch, "checkpoint", p.projection.meta.Sequence)

	// The old sequences may name other messages now, so everything that was decided by a sequence is dropped.
	p.projection.startRereading(id, isRewound)
	p.saver.forgetSequences()
	p.upkeep.forgetUpTo(math.MaxUint64)
	p.saver.noteChange() // the meta record has changed
	p.tracker.observed.LastSequence = 0
	p.publishProgress()
}

// setTarget sets the ends of the catch-up and of a rereading, and notes the state of the accepted stream.
func (p *Projector) setTarget(info *jetstream.StreamInfo, askedAt time.Time) {
	last := info.State.LastSeq
	p.target = end{last, askedAt}
	p.rereadUntil = last

	// The stream is accepted, so the projector is not frozen.
	p.deniedSince = time.Time{}
	p.tracker.setProblem(frozenProblem, "")
	p.tracker.observed.Frozen = ""

	// The work of the catch-up begins at the checkpoint or, if later, before the first message. FirstSeq may be 0.
	if p.phase == toFirstEnd {
		beforeFirst := max(info.State.FirstSeq, 1) - 1
		p.catchUpFrom = max(p.projection.meta.Sequence, beforeFirst)
	}
	if !p.phase.isServed() {
		p.tracker.observed.Total = max(last, p.catchUpFrom) - p.catchUpFrom
	}
	p.tracker.observeStream(info)
}

// reachEnds ends the rereading and the catch-up once the checkpoint is at their ends.
func (p *Projector) reachEnds(ctx context.Context) error {
	checkpoint := p.projection.meta.Sequence

	// The stream has been reread up to its end: the states that were not read are lacking in it.
	if p.projection.isRereading && checkpoint >= p.rereadUntil {
		lacking := p.projection.endRereading()
		p.saver.pending.lacking = lacking
		p.saver.noteChange()
		p.log.Info("the stream has been read from its beginning", "checkpoint", checkpoint, "unpublished", len(lacking))
	}

	// At the first end, the model may lack a state that was displaced before it was read (see phase). The message that
	// displaced it comes before the stream's present end, so that end is the next target.
	if p.phase == toFirstEnd && checkpoint >= p.target.sequence {
		askedAt := time.Now()
		info, err := p.source.Info(ctx)
		if err != nil {
			return err
		}
		p.phase = toSecondEnd
		p.target = end{info.State.LastSeq, askedAt}
	}

	// At the second end, the model is complete. If no message has come since the first end, this is the same call.
	isAtEnd := checkpoint >= p.target.sequence
	if p.phase == toSecondEnd && isAtEnd && !p.projection.isRereading {
		p.projection.endBulk()
		p.projection.update(func(m *snapshots.Meta) { m.Complete = true })
		p.phase = caughtUp
		p.saver.noteChange()
	}

	// While the saved state is served, readers are answered all along: only the phase changes.
	if p.phase == servingSaved && isAtEnd {
		p.phase = caughtUp
	}

	// The model has everything that the stream had when its end was asked for. pollStream sets the next target.
	if p.phase == caughtUp && isAtEnd {
		if p.target.askedAt.After(p.tracker.observed.AsOf) {
			p.tracker.observed.AsOf = p.target.askedAt
		}
		p.target = end{}
	}

	p.projection.nameFeed()
	return nil
}

// pollStream asks for the stream's end. Its error ends the session: the stream was replaced, the consumer
// does not deliver the stream's messages, or the stream has lost subjects.
func (p *Projector) pollStream(ctx context.Context) error {
	askedAt := time.Now()
	info, err := p.source.Info(ctx)
	if err != nil {
		return err
	}

	last := info.State.LastSeq
	if stream.IdentityOf(info).Epoch != p.projection.meta.Epoch || last < p.projection.meta.Sequence {
		return errors.New("the stream is not the one that was read")
	}

	// Nothing was delivered for two polls, although the stream has more messages: find out why.
	if last > p.projection.meta.Sequence && time.Since(p.movedAt) > 2*p.cfg.pace.pollEvery {
		if err := p.checkDelivery(ctx, last); err != nil {
			return err
		}
	}

	// A stream that has lost subjects, such as by a purge, is reread, but not again within rereadAfterLoss.
	view := p.projection.model.View()
	subjects := view.NumSubjects() - view.Lacking()
	hasLost := p.phase == caughtUp && !p.projection.isRereading && int(info.State.NumSubjects) < subjects
	if hasLost && time.Since(p.lostAt) > rereadAfterLoss {
		p.lostAt = time.Now()
		p.readAgain(p.projection.meta.Identity, p.projection.meta.Rewound)
		return errors.New("the stream has lost subjects")
	}

	// Once the model has reached this end, reachEnds notes that the model was complete at askedAt.
	if p.phase == caughtUp && p.target.askedAt.IsZero() {
		p.target = end{last, askedAt}
	}

	p.tracker.observeStream(info)
	p.tracker.setProblem(fullProblem, describeFull(info))
	if copies, isCounted := p.saver.copies.count(ctx); isCounted {
		p.tracker.observed.Rejected = copies
	}
	return nil
}

// checkDelivery finds out why the consumer delivers nothing. If the stream has no message after the checkpoint, the
// checkpoint moves to last, the stream's end. If there is a message, checkDelivery fails once the wait for it exceeds
// stuckAfter.
func (p *Projector) checkDelivery(ctx context.Context, last uint64) error {
	_, err := p.source.NextMessage(ctx, p.projection.meta.Sequence+1)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		p.apply(nil, last)
		return nil
	}
	if err == nil && time.Since(p.movedAt) > p.cfg.pace.stuckAfter {
		return errors.New("the consumer does not deliver the stream's messages")
	}
	return err
}
