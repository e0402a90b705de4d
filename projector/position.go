package projector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

// A position that cannot be proven is not trusted (events/CONTRACT.md#histories). A session goes on
// from the newest position that the stream still holds, and reads again what comes after it. What is
// known stays, and is shown meanwhile: what has not been read again at the stream's end is what the
// stream lacks.

// reading is the reading of a part of the stream that may have been read before: after a start, and
// after a position that could not be proven.
type reading struct {
	active   bool
	began    bool                        // until is known
	until    uint64                      // the stream's end when it began
	hold     readmodel.Checkpoint        // what the store keeps until then: the next process begins there
	unproven map[events.Subject]struct{} // states read after the proven position, and not again yet
	hidden   bool                        // the feed has no name until then: the sequences are not those that were read

	reached, grown time.Time // when the end was reached, and when the last message came since
}

// What a stream lacks is not settled while messages still come, such as those of registry recover,
// but at the latest settleWithin after the end was reached.
const (
	settleAfter  = 2 * time.Second
	settleWithin = 10 * time.Second
	settleChunk  = 16_384 // subjects in a transaction
)

// known returns a *frozenError for a stream that has nothing to do with what is known, or is empty
// and new.
func (p *Projector) known(ctx context.Context, info *jetstream.StreamInfo) error {
	at, id := p.Checkpoint(), lineage.Of(info)
	switch {
	case p.knowsNothing():
		return nil
	case info.State.LastSeq == 0 && at.Sequence > 0:
		return missing("The stream " + p.cfg.Stream + " is empty and new")
	}
	if err := p.ours(ctx, p.stream, id, "The stream "+p.cfg.Stream); err != nil {
		return err
	}
	return p.knownOrigin(ctx)
}

// ours returns a *frozenError for a stream that shares no history with what is known.
func (p *Projector) ours(ctx context.Context, s leader.Stream, id readmodel.StreamIdentity, what string) error {
	at := p.Checkpoint()
	if lineage.Same(at.StreamIdentity, id) {
		return nil
	}
	marker, _, err := lineage.Newest(ctx, s, math.MaxUint64)
	if err != nil {
		return err
	}
	if names := marker.Names(id); !lineage.Share(at.Histories, names) {
		return foreign(what, names[0], at.HistoryName())
	}
	return nil
}

// knowsNothing reports whether nothing has been read yet: the stream was empty whenever it was seen, so
// another one may take its place. It is false in a replay, which belongs to one stream and has never
// been complete.
func (p *Projector) knowsNothing() bool {
	at := p.Checkpoint()
	return at.StreamEpoch == "" || at.Sequence == 0 && p.complete() && p.cfg.Model.View().NumSubjects() == 0
}

// prove goes on from the newest position of the checkpoint that the stream holds. The error is a
// *frozenError, or the broker's.
func (p *Projector) prove(ctx context.Context, info *jetstream.StreamInfo) error {
	if err := p.known(ctx, info); err != nil {
		return err
	}
	at, id := p.Checkpoint(), lineage.Of(info)
	if p.knowsNothing() {
		at.StreamIdentity, at.Histories = id, []string{id.StreamEpoch}
		p.setCheckpoint(at)
		p.again.hold.StreamIdentity, p.again.hold.Histories = id, at.Histories
		p.nameFeed()
	}
	proven, rewound, err := lineage.Prove(ctx, p.stream, info, at)
	switch other := at.StreamEpoch != id.StreamEpoch; {
	case err != nil:
		return err
	case rewound || other:
		if err := p.rewind(ctx, id, proven); err != nil {
			return err
		}
	case at.Sequence == 0, proven > 0 && proven == at.Newest().Sequence:
		if at.StreamCreated != id.StreamCreated { // a restore into a cluster changes it
			at.StreamCreated = id.StreamCreated
			p.setCheckpoint(at)
		}
	default:
		p.readAgain(proven)
	}
	if p.again.active && !p.again.began {
		p.again.began, p.again.until = true, info.State.LastSeq
	}
	return nil
}

// readAgain reads the stream again after a position, because the messages after it that would prove
// more are gone. The view stays where it is.
func (p *Projector) readAgain(proven uint64) {
	at := p.Checkpoint()
	p.log.Info("the message at the checkpoint is gone; reading again from an earlier one", "checkpoint", at.Sequence, "from", proven)
	if !p.again.active {
		p.again = reading{active: true, hold: at}
	}
	p.again.began = false
	p.again.unproven = map[events.Subject]struct{}{}
	p.withModel(func(m *readmodel.Model) {
		for _, k := range m.After(proven) {
			p.again.unproven[k] = struct{}{}
		}
	})
	p.setCheckpoint(before(at, proven))
	p.showLacking()
}

// rewind goes back to a position, after which the stream has other messages than those that were
// read.
func (p *Projector) rewind(ctx context.Context, id readmodel.StreamIdentity, proven uint64) error {
	marker, _, err := lineage.Newest(ctx, p.stream, proven)
	if err != nil {
		return err
	}
	was := p.Checkpoint()
	at := before(was, proven)
	at.StreamIdentity, at.Rewound = id, true
	at.History, at.HistoryRevision = marker.Name, marker.Revision
	at.Complete = p.complete()
	p.log.Error("the stream is not as it was read; reading it again beside what is shown", "checkpoint", was.Sequence,
		"from", proven, "epoch", was.HistoryName(), "now", at.HistoryName())
	p.again = reading{active: true, hold: at, hidden: true}
	p.withModel(func(m *readmodel.Model) {
		m.Rewind(proven)
		p.setCheckpoint(at)
	})
	p.showLacking()
	return p.save(ctx, nil)
}

// before returns a checkpoint at an earlier position.
func before(at readmodel.Checkpoint, sequence uint64) readmodel.Checkpoint {
	at.Sequence, at.Erased = sequence, min(at.Erased, sequence)
	at.Positions = slices.DeleteFunc(slices.Clone(at.Positions), func(p readmodel.Position) bool { return p.Sequence > sequence })
	return at
}

// readPart records, while the stream is read again, that it holds the states of a part.
func (p *Projector) readPart(part *batchPart) {
	if !p.again.active {
		return
	}
	if part.messages > 0 {
		p.again.grown = time.Now()
	}
	if len(p.again.unproven) > 0 {
		for i := range part.records {
			delete(p.again.unproven, part.records[i].Subject)
		}
	}
}

// settle ends a reading that has reached its end: what has not been read again is lacking in the
// stream.
func (p *Projector) settle(ctx context.Context) error {
	if !p.again.began || p.Checkpoint().Sequence < p.again.until || !p.complete() {
		return nil
	}
	var lacking []events.Subject
	p.withModel(func(m *readmodel.Model) { lacking = m.Lacking() })
	now := time.Now()
	if p.again.reached.IsZero() {
		if len(lacking) > 0 && p.Checkpoint().Rewound {
			if err := p.search(ctx, lacking); err != nil {
				return err
			}
		}
		p.again.reached, p.again.grown = now, now
	}
	for k := range p.again.unproven {
		lacking = append(lacking, k)
	}
	if len(lacking) > 0 && now.Sub(p.again.grown) < settleAfter && now.Sub(p.again.reached) < settleWithin {
		return nil
	}
	for chunk := range slices.Chunk(lacking, settleChunk) {
		if err := p.lack(ctx, chunk); err != nil {
			return err
		}
	}
	p.again = reading{}
	p.lackingSince = now.Add(-lacksFor)
	p.nameFeed()
	p.showLacking()
	return p.save(ctx, nil)
}

// search looks for states that seem to be lacking before the position from which a rewound stream was
// read again: what it has lost may only have repeated them.
func (p *Projector) search(ctx context.Context, lacking []events.Subject) error {
	wanted := map[string]bool{}
	for _, k := range lacking {
		wanted[k.String()] = true
	}
	var found []readmodel.Record
	renderer := readmodel.NewRenderer()
	err := p.stream.ReadAfter(ctx, "registry projector", 0, func(m leader.Message) {
		if m.Sequence > p.again.hold.Sequence || !wanted[m.Subject] {
			return
		}
		if e, err := m.Event(); err == nil {
			found = append(found, renderer.Render(m.Sequence, e.Data))
		}
	})
	if err != nil {
		return err
	}
	var lost []readmodel.Loss
	p.withModel(func(m *readmodel.Model) { _, lost = m.Apply(found, 0) })
	older := map[uint64]bool{}
	for _, l := range lost {
		older[l.Record.Sequence] = true
	}
	return p.save(ctx, slices.DeleteFunc(found, func(r readmodel.Record) bool { return older[r.Sequence] }))
}

// lacksFor is how long a server shows what its stream lacks before the feed gets a name of its own.
const lacksFor = 10 * time.Second

// nameFeed names the feed: after the history, or with a name of this server's own.
func (p *Projector) nameFeed() {
	now := time.Now()
	p.withModel(func(m *readmodel.Model) {
		if p.again.hidden {
			return
		}
		at := p.Checkpoint()
		if m.View().LackingEntries() == 0 {
			p.lackingSince = time.Time{}
		} else if p.lackingSince.IsZero() {
			p.lackingSince = now
		}
		lacks := !p.lackingSince.IsZero() && now.Sub(p.lackingSince) >= lacksFor
		m.NameFeed(at.HistoryName(), at.Rewound || lacks)
	})
}

// showLacking reports to the operator what the stream lacks.
func (p *Projector) showLacking() {
	at, lacking := p.Checkpoint(), p.cfg.Model.View().Lacking()
	compared := !p.again.active
	sentence := ""
	switch {
	case compared && lacking > 0:
		sentence = fmt.Sprintf("The stream %s lacks %d states that this server knows and shows; registry recover publishes them.", p.cfg.Stream, lacking)
	case at.Rewound:
		sentence = "The stream " + p.cfg.Stream + " came back in an older state; registry recover begins a new history."
	}
	isNew := p.tracker.setTrouble(troubleLacking, sentence, func(s *Progress) {
		s.Compared, s.Unpublished, s.Rewound = compared, lacking, at.Rewound
	})
	if isNew && sentence != "" {
		p.log.Error("the stream lacks what this server knows", "states", lacking, "rewound", at.Rewound)
	}
}

// errChanged means that a session must start over.
var errChanged = errors.New("the stream is not as it was read")

// check returns errChanged if a stream is another one, or not as it was read up to a checkpoint, and
// else why the broker did not answer, if so.
func check(ctx context.Context, s leader.Stream, info *jetstream.StreamInfo, at readmodel.Checkpoint) error {
	if at.StreamEpoch != "" && at.StreamEpoch != lineage.Of(info).StreamEpoch {
		return errChanged
	}
	_, rewound, err := lineage.Prove(ctx, s, info, at)
	if rewound {
		return errChanged
	}
	return err
}
