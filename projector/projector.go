package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

	deniedAt time.Time // since when all sessions have ended for lack of a stream to go on with; zero if the last has not
	movedAt  time.Time // when the checkpoint moved last
	lostAt   time.Time // when the stream was last read again because of lost subjects
}

// New makes a Projector.
func New(cfg Config) *Projector {
	cfg = cfg.withDefaults()
	p := &Projector{
		cfg: cfg, log: cfg.Logger, ended: make(chan struct{}),
		source:     &source{stream.Stream{JS: cfg.JetStream, Name: cfg.Stream}, cfg},
		projection: projection{model: cfg.Model, meta: cfg.Meta},
	}

	p.tracker.began = time.Now()
	p.saver = newSaver(cfg, &p.tracker)
	p.upkeep = newUpkeep(cfg, &p.tracker)
	// Known states without a checkpoint mean that the last process ended while it read the stream again.
	p.projection.reading = cfg.Meta.Sequence == 0 && !p.projection.isEmpty()

	// The saved state was complete when the broker stored its last message. The broker's clock may be ahead.
	if marks := cfg.Meta.Marks; cfg.Meta.Complete && len(marks) > 0 {
		p.tracker.progress.AsOf = marks[len(marks)-1].Time
		if p.tracker.progress.AsOf.After(p.tracker.began) {
			p.tracker.progress.AsOf = p.tracker.began
		}
	}
	p.publishProgress()
	return p
}

// firstWait is the wait after a session that has read nothing. Each further such session doubles the wait.
const firstWait = 50 * time.Millisecond

var errRejectionsWait = errors.New("rejected events are waiting to be copied")

// Run follows the stream until ctx ends, and saves every event that it has applied. Before the model has
// caught up, a stream that must not be followed ends Run with an error.
func (p *Projector) Run(ctx context.Context) error {
	defer close(p.ended)
	wait := firstWait
	for {
		before := p.projection.meta.Sequence
		err := p.followStream(ctx)
		if ctx.Err() != nil {
			p.saver.saveRest(&p.projection)
			return nil
		}
		if fatal, isFatal := errors.AsType[*fatalError](err); isFatal && !p.phase.isServed() {
			p.tracker.setProblem(streamProblem, fmt.Sprintf("The stream must not be followed: %v.", err))
			p.saver.saveRest(&p.projection)
			return fatal.error
		}
		p.reportFailure(err)

		// After a session that has read something, the next session begins at once: it may only have to read one
		// message that no consumer delivers.
		if p.projection.meta.Sequence > before {
			wait = firstWait
			continue
		}
		p.saveWhileWaiting(ctx, wait)
		wait = min(2*wait, max(p.cfg.pace.retryEvery, firstWait))
	}
}

// followStream is one session: it reads the stream with one consumer until a problem occurs, and returns
// the problem.
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
	if errors.Is(err, jetstream.ErrMsgNotFound) {
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
	if !p.phase.isServed() {
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
			p.saver.finish(err)
			p.publishProgress()
			p.runUpkeep(ctx)
		case <-save.C: // also lets startIfDue look again
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

	// A message that has set the latest state is saved. Any other message may be the last of its subject: then it
	// hides the latest state from other readers of the stream, until upkeep publishes that state again.
	for i := range messages {
		m := &messages[i]
		item := &items[i]
		loss, isLost := losses[m.Sequence]
		if item.err == nil && !isLost {
			p.saver.pending.states[item.record.Subject] = snapshots.State{Sequence: m.Sequence, Line: item.line}
			p.upkeep.addState(m, &item.record)
			continue
		}
		p.upkeep.addDisplaced(m)
		p.countLoser(m, item, loss)
	}

	p.tracker.progress.Applied += uint64(len(messages))
	p.movedAt = time.Now()
	p.saver.noteChange()
	p.publishProgress()
}

// countLoser counts a message that has set no state, and rejects the message if the backend has made a mistake.
func (p *Projector) countLoser(m *stream.Message, item *decoded, loss readmodel.Loss) {
	// While the stream is read again, a message that loses is no mistake: the backend has published a greater state since.
	isMistake := !p.projection.reading && (loss.Conflict || loss.Unheeded)
	if item.err == nil && !isMistake {
		p.tracker.progress.Superseded++
		return
	}

	// A server that starts from nothing does not count old unheeded removals: another server has counted them.
	isFirstReplay := !p.phase.isServed() && p.cfg.Meta.Sequence == 0
	if loss.Unheeded && !isFirstReplay {
		p.tracker.progress.Unheeded++
	}

	reason, plain := rejectReasons(item.err, loss)
	p.tracker.progress.RejectedHere++
	if !p.cfg.ReadOnly {
		p.log.Warn("event rejected", "seq", m.Sequence, "subject", events.MaskSubject(m.Subject, m.Data), "reason", plain)
		p.saver.pending.addRejected(rejection{*m, reason})
	}
}

// runUpkeep does some of the work in the stream that follows from saved messages.
func (p *Projector) runUpkeep(ctx context.Context) {
	if p.phase != caughtUp || p.projection.reading {
		return
	}

	meta := p.projection.meta
	saved := p.saver.sequence
	mayRestore := !meta.Rewound
	p.tracker.progress.RestoredStates += p.upkeep.run(ctx, saved, meta.Erased, mayRestore)

	// At the next start, the removals up to Erased are not looked at again.
	if saved > meta.Erased && p.upkeep.hasPurged(saved) {
		p.projection.update(func(m *snapshots.Meta) { m.Erased = saved })
	}

	p.publishProgress()
}

// saveWhileWaiting waits before the next session. Meanwhile it goes on saving and, once StartupTimeout is over,
// lets readers have the saved state.
func (p *Projector) saveWhileWaiting(ctx context.Context, wait time.Duration) {
	over := time.After(wait)
	save := time.NewTicker(p.cfg.pace.saveEvery)
	defer save.Stop()
	for {
		if time.Since(p.tracker.began) >= p.cfg.StartupTimeout {
			p.serveSaved()
		}
		p.saver.startIfDue(&p.projection)

		select {
		case err := <-p.saver.results:
			p.saver.finish(err)
			p.publishProgress()
		case <-save.C:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
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
