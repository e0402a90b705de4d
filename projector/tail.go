package projector

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// offerFor is how long watch offers a finding to a session that is busy; it comes back to it later.
const offerFor = 100 * time.Millisecond

// advance is watch's finding that the stream holds nothing behind from, and ended at to at asOf.
type advance struct {
	from, to uint64
	asOf     time.Time
}

// lookBehind moves the checkpoint to the stream's end when nothing is left in between. The end was read
// first: what is published after is either found now or lies behind it.
func (w *watcher) lookBehind(ctx context.Context, from, last uint64, asked time.Time) {
	_, err := getMessage(ctx, w.cfg.Conn, w.cfg.Stream, from+1, ">")
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return
	}
	timer := time.NewTimer(offerFor)
	defer timer.Stop()
	select {
	case w.advance <- advance{from, last, asked}:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// skip moves the checkpoint over a tail of the stream that has been erased: nothing is left that
// could be applied.
func (p *Projector) skip(ctx context.Context, a advance) error {
	if !p.moveOver(a) {
		return nil
	}
	at := p.checkpoint()
	p.status.update(func(s *Progress) { s.AsOf = a.asOf })
	p.log.Info("the stream's last messages have been erased; checkpoint moved to its end", "checkpoint", at.Sequence)
	if at.Sequence >= p.target {
		p.caughtUp(a.asOf)
	}
	return p.save(ctx, nil)
}

// moveOver says whether it has moved the checkpoint: not when something came in the meantime.
func (p *Projector) moveOver(a advance) bool {
	p.bound.mu.Lock()
	defer p.bound.mu.Unlock()
	at := p.checkpoint()
	to := min(a.to, p.bound.limit)
	if at.Sequence != a.from || to <= a.from {
		return false
	}
	at.Sequence, at.MessageID, at.MessageTime = to, "", time.Time{}
	p.cfg.Model.Apply(nil, at.Sequence)
	p.setCheckpoint(at)
	return true
}
