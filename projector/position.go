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
// first end the model may lack states: newer messages of the same subjects displaced these states before
// they were read. At the second end the model has the newer messages.
type phase int

const (
	toFirstEnd phase = iota
	toSecondEnd
	servingSaved // the broker is away at a start, or there is no stream to go on with: the saved state is served
	caughtUp
)

// isServed reports whether readers are answered.
func (p phase) isServed() bool { return p >= servingSaved }

// end is the stream's last sequence, and when it was asked for.
type end struct {
	sequence uint64
	askedAt  time.Time // zero if there is nothing to reach
}

// lostSubjectsEvery is the shortest time between two readings of the stream because it lost subjects.
const lostSubjectsEvery = time.Minute

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

	// A stream with the known epoch is the known stream, unless it has other messages than were read.
	if found.Epoch == known.Epoch {
		seen, err := p.source.recognize(ctx, info, known)
		if err == nil && seen != sameStream {
			rewound := known.Rewound || seen == otherStream
			p.readAgain(known.Identity, rewound)
		}
		return err
	}

	// A server forgets no epoch that it has followed. If the stream has such an earlier epoch, the stream was
	// restored from a copy made before a recovery: it is rewound.
	joined := found
	joined.Follows = stream.Follow(found.Epoch, stream.Identity{Follows: found.Follows}, known.Identity)
	p.readAgain(joined, slices.Contains(known.Follows, found.Epoch))
	return nil
}

// readAgain begins to read the stream from its beginning. The known states stay and are shown.
func (p *Projector) readAgain(id stream.Identity, rewound bool) {
	level := slog.LevelWarn
	if rewound {
		level = slog.LevelError // registry recover has to publish the lost states
	}

	p.log.Log(context.Background(), level, "reading the stream again from its beginning; the known states are shown",
		"rewound", rewound, "epoch", id.Epoch, "knownEpoch", p.projection.meta.Epoch, "checkpoint", p.projection.meta.Sequence)

	// The old sequences may name other messages now, so everything that was decided by a sequence is dropped.
	p.projection.rewind(id, rewound)
	p.saver.forgetSequences()
	p.upkeep.forgetUpTo(math.MaxUint64)
	p.saver.noteChange() // the meta record has changed
	p.tracker.progress.LastSequence = 0
	p.publishProgress()
}

// setTarget sets the end that this session is to reach, and publishes the state of the stream.
func (p *Projector) setTarget(info *jetstream.StreamInfo, askedAt time.Time) {
	last := info.State.LastSeq
	p.deniedAt = time.Time{}
	p.target = end{last, askedAt}
	p.rereads = last
	if p.phase == toFirstEnd {
		// Sequences before the first message are not counted: nothing is read there. FirstSeq may be 0.
		beforeFirst := info.State.FirstSeq - min(info.State.FirstSeq, 1)
		p.from = max(p.projection.meta.Sequence, beforeFirst)
	}

	p.tracker.setProblem(frozenProblem, "")
	now := &p.tracker.progress
	now.Frozen = ""
	now.Connected = true
	now.LastSequence = last
	now.PeersMissing = countMissingPeers(info)
	if !p.phase.isServed() {
		now.Total = last - min(last, p.from)
	}
	p.publishProgress()
}

// reachEnds ends the catching up and the reading again once their ends are reached.
func (p *Projector) reachEnds(ctx context.Context) error {
	// The stream was read again up to its end: it lacks the states that were not read.
	if p.projection.reading && p.projection.meta.Sequence >= p.rereads {
		lacking := p.projection.endReading()
		p.saver.pending.lacking = lacking
		p.saver.noteChange()
		p.log.Info("the stream has been read from its beginning", "checkpoint", p.projection.meta.Sequence, "unpublished", len(lacking))
		p.publishProgress()
	}

	// At the first end, ask for the stream's end once more. At this second end the model is complete. isReached is
	// a function, since the target changes below.
	isReached := func() bool { return p.projection.meta.Sequence >= p.target.sequence }
	if p.phase == toFirstEnd && isReached() {
		askedAt := time.Now()
		info, err := p.source.Info(ctx)
		if err != nil {
			return err
		}
		p.phase = toSecondEnd
		p.target = end{info.State.LastSeq, askedAt}
	}

	if p.phase == toSecondEnd && isReached() && !p.projection.reading {
		p.projection.endBulk()
		p.projection.update(func(m *snapshots.Meta) { m.Complete = true })
		p.phase = caughtUp
		p.saver.noteChange()
		p.publishProgress()
	}

	// While the saved state is served, readers are answered all along: only the phase changes.
	if p.phase == servingSaved && isReached() {
		p.phase = caughtUp
	}

	// A model that has reached the end was complete when the end was asked for.
	if p.phase == caughtUp && isReached() && !p.target.askedAt.IsZero() {
		if p.target.askedAt.After(p.tracker.progress.AsOf) {
			p.tracker.progress.AsOf = p.target.askedAt
		}
		p.target = end{}
		p.publishProgress()
	}

	p.projection.nameFeed()
	return nil
}

// pollStream asks for the stream's end. Its error ends the session: the stream was replaced, the consumer
// does not deliver the stream's messages, or the stream has lost subjects.
func (p *Projector) pollStream(ctx context.Context) error {
	// Count the subjects before the stream is asked, since it may grow meanwhile.
	view := p.projection.model.View()
	subjects := view.NumSubjects() - view.Lacking()
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

	// A stream that has lost subjects, such as by a purge, is read again, once a minute at most.
	hasLost := p.phase == caughtUp && !p.projection.reading && int(info.State.NumSubjects) < subjects
	if hasLost && time.Since(p.lostAt) > lostSubjectsEvery {
		p.lostAt = time.Now()
		p.readAgain(p.projection.meta.Identity, p.projection.meta.Rewound)
		return errors.New("the stream has lost subjects")
	}

	// Once the model has reached this end, reachEnds notes that the model was complete at askedAt.
	if p.phase == caughtUp && p.target.askedAt.IsZero() {
		p.target = end{last, askedAt}
	}

	// All is well: publish the state of the stream.
	p.tracker.setProblem(fullProblem, describeFull(info))
	now := &p.tracker.progress
	now.Connected = true
	now.LastSequence = max(last, now.Checkpoint)
	now.PeersMissing = countMissingPeers(info)
	if copies, isCounted := p.saver.copies.count(ctx); isCounted {
		now.Rejected = copies
	}
	p.publishProgress()
	return nil
}

// checkDelivery finds out why the consumer delivers nothing. If no message is left after the checkpoint, the
// checkpoint moves to last. If there is a message, checkDelivery fails once stuckAfter is over.
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
