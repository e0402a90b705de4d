package projector

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// finishWithin bounds the last attempt to copy, when the process ends.
const finishWithin = 2 * time.Second

// run copies until ctx ends.
func (r *rejecter) run(ctx context.Context) {
	if r.cfg.ReadOnly {
		return
	}
	select {
	case r.epoch = <-r.epochs:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		batch, err := r.round(ctx)
		if err != nil {
			r.complain(ctx, err)
			pause(ctx, r.cfg.RetryEvery)
			continue
		}
		r.status.say(troubleRejects, "")
		if len(batch) > 0 {
			r.count(ctx)
		}
		r.subjects.examineAll(ctx, r, batch)
		r.subjects.recheck(ctx, r)
		if len(batch) == 0 {
			r.idle(ctx)
		}
	}
}

// round copies the next of what waits. Before, once, it examines what earlier processes have copied.
func (r *rejecter) round(ctx context.Context) ([]rejection, error) {
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if !r.scanned {
		if err := r.subjects.scan(ctx, r); err != nil {
			return nil, err
		}
		r.scanned = true
	}
	return r.copyNext(ctx)
}

// count brings Progress.Rejected up to date: after a copy of our own at once, else with each poll.
func (r *rejecter) count(ctx context.Context) {
	r.counting.Lock()
	defer r.counting.Unlock()
	info, err := StreamInfo(ctx, r.js, events.RejectedStream)
	switch {
	case err == nil:
		r.status.update(func(s *Progress) { s.Rejected = info.State.Msgs })
	case errors.Is(err, jetstream.ErrStreamNotFound):
		r.status.update(func(s *Progress) { s.Rejected = 0 })
	}
}

func (r *rejecter) complain(ctx context.Context, err error) {
	if ctx.Err() == nil && r.status.say(troubleRejects, "Rejected events cannot be copied: "+err.Error()+".") {
		r.log.Warn("rejected events cannot be copied; tried again", "error", err)
	}
}

// idle waits for something to copy, or until subjects want to be gone over again.
func (r *rejecter) idle(ctx context.Context) {
	r.mu.Lock()
	changed, some := r.changed, len(r.waiting) > 0
	r.mu.Unlock()
	if some {
		return
	}
	var poll <-chan time.Time
	if !r.subjects.none() {
		timer := time.NewTimer(r.cfg.PollEvery)
		defer timer.Stop()
		poll = timer.C
	}
	select {
	case <-changed:
	case <-poll:
	case <-ctx.Done():
	}
}

// finish copies what is left, once, after run has ended.
func (r *rejecter) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), finishWithin)
	defer cancel()
	for r.epoch != "" && ctx.Err() == nil {
		if r.prepare(ctx) != nil {
			return
		}
		if batch, err := r.copyNext(ctx); err != nil || len(batch) == 0 {
			return
		}
	}
}
