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

	phase       phase
	target      end    // the next end to reach
	catchUpFrom uint64 // the checkpoint at which the catch-up began
	rereadUntil uint64 // the sequence at which a rereading ends

	deniedSince time.Time // since when every session has ended with a frozenError; zero if the last one has not
	movedAt     time.Time // when the checkpoint last moved
	lostAt      time.Time // when the stream was last reread because it had lost subjects
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

	// Known states without a checkpoint mean that the last process ended while it reread the stream.
	p.projection.isRereading = cfg.Meta.Sequence == 0 && !p.projection.isEmpty()

	// The saved state was complete when the broker stored its last message. The broker's clock may be ahead of ours.
	if marks := cfg.Meta.Marks; cfg.Meta.Complete && len(marks) > 0 {
		storedAt := marks[len(marks)-1].Time
		p.tracker.observed.AsOf = slices.MinFunc([]time.Time{storedAt, p.tracker.began}, time.Time.Compare)
	}
	p.publishProgress()
	return p
}

// firstWait is the wait after a session that has read nothing. Each further such session doubles the wait.
const firstWait = 50 * time.Millisecond

var errRejectionsWait = errors.New("rejected events are waiting to be copied")

// Run follows the stream until ctx ends, and saves every event that it has applied. Before the model is served, a
// stream that must not be followed ends Run with an error.
func (p *Projector) Run(ctx context.Context) error {
	defer close(p.ended)
	defer p.publishProgress() // the last one, before ended is closed

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
		p.publishProgress()

		// After a session that has read something, the next session begins at once. It reads its first message by a
		// request, since perhaps no consumer can deliver this message (followStream).
		if p.projection.meta.Sequence > before {
			wait = firstWait
			continue
		}
		p.saveWhileWaiting(ctx, wait)
		wait = min(2*wait, max(p.cfg.pace.retryEvery, firstWait))
	}
}

// followStream runs one session: it reads the stream with one consumer until a problem occurs, and returns the
// problem.
func (p *Projector) followStream(ctx context.Context) error {
	if p.saver.hasTooManyRejected() {
		return errRejectionsWait
	}

	// Find the stream, decide from where it is read, and up to which end.
	askedAt := time.Now()
	info, err := p.source.find(ctx, p.projection.isEmpty())
	if err != nil {
		return err
	}
	if err := p.acceptStream(ctx, info); err != nil {
		return err
	}
	p.setTarget(info, askedAt)

	// Read the first message by a request. The consumer's client library drops a message with headers that it takes for
	// the broker's own. That ends the session, and the next session begins with this message.
	first, err := p.source.NextMessage(ctx, p.projection.meta.Sequence+1)
	if err == nil {
		p.apply([]stream.Message{first}, first.Sequence)
	} else if errors.Is(err, jetstream.ErrMsgNotFound) {
		p.apply(nil, info.State.LastSeq) // the stream has no message after the checkpoint, so move the checkpoint to its end
	} else {
		return err
	}

	// Create the consumer, then check the stream again before the consumer's first message is applied. If the stream
	// is replaced later, the consumer is removed with it, which ends the session.
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

// readDeliveries applies the consumer's messages, saves, and looks after the stream, until a problem occurs.
func (p *Projector) readDeliveries(ctx context.Context, consumer *consumer) error {
	p.movedAt = time.Now()
	poll := time.NewTicker(p.cfg.pace.pollEvery)
	defer poll.Stop()
	save := time.NewTicker(p.cfg.pace.saveEvery)
	defer save.Stop()

	for {
		// End the rereading or the catch-up if the checkpoint has come to its end.
		if err := p.reachEnds(ctx); err != nil {
			return err
		}

		p.saver.startIfDue(&p.projection)
		p.publishProgress()

		select {
		case first := <-consumer.messages:
			if err := p.applyBatch(consumer.take(first)); err != nil {
				return err
			}
		case err := <-p.saver.results:
			p.saver.finish(err)
			p.runUpkeep(ctx)
		case <-save.C: // the next turn saves if a commit is due
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

// applyBatch takes both results of consumer.take. It applies the batch and moves the checkpoint to the last message,
// since the batch has no gap. It returns takeErr, or errRejectionsWait if too many rejected events wait to be copied.
func (p *Projector) applyBatch(batch []stream.Message, takeErr error) error {
	if len(batch) > 0 {
		p.apply(batch, batch[len(batch)-1].Sequence)
	}
	if takeErr == nil && p.saver.hasTooManyRejected() {
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

	// A message that has set the latest state is saved. Any other message may have displaced the latest state of its
	// subject in the stream: upkeep then publishes that state again.
	for i := range messages {
		m := &messages[i]
		item := &items[i]
		loss, isLost := losses[m.Sequence]
		if item.err == nil && !isLost {
			p.saver.pending.states[item.record.Subject] = snapshots.State{Sequence: m.Sequence, Line: item.line}
			p.upkeep.noteState(m, &item.record)
			continue
		}
		p.upkeep.noteDisplacement(m)
		p.rejectOrCount(m, item, loss)
	}

	p.tracker.observed.Applied += uint64(len(messages))
	p.movedAt = time.Now()
	p.saver.noteChange()
}

// rejectOrCount rejects an event that is invalid, in conflict, or an unheeded removal (readmodel.Loss). Any other event
// is stale and only counted. loss is zero for an invalid event.
func (p *Projector) rejectOrCount(m *stream.Message, item *decoded, loss readmodel.Loss) {
	// In a rereading, the model knows states from later in the stream, so a message that loses is no mistake.
	isMistake := (loss.Conflict || loss.Unheeded) && !p.projection.isRereading
	if item.err == nil && !isMistake {
		p.tracker.observed.Superseded++
		return
	}

	// A server that starts from nothing does not count old unheeded removals: another server has counted them.
	isFirstReplay := !p.phase.isServed() && p.cfg.Meta.Sequence == 0
	if loss.Unheeded && !isFirstReplay {
		p.tracker.observed.Unheeded++
	}

	reason, plain := rejectReasons(item.err, loss)
	p.tracker.observed.RejectedHere++
	if !p.cfg.ReadOnly {
		p.log.Warn("event rejected", "seq", m.Sequence, "subject", events.MaskSubject(m.Subject, m.Data), "reason", plain)
		p.saver.pending.addRejected(rejection{*m, reason})
	}
}

// runUpkeep does some of the work in the stream that follows from saved messages.
func (p *Projector) runUpkeep(ctx context.Context) {
	if p.phase != caughtUp || p.projection.isRereading {
		return
	}

	meta := p.projection.meta
	saved := p.saver.sequence
	mayRestore := !meta.Rewound // registry recover publishes what a rewound stream has lost
	p.tracker.observed.RestoredStates += p.upkeep.run(ctx, saved, meta.Erased, mayRestore)

	// The next process does not look again at removals up to Erased.
	if saved > meta.Erased && p.upkeep.hasPurged(saved) {
		p.projection.update(func(m *snapshots.Meta) { m.Erased = saved })
	}
}

// saveWhileWaiting waits before the next session. Meanwhile it saves and, once StartupTimeout is over, lets readers
// have the saved state.
func (p *Projector) saveWhileWaiting(ctx context.Context, wait time.Duration) {
	over := time.After(wait)
	save := time.NewTicker(p.cfg.pace.saveEvery)
	defer save.Stop()
	for {
		if time.Since(p.tracker.began) >= p.cfg.StartupTimeout {
			p.serveSaved()
		}
		p.saver.startIfDue(&p.projection)
		p.publishProgress()

		select {
		case err := <-p.saver.results:
			p.saver.finish(err)
		case <-save.C: // the next turn saves if a commit is due
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Progress returns the current Progress. Any goroutine may call it.
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
