package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// Projector follows one stream. Run's goroutine owns it.
type Projector struct {
	cfg        Config
	log        *slog.Logger
	source     *source
	projection projection
	saver      *saver
	upkeep     *upkeep
	tracker    tracker
	ended      chan struct{} // closed when Run returns

	phase   phase
	target  end    // the next end to reach
	from    uint64 // checkpoint at which the catch-up began
	rereads uint64 // sequence at which the reading from the beginning ends

	deniedAt time.Time // when a session first found no stream to go on with; zero if the last one did
	movedAt  time.Time // when the checkpoint moved last
	lostAt   time.Time // when the stream was last read again because of lost subjects

	counts     Counts
	rejections rejectionLog
}

// phase says how far the model is from being served. At the stream's first end the model may lack states:
// newer messages of the same subjects displaced these states before they were read. At the second end the
// model has the newer messages.
type phase int

const (
	toFirstEnd phase = iota
	toSecondEnd
	caughtUp
)

// end is the stream's last sequence, and when it was asked for.
type end struct {
	sequence uint64
	askedAt  time.Time // zero if there is nothing to reach
}

// New makes a Projector.
func New(cfg Config) *Projector {
	cfg = cfg.withDefaults()
	p := &Projector{
		cfg: cfg, log: cfg.Logger, ended: make(chan struct{}),
		source:     &source{stream.Stream{JS: cfg.JetStream, Name: cfg.Stream}, cfg},
		projection: projection{model: cfg.Model, meta: cfg.Meta},
		rejections: newRejectionLog(cfg.Logger),
	}

	p.tracker.began = time.Now()
	p.saver = newSaver(cfg, &p.tracker)
	p.upkeep = newUpkeep(cfg, &p.tracker)
	// Known states without a checkpoint: the last process ended while it read the stream again.
	p.projection.reading = cfg.Meta.Sequence == 0 && !p.projection.isEmpty()

	p.publishProgress(func(s *Progress) {
		s.Saved = cfg.Meta.Sequence
		if marks := cfg.Meta.Marks; cfg.Meta.Complete && len(marks) > 0 {
			s.AsOf = marks[len(marks)-1].Time
			if now := time.Now(); s.AsOf.After(now) { // the broker's clock is ahead
				s.AsOf = now
			}
		}
	})
	return p
}

const (
	// firstWait is the wait after a session that made no step. Each further one doubles it.
	firstWait = 50 * time.Millisecond

	// lostSubjectsEvery is how often the stream is read again at most because it lost subjects.
	lostSubjectsEvery = time.Minute
)

var errRejectionsWait = errors.New("rejected events are waiting to be copied")

// Run follows the stream until ctx ends, and saves every event that it has applied. Before the model has
// caught up, a stream that must not be followed ends it with an error.
func (p *Projector) Run(ctx context.Context) error {
	defer close(p.ended)
	wait := firstWait
	for {
		before := p.projection.meta.Sequence
		err := p.followStream(ctx)
		if ctx.Err() != nil {
			p.saveRest()
			return nil
		}
		if fatal, isFatal := errors.AsType[*fatalError](err); isFatal && p.phase != caughtUp {
			p.tracker.setProblem(streamProblem, fmt.Sprintf("The stream must not be followed: %v.", err))
			p.saveRest()
			return fatal.error
		}
		p.reportFailure(err)

		// After a session that made a step, the next one begins at once: it may only have to pass a message that
		// no consumer delivers.
		if p.projection.meta.Sequence > before {
			wait = firstWait
			continue
		}
		p.saveWhileWaiting(ctx, wait)
		wait = min(2*wait, max(p.cfg.pace.retryEvery, firstWait))
	}
}

// followStream is one session: it reads the stream with one consumer until a problem occurs, and returns
// that.
func (p *Projector) followStream(ctx context.Context) error {
	if p.saver.isFull() {
		return errRejectionsWait
	}

	// Find the stream, and decide from where it is read.
	askedAt := time.Now()
	info, err := p.source.find(ctx, p.projection.isEmpty())
	if err != nil {
		return err
	}
	if err := p.acceptStream(ctx, info); err != nil {
		return err
	}

	p.setTarget(info, askedAt)

	// Read the first message by a request of its own: a request returns a message with any headers, while the
	// consumer's client library takes some headers for the broker's own and drops the message.
	first, err := p.source.NextMessage(ctx, p.projection.meta.Sequence+1)
	if errors.Is(err, stream.ErrNoMessage) {
		p.apply(nil, info.State.LastSeq) // every message after the checkpoint has been erased
	} else if err != nil {
		return err
	} else {
		p.apply([]stream.Message{first}, first.Sequence)
	}

	// Create the consumer, then check the stream again before the first message is applied: from
	// here on, replacing the stream also removes the consumer.
	consumer, err := p.source.consume(ctx, p.projection.meta.Sequence+1)
	if err != nil {
		return err
	}
	defer consumer.stop()
	if err := p.source.checkReplaced(ctx, info); err != nil {
		return err
	}

	p.tracker.setProblem(streamProblem, "")
	if p.phase != caughtUp {
		p.projection.beginBulk(consumer.pending)
		defer p.projection.endBulk()
	}
	return p.readDeliveries(ctx, consumer)
}

// readDeliveries applies the deliveries, saves, and looks after the stream, until a problem occurs.
func (p *Projector) readDeliveries(ctx context.Context, consumer *consumer) error {
	p.movedAt = time.Now()
	poll := time.NewTicker(p.cfg.pace.pollEvery)
	defer poll.Stop()
	save := time.NewTicker(p.cfg.pace.saveEvery)
	defer save.Stop()
	for {
		if err := p.reachEnds(ctx); err != nil {
			return err
		}
		p.saver.startIfDue(&p.projection)

		select {
		case first := <-consumer.messages:
			if err := p.applyBatch(consumer.take(first)); err != nil {
				return err
			}
		case err := <-p.saver.results:
			p.finishCommit(err)
			p.runUpkeep(ctx)
		case <-save.C:
			p.runUpkeep(ctx)
		case <-poll.C:
			if err := p.pollStream(ctx); err != nil {
				return err
			}
		case err := <-consumer.failed:
			return fmt.Errorf("consumer: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

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

	// A stream with the known epoch is the known stream, unless its messages are not the ones that were read.
	if found.Epoch == known.Epoch {
		seen, err := p.source.recognize(ctx, info, known)
		if err == nil && seen != sameStream {
			p.readAgain(known.Identity, known.Rewound || seen == otherStream)
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

	// The old sequences may name other messages now, so every decision by a sequence is dropped.
	p.projection.rewind(id, rewound)
	p.saver.forgetSequences()
	p.upkeep.forget()
	p.saver.noteChange() // the meta record has changed
	p.publishProgress(func(s *Progress) {
		s.Saved = 0
		s.LastSequence = 0
	})
}

// setTarget sets the end that this session is to reach.
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
	p.publishProgress(func(s *Progress) {
		s.Frozen = ""
		s.Connected = true
		s.LastSequence = last
		s.PeersMissing = countMissingPeers(info)
		if p.phase != caughtUp {
			s.Total = last - min(last, p.from)
		}
	})
}

// applyBatch applies the results of consumer.take: first the batch, which is complete up to its last message,
// and then takeErr, which ends the session. Too many waiting rejections end the session, too.
func (p *Projector) applyBatch(batch []stream.Message, takeErr error) error {
	if len(batch) > 0 {
		p.apply(batch, batch[len(batch)-1].Sequence)
	}
	if takeErr == nil && p.saver.isFull() {
		return errRejectionsWait
	}
	return takeErr
}

// apply applies messages and moves the checkpoint to upTo: everything up to that sequence has been read.
func (p *Projector) apply(messages []stream.Message, upTo uint64) {
	if upTo <= p.projection.meta.Sequence {
		return
	}

	items := decodeAll(messages, p.log)
	losses := p.projection.apply(messages, items, upTo)

	// The state of a winner is saved. A loser may be the last message of its subject: then it hides the winner
	// from other readers of the stream, until upkeep publishes the winner again.
	for i := range messages {
		m := &messages[i]
		item := &items[i]
		loss, isLost := losses[m.Sequence]
		if item.err == nil && !isLost {
			p.saver.pending.addState(m, item)
			continue
		}
		p.saver.pending.addDisplaced(m)
		p.countLoser(m, item, loss)
	}

	p.counts.Applied += uint64(len(messages))
	p.movedAt = time.Now()
	p.saver.noteChange()
	p.publishProgress(nil)
}

// countLoser counts a message that has set no state, and rejects the message if the backend has made a mistake.
func (p *Projector) countLoser(m *stream.Message, item *decoded, loss readmodel.Loss) {
	// While the stream is read again, a loser is no mistake: the backend has published a greater revision since.
	isMistake := !p.projection.reading && (loss.Conflict || loss.Unheeded)
	if item.err == nil && !isMistake {
		p.counts.Superseded++
		return
	}

	// In the first replay another server has counted the unheeded removals already.
	isFirstReplay := p.phase != caughtUp && p.cfg.Meta.Sequence == 0
	if loss.Unheeded && !isFirstReplay {
		p.counts.Unheeded++
	}

	reason, plain := rejectReasons(item.err, loss)
	p.counts.RejectedHere++
	if !p.cfg.ReadOnly {
		p.rejections.add(m, plain)
		p.saver.pending.addRejected(rejection{*m, reason})
	}
}

// reachEnds ends the catching up and the reading again once their ends are reached.
func (p *Projector) reachEnds(ctx context.Context) error {
	// Reading again: the stream lacks the states that were not read.
	if p.projection.reading && p.projection.meta.Sequence >= p.rereads {
		lacking := p.projection.endReading()
		p.saver.pending.lacking = lacking
		p.saver.noteChange()
		p.log.Info("the stream has been read from its beginning", "checkpoint", p.projection.meta.Sequence, "unpublished", len(lacking))
		p.publishProgress(nil)
	}

	// Catching up: at the first end, ask for the stream's end once more. At this second end the model is complete.
	// isReached is a function, since the target changes below.
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
		p.publishProgress(nil)
	}

	// Caught up: the model was complete when the end was asked for.
	if p.phase == caughtUp && isReached() && !p.target.askedAt.IsZero() {
		asOf := p.target.askedAt
		p.target = end{}
		p.publishProgress(func(s *Progress) {
			if asOf.After(s.AsOf) {
				s.AsOf = asOf
			}
		})
	}

	p.projection.nameFeed()
	return nil
}

// pollStream asks for the stream's end. It ends the session if the stream was replaced, if the consumer does
// not deliver the stream's messages, and if subjects have gone.
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

	// The stream has more, and nothing was delivered for two polls: find out why.
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

	// Once the model has reached this end, it was complete at askedAt (reachEnds).
	if p.phase == caughtUp && p.target.askedAt.IsZero() {
		p.target = end{last, askedAt}
	}

	// All is well: publish the state of the stream.
	p.tracker.setProblem(fullProblem, describeFull(info))
	copies, isCounted := p.saver.copies.count(ctx)
	p.publishProgress(func(s *Progress) {
		s.Connected = true
		s.LastSequence = max(last, s.Checkpoint)
		s.PeersMissing = countMissingPeers(info)
		if isCounted {
			s.Rejected = copies
		}
	})
	return nil
}

// checkDelivery finds out why the consumer delivers nothing. If no message is left after the checkpoint, the
// checkpoint moves to last. If there is a message, checkDelivery fails after a while.
func (p *Projector) checkDelivery(ctx context.Context, last uint64) error {
	_, err := p.source.NextMessage(ctx, p.projection.meta.Sequence+1)
	if errors.Is(err, stream.ErrNoMessage) {
		p.apply(nil, last)
		return nil
	}
	if err == nil && time.Since(p.movedAt) > p.cfg.pace.stuckAfter {
		return errors.New("the consumer does not deliver the stream's messages")
	}
	return err
}

// finishCommit takes the result of a commit. If the store has the commit, its removals can be purged. The
// position of a stale commit is no progress: the stream has been read from the beginning since.
func (p *Projector) finishCommit(err error) {
	c := p.saver.finish(err)
	if err == nil {
		p.upkeep.add(c)
	}

	p.publishProgress(func(s *Progress) {
		if err == nil && !c.isStale {
			s.Saved = c.meta.Sequence
		}
	})
}

// runUpkeep does some of the work in the stream that follows from saved commits.
func (p *Projector) runUpkeep(ctx context.Context) {
	if p.phase != caughtUp || p.projection.reading {
		return
	}
	p.counts.PutBack += p.upkeep.run(ctx, p.projection.meta.Erased, !p.projection.meta.Rewound)

	// The next start need not look at these removals again.
	saved := p.Progress().Saved
	if p.upkeep.isActive && len(p.upkeep.purges) == 0 && saved > p.projection.meta.Erased {
		p.projection.update(func(m *snapshots.Meta) { m.Erased = saved })
	}

	p.publishProgress(nil)
}

// saveRest saves everything that has been applied, when the projector ends. Whatever cannot be saved is
// read again at the next start.
func (p *Projector) saveRest() {
	var err error
	// A running commit lacks what was applied after it began: another one follows.
	for err == nil && (p.saver.running != nil || !p.saver.hasAll()) {
		if p.saver.running == nil {
			p.saver.start(p.projection.metaToSave())
		}
		err = <-p.saver.results
		p.finishCommit(err)
	}
}

// saveWhileWaiting waits before the next session. Meanwhile it goes on saving, and lets a saved state be served
// once StartupTimeout is over.
func (p *Projector) saveWhileWaiting(ctx context.Context, wait time.Duration) {
	over := time.After(wait)
	save := time.NewTicker(p.cfg.pace.saveEvery)
	defer save.Stop()
	for {
		p.serveSaved(false)
		p.saver.startIfDue(&p.projection)

		select {
		case err := <-p.saver.results:
			p.finishCommit(err)
		case <-save.C:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// reportFailure tells the operator why a session has ended.
func (p *Projector) reportFailure(err error) {
	frozen, isFrozen := errors.AsType[*frozenError](err)
	isConnected := p.cfg.JetStream.Conn().IsConnected()
	if !isFrozen {
		p.deniedAt = time.Time{}
		p.tracker.update(func(s *Progress) { s.Connected = isConnected })
		if p.tracker.setProblem(streamProblem, fmt.Sprintf("The stream is not being followed: %v.", err)) {
			p.log.Warn("the stream is not being followed; trying again", "error", err, "checkpoint", p.projection.meta.Sequence)
		}
		return
	}

	// A broker that is starting may deny its stream once.
	if p.deniedAt.IsZero() {
		p.deniedAt = time.Now()
	}
	if time.Since(p.deniedAt) < p.cfg.pace.retryEvery {
		return
	}

	p.tracker.setProblem(streamProblem, "")
	if p.tracker.setProblem(frozenProblem, frozen.sentence) {
		p.log.Error("frozen: nothing is applied, and the last state is served", "reason", frozen.sentence, "checkpoint", p.projection.meta.Sequence)
	}

	p.tracker.update(func(s *Progress) {
		s.Frozen = frozen.why
		s.Connected = isConnected
	})
	p.serveSaved(true)
}

// serveSaved lets a saved state be served although the stream is not being followed: at once if it
// is frozen, else after StartupTimeout.
func (p *Projector) serveSaved(isFrozen bool) {
	mayFollowSoon := !isFrozen && time.Since(p.tracker.began) < p.cfg.StartupTimeout
	if p.phase == caughtUp || !p.projection.meta.Complete || mayFollowSoon {
		return
	}
	p.log.Warn("serving the saved state, since the stream is not being followed", "checkpoint", p.projection.meta.Sequence)
	p.phase = caughtUp // so that readers are answered
	p.target = end{}   // no end is to be reached
	p.publishProgress(nil)
}

// publishProgress publishes the position, the model's numbers, and a change, which may be nil.
func (p *Projector) publishProgress(change func(s *Progress)) {
	meta := p.projection.meta
	isReading := p.projection.reading
	lacking := p.projection.model.View().Lacking()
	if isReading { // not compared yet
		lacking = 0
	}

	waiting := len(p.upkeep.purges) + len(p.saver.pending.removals)
	if p.saver.running != nil {
		waiting += len(p.saver.running.removals)
	}

	sentence := ""
	if p.phase == caughtUp && !isReading && meta.Rewound {
		sentence = "The stream came back in an older state; registry recover publishes what it has lost."
	} else if p.phase == caughtUp && lacking > 0 {
		sentence = "The stream lacks states that this server knows; registry recover publishes them."
	}

	p.tracker.setProblem(lackingProblem, sentence)
	p.tracker.update(func(s *Progress) {
		s.Identity = meta.Identity
		s.Stream = p.cfg.Stream
		s.Checkpoint = meta.Sequence
		s.LastSequence = max(s.LastSequence, meta.Sequence)
		s.CaughtUp = p.phase == caughtUp
		s.Rewound = meta.Rewound
		s.Reading = isReading
		s.Unpublished = lacking
		s.WaitingPurges = waiting
		s.Counts = p.counts
		s.Done = s.Total
		if !s.CaughtUp {
			s.Done = min(s.Total, meta.Sequence-min(meta.Sequence, p.from))
		}
		if change != nil {
			change(s)
		}
	})
}

// Progress returns the current Progress, at the cost of an atomic load and a copy. Any goroutine may call
// it.
func (p *Projector) Progress() Progress { return p.tracker.current() }

// Known returns the greatest revision that is known of a subject, or 0. Any goroutine may call it.
func (p *Projector) Known(k events.Subject) int64 {
	p.projection.mu.Lock()
	defer p.projection.mu.Unlock()
	return p.projection.model.Known(k)
}

// Flush waits until the store has everything that has been applied. It fails at once while the store
// cannot be written. Any goroutine may call it while Run runs.
func (p *Projector) Flush(ctx context.Context) error { return p.saver.flush(ctx) }
