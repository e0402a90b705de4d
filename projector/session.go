package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
	"example.org/registry/snapshots"
)

const (
	// maxBatch is how many messages are applied at once, and asked for at once.
	maxBatch      = 2000
	maxBatchBytes = 8 << 20

	heartbeat = time.Second // of the consumer

	// consumerEnds is when the broker removes a consumer that nobody reads.
	consumerEnds = time.Minute

	// lostSubjectsEvery is how often the stream is read again at most because it lost subjects.
	lostSubjectsEvery = time.Minute

	// countEvery is the wait after the copies of rejected events could not be counted.
	countEvery = time.Minute
)

// session follows the stream with one consumer until a problem occurs, and returns that.
func (p *Projector) session(ctx context.Context) error {
	if p.pending.rejectedBytes > maxRejectedBytes {
		return errors.New("rejected events are waiting to be copied")
	}

	// Find the stream and decide from where it is read.
	asked := time.Now()
	info, err := p.find(ctx)
	if err != nil {
		return err
	}
	if err := p.accept(ctx, info); err != nil {
		return err
	}
	p.begin(info, asked)

	// The first message is asked for by itself: whatever headers it has, it is read.
	first, err := p.stream.NextMessage(ctx, p.meta.Sequence+1)
	switch {
	case errors.Is(err, stream.ErrNoMessage):
		p.apply(nil, info.State.LastSeq) // what was there has been erased
	case err != nil:
		return err
	default:
		p.apply([]stream.Message{first}, first.Sequence)
	}

	// Create the consumer, then check the stream again before the first message is applied: from
	// here on, replacing the stream also removes the consumer.
	consumer, err := p.consume(ctx)
	if err != nil {
		return err
	}
	defer p.endBulk()
	defer consumer.stop()
	if err := p.checkReplaced(ctx, info); err != nil {
		return err
	}

	p.tracker.setTrouble(troubleStream, "")
	return p.follow(ctx, consumer)
}

// checkReplaced fails if the stream is no longer the one that was accepted.
func (p *Projector) checkReplaced(ctx context.Context, accepted *jetstream.StreamInfo) error {
	info, err := p.stream.Info(ctx)
	if err != nil {
		return err
	}
	if !info.Created.Equal(accepted.Created) {
		return errors.New("the stream was replaced")
	}
	return nil
}

// find returns the stream's state. It makes the stream if there is none and nothing is known.
func (p *Projector) find(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := p.stream.Info(ctx)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return info, err
	}
	if p.cfg.ReadOnly || !p.knowsNothing() {
		return nil, &frozenError{FrozenMissing, "The stream " + p.cfg.Stream +
			" is missing; this server goes on when it is back, or after registry recover --create-stream."}
	}
	if err := p.createStream(ctx); err != nil {
		return nil, err
	}
	return p.stream.Info(ctx)
}

// accept decides from where the stream is read: from after the checkpoint, or from its beginning.
func (p *Projector) accept(ctx context.Context, info *jetstream.StreamInfo) error {
	if err := p.checkSettings(info); err != nil {
		return err
	}

	found, known := stream.IdentityOf(info), p.meta.Identity
	if p.knowsNothing() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.meta.Identity = found
		return nil
	}
	if !found.Related(known) {
		return &frozenError{FrozenForeign, fmt.Sprintf("The stream %s is another registry's: its epoch is %s, and not %s or one that it follows; "+
			"correct --nats-url or --stream, or move the data directory away.", p.cfg.Stream, found.Epoch, known.Epoch)}
	}

	// The same epoch is the same stream, unless it holds something else than was read of it.
	if found.Epoch == known.Epoch {
		saw, err := p.recognize(ctx, info)
		if err == nil && saw != sameStream {
			p.readAgain(known, p.meta.Rewound || saw == otherStream)
		}
		return err
	}

	// What a server follows only grows. A stream under an earlier epoch than the known one was restored
	// from before a recovery.
	joined := found
	joined.Follows = stream.Follow(found.Epoch, stream.Identity{Follows: found.Follows}, known)
	p.readAgain(joined, slices.Contains(known.Follows, found.Epoch))
	return nil
}

// knowsNothing reports whether any stream is as good as another.
func (p *Projector) knowsNothing() bool {
	return p.meta.Sequence == 0 && p.cfg.Model.View().NumSubjects() == 0
}

// sight is what the stream says about the last messages that were read of it.
type sight int

const (
	unknownStream sight = iota // it holds none of them: they were displaced or erased
	sameStream                 // it holds one as it was read
	otherStream                // it ends before them, or holds another message in the place of one
)

// recognize compares the last messages that were read with the stream, the newest first.
func (p *Projector) recognize(ctx context.Context, info *jetstream.StreamInfo) (sight, error) {
	if info.State.LastSeq < p.meta.Sequence {
		return otherStream, nil
	}
	for _, mark := range slices.Backward(p.meta.Marks) {
		m, err := p.stream.Message(ctx, mark.Sequence)
		if errors.Is(err, stream.ErrNoMessage) {
			continue
		}
		if err != nil {
			return unknownStream, err
		}
		if !m.Time.Equal(mark.Time) {
			return otherStream, nil
		}
		return sameStream, nil
	}
	if p.meta.Sequence == 0 {
		return sameStream, nil
	}
	return unknownStream, nil
}

// readAgain begins to read the stream from its beginning. What is known stays and is shown, and is
// lacking in the stream until it is read again.
func (p *Projector) readAgain(id stream.Identity, rewound bool) {
	level := slog.LevelWarn
	if rewound {
		level = slog.LevelError // registry recover has to publish what was lost
	}
	p.log.Log(context.Background(), level, "reading the stream again from its beginning; what is known is shown",
		"rewound", rewound, "epoch", id.Epoch, "knownEpoch", p.meta.Epoch, "checkpoint", p.meta.Sequence)
	p.endBulk()

	p.mu.Lock()
	p.cfg.Model.Rewind(0)
	p.meta = snapshots.Meta{Identity: id, Complete: p.meta.Complete, Rewound: rewound}
	p.mu.Unlock()

	// What was decided by the old sequences means nothing in the new ones.
	p.reading = true
	p.pending.forgetSequences()
	if p.saving != nil {
		p.saving.stale = true
	}
	p.change()
	p.show(func(s *Progress) { s.Saved, s.LastSequence = 0, 0 })
}

// begin sets what this session is to reach.
func (p *Projector) begin(info *jetstream.StreamInfo, asked time.Time) {
	last := info.State.LastSeq
	p.denied = time.Time{}
	p.target, p.until = end{last, asked}, last
	if p.phase == toFirstEnd {
		p.from = max(p.meta.Sequence, info.State.FirstSeq-min(info.State.FirstSeq, 1))
	}
	p.tracker.setTrouble(troubleFrozen, "")
	p.show(func(s *Progress) {
		s.Frozen, s.Connected, s.LastSequence = "", true, last
		if p.phase != caughtUp {
			s.Total = last - min(last, p.from)
		}
		s.PeersMissing = missingPeers(info)
	})
}

// consumer delivers messages. Its channels stay open.
type consumer struct {
	messages chan jetstream.Msg
	failed   chan error
	stop     func()
	count    uint64 // messages taken from it
}

// consume makes a consumer after the checkpoint that the broker forgets by itself.
func (p *Projector) consume(ctx context.Context) (*consumer, error) {
	nc := p.cfg.JetStream.Conn()
	making, cancel := context.WithTimeout(ctx, stream.RequestTimeout)
	defer cancel()
	made, err := p.cfg.JetStream.CreateConsumer(making, p.cfg.Stream, jetstream.ConsumerConfig{
		Description:   "registry projector",
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: p.meta.Sequence + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: consumerEnds,
	})
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", natserr.Explain(nc, err, jetstream.DefaultAPIPrefix+"CONSUMER."))
	}
	p.beginBulk(made.CachedInfo().NumPending)

	c := &consumer{messages: make(chan jetstream.Msg, maxBatch), failed: make(chan error, 1)}
	ended := make(chan struct{})
	reading, err := made.Consume(
		func(m jetstream.Msg) {
			select {
			case c.messages <- m:
			case <-ended:
			}
		},
		jetstream.PullMaxMessagesWithBytesLimit(maxBatch, maxBatchBytes), jetstream.PullHeartbeat(heartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case c.failed <- err:
			default:
			}
		}))
	c.stop = func() {
		close(ended)
		if reading != nil {
			reading.Stop()
		}
		removing, cancel := context.WithTimeout(context.Background(), stream.RequestTimeout/4)
		defer cancel()
		_ = p.cfg.JetStream.DeleteConsumer(removing, p.cfg.Stream, made.CachedInfo().Name) // else the broker does, consumerEnds later
	}
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("consumer: %w", err)
	}
	return c, nil
}

// take returns the next messages: first, and what has arrived behind it. An error means that one is
// missing before the rest, such as one that the client library took for the broker's own.
func (c *consumer) take(first jetstream.Msg) (batch []stream.Message, err error) {
	for next := first; ; {
		meta, err := next.Metadata()
		if err != nil {
			return batch, fmt.Errorf("a delivery cannot be read: %w", err)
		}
		if c.count++; meta.Sequence.Consumer != c.count {
			return batch, errors.New("a delivery is missing")
		}
		batch = append(batch, stream.Message{
			Subject: next.Subject(), Sequence: meta.Sequence.Stream, Time: meta.Timestamp, Header: map[string][]string(next.Headers()), Data: next.Data(),
		})
		if len(batch) == maxBatch {
			return batch, nil
		}
		select {
		case next = <-c.messages:
		default:
			return batch, nil
		}
	}
}

// follow applies what the consumer delivers, saves, and polls, until a problem occurs.
func (p *Projector) follow(ctx context.Context, c *consumer) error {
	p.moved = time.Now()
	poll := time.NewTicker(p.cfg.PollEvery)
	defer poll.Stop()
	save := time.NewTicker(p.cfg.SaveEvery)
	defer save.Stop()

	for {
		if err := p.reachEnds(ctx); err != nil {
			return err
		}
		p.save(false)

		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-c.failed:
			return fmt.Errorf("consumer: %w", err)
		case err := <-p.saved:
			p.finishCommit(err)
		case <-save.C:
		case <-poll.C:
			if err := p.poll(ctx); err != nil {
				return err
			}
		case first := <-c.messages:
			batch, missing := c.take(first)
			if len(batch) > 0 {
				p.apply(batch, batch[len(batch)-1].Sequence)
			}
			if missing != nil {
				return missing
			}
			if p.pending.rejectedBytes > maxRejectedBytes {
				return errors.New("rejected events are waiting to be copied")
			}
		}
	}
}

// reachEnds ends the catching up and the reading again once their ends are reached.
func (p *Projector) reachEnds(ctx context.Context) error {
	if p.reading && p.meta.Sequence >= p.until {
		p.endReading()
	}
	if p.phase == toFirstEnd && p.meta.Sequence >= p.target.sequence {
		asked := time.Now()
		info, err := p.stream.Info(ctx)
		if err != nil {
			return err
		}
		p.phase, p.target = toSecondEnd, end{info.State.LastSeq, asked}
	}
	if p.phase == toSecondEnd && p.meta.Sequence >= p.target.sequence && !p.reading {
		p.endCatchUp()
	}
	if p.phase == caughtUp && !p.target.asked.IsZero() && p.meta.Sequence >= p.target.sequence {
		asOf := p.target.asked
		p.target = end{}
		p.show(func(s *Progress) {
			if asOf.After(s.AsOf) {
				s.AsOf = asOf
			}
		})
	}

	p.nameFeed()
	return nil
}

// endReading ends the reading from the beginning: what was not read is not in the stream.
func (p *Projector) endReading() {
	p.endBulk()
	p.reading = false
	p.mu.Lock()
	p.pending.lacking = p.cfg.Model.Lacking()
	p.mu.Unlock()
	p.change()
	p.log.Info("the stream has been read from its beginning", "checkpoint", p.meta.Sequence, "unpublished", len(p.pending.lacking))
	p.show(nil)
}

func (p *Projector) endCatchUp() {
	p.endBulk()
	p.phase = caughtUp
	p.mu.Lock()
	p.meta.Complete = true
	p.mu.Unlock()
	p.change()
	p.show(nil)
}

// nameFeed names the model's feed after the epoch, and takes the name away while its sequences are not
// those of the stream alone.
func (p *Projector) nameFeed() {
	if p.bulk {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name := p.meta.Epoch
	if p.reading || p.meta.Rewound || p.cfg.Model.View().Lacking() > 0 {
		name = ""
	}
	p.cfg.Model.NameFeed(name)
}

// poll asks for the stream's end. It ends the session if the stream is not the one that is read, if
// the consumer does not deliver what the stream has, and if subjects have gone.
func (p *Projector) poll(ctx context.Context) error {
	asked, view := time.Now(), p.cfg.Model.View()
	known := view.NumSubjects() - view.Lacking()
	info, err := p.stream.Info(ctx)
	if err != nil {
		return err
	}

	last := info.State.LastSeq
	if found := stream.IdentityOf(info); found.Epoch != p.meta.Epoch || last < p.meta.Sequence {
		return errors.New("the stream is not the one that was read")
	}
	if last > p.meta.Sequence && time.Since(p.moved) > 2*p.cfg.PollEvery {
		if err := p.checkDelivery(ctx, last); err != nil {
			return err
		}
	}
	if p.phase == caughtUp && !p.reading && int(info.State.NumSubjects) < known && time.Since(p.lost) > lostSubjectsEvery {
		p.lost = time.Now()
		p.readAgain(p.meta.Identity, p.meta.Rewound)
		return errors.New("the stream has lost subjects")
	}

	if p.phase == caughtUp && p.target.asked.IsZero() {
		p.target = end{last, asked}
	}
	p.tracker.setTrouble(troubleFull, fullSentence(info))
	p.startWriting()
	p.countCopies(ctx)
	p.show(func(s *Progress) {
		s.LastSequence, s.Connected, s.PeersMissing = max(last, s.Checkpoint), true, missingPeers(info)
	})
	return nil
}

// checkDelivery moves the checkpoint over an end of the stream that was erased. It fails if the consumer
// has not delivered what is there for a while.
func (p *Projector) checkDelivery(ctx context.Context, last uint64) error {
	_, err := p.stream.NextMessage(ctx, p.meta.Sequence+1)
	if errors.Is(err, stream.ErrNoMessage) {
		p.apply(nil, last)
		return nil
	}
	if err == nil && time.Since(p.moved) > p.cfg.StuckAfter {
		err = errors.New("the consumer does not deliver what the stream has")
	}
	return err
}

// countCopies asks how many copies of rejected events there are, unless that failed a moment ago:
// the account may forbid it.
func (p *Projector) countCopies(ctx context.Context) {
	if time.Now().Before(p.counted) {
		return
	}
	copies, err := p.copies.count(ctx)
	if err != nil {
		p.counted = time.Now().Add(countEvery)
		return
	}
	p.tracker.update(func(s *Progress) { s.Rejected = copies })
}

// missingPeers counts the copies of the stream that it lacks or that are not current.
func missingPeers(info *jetstream.StreamInfo) int {
	if info.Cluster == nil {
		return 0
	}
	current := 1 // the leader
	for _, replica := range info.Cluster.Replicas {
		if replica.Current && !replica.Offline {
			current++
		}
	}
	return max(0, info.Config.Replicas-current)
}

// fullSentence says that the stream takes in no events, or is empty.
func fullSentence(info *jetstream.StreamInfo) string {
	c := info.Config
	if c.Sealed {
		return "The stream " + c.Name + " is sealed: it takes in no events; publish them into a new stream."
	}
	if c.MaxBytes > 0 && info.State.Bytes+uint64(max(c.MaxMsgSize, 0)) > uint64(c.MaxBytes) {
		return "The stream " + c.Name + " is full: it takes in no events; raise its MaxBytes."
	}
	return ""
}

// beginBulk lets the model publish nothing while it reads much that nobody is shown yet.
func (p *Projector) beginBulk(pending uint64) {
	if p.phase == caughtUp || p.bulk || pending <= maxBatch || pending <= uint64(p.cfg.Model.View().Total()/10) {
		return
	}
	p.bulk = true
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg.Model.BeginBulk()
}

func (p *Projector) endBulk() {
	if !p.bulk {
		return
	}
	p.bulk = false
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg.Model.EndBulk()
}
