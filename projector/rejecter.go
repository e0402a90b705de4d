package projector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"example.org/registry/events"
	"example.org/registry/events/failpoint"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/events/publish"
	"example.org/registry/projector/rejected"
)

const (
	// Bounds of the queue of copies.
	maxRejections     = 4096
	maxRejectionBytes = 16 << 20

	// How many rejections are logged, in a second and at once: no backend fills the disk with lines.
	logged       = 1
	loggedAtOnce = 100

	copyBatch = 128 // copies between two checks of the queue

	// finishWithin bounds the last attempt to copy, when the process ends.
	finishWithin = 2 * time.Second
)

// rejecter copies rejected events to their stream (events/CONTRACT.md#rejection), without delaying
// valid events.
type rejecter struct {
	cfg     Config
	log     *slog.Logger
	tracker *tracker
	stream  leader.Stream // of the events
	copies  leader.Stream // of rejected events

	// Owned by add.
	lines    *rate.Limiter // of the log
	unlogged int           // since the last line

	// Owned by run, then by finish.
	exists bool // the stream of rejected events exists

	counting chan struct{} // holds one during a request, so that no reply replaces a newer one

	mu      sync.Mutex
	waiting []rejected.Copy // in stream order
	bytes   int
	changed chan struct{} // closed when waiting changes
}

func newRejecter(cfg Config, stream leader.Stream, t *tracker, log *slog.Logger) *rejecter {
	return &rejecter{
		cfg: cfg, log: log, tracker: t,
		stream: stream, copies: leader.Stream{JS: stream.JS, Name: events.RejectedStream},
		lines:    rate.NewLimiter(logged, loggedAtOnce),
		counting: make(chan struct{}, 1), changed: make(chan struct{}),
	}
}

// add adds rejected events of a history, in stream order, and logs each. While too many wait to be
// copied, it waits; its only error is that of ctx.
func (r *rejecter) add(ctx context.Context, history string, batch []rejection) error {
	for _, c := range batch {
		c.Epoch = history
		if len(c.Payload) > events.MaxRejected {
			c.Payload, c.Truncated = bytes.Clone(c.Payload[:events.MaxRejected]), true
		}
		r.say(ctx, &c)
		if r.cfg.ReadOnly {
			continue
		}
		if err := r.push(ctx, c.Copy); err != nil {
			return err
		}
	}
	return nil
}

// say logs a rejection, unless there were too many: registry rejected list has them all.
func (r *rejecter) say(ctx context.Context, c *rejection) {
	log := r.log
	switch {
	case c.Sequence <= r.cfg.LoggedUpTo:
		log.DebugContext(ctx, "event rejected", "seq", c.Sequence, "subject", c.subject, "reason", c.reason)
		return
	case !r.lines.Allow():
		r.unlogged++
		return
	case r.unlogged > 0:
		log, r.unlogged = log.With("unlogged", r.unlogged), 0
	}
	log.WarnContext(ctx, "event rejected", "seq", c.Sequence, "subject", c.subject, "reason", c.reason)
}

func (r *rejecter) push(ctx context.Context, c rejected.Copy) error {
	for {
		r.mu.Lock()
		if len(r.waiting) < maxRejections && r.bytes < maxRejectionBytes {
			break
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, c)
	r.bytes += len(c.Payload)
	r.broadcast()
	r.tracker.update(func(p *Progress) { p.RejectedHere++ })
	return nil
}

// broadcast wakes all goroutines that wait for the queue to change. The caller must hold r.mu.
func (r *rejecter) broadcast() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// awaitCopies waits until every rejected event up to seq has been copied. After ctx has ended it
// does not wait, but returns whether they have been.
func (r *rejecter) awaitCopies(ctx context.Context, seq uint64) error {
	for {
		r.mu.Lock()
		done := len(r.waiting) == 0 || r.waiting[0].Sequence > seq
		changed := r.changed
		r.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// run copies events until ctx ends.
func (r *rejecter) run(ctx context.Context) {
	if r.cfg.ReadOnly {
		return
	}
	for ctx.Err() == nil {

		began := time.Now()
		copied, err := r.copyNext(ctx)
		if err != nil {
			if ctx.Err() == nil && r.tracker.setTrouble(troubleRejects, "Rejected events cannot be copied: "+err.Error()+".") {
				r.log.Warn("rejected events cannot be copied; retrying", "error", err)
			}
			pause.For(ctx, r.cfg.RetryEvery-time.Since(began)) // a request that timed out was wait enough
			continue
		}
		r.tracker.setTrouble(troubleRejects, "")
		r.idle(ctx, len(copied) > 0)
	}
}

// waits reports whether there are events to copy.
func (r *rejecter) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) > 0
}

// idle waits for events to copy. If some have been copied, it first counts the copies.
func (r *rejecter) idle(ctx context.Context, some bool) {
	r.mu.Lock()
	changed, more := r.changed, len(r.waiting) > 0
	r.mu.Unlock()
	if more {
		return
	}
	if some {
		r.count(ctx)
	}
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// copyNext copies the next waiting events, if any, and returns the copies made. After an error the
// other events still wait. Some of them may have been copied, and only the reply was lost: copying
// an event again replaces its copy.
func (r *rejecter) copyNext(ctx context.Context) ([]rejected.Copy, error) {
	if err := r.ensureStream(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	batch := r.waiting[:min(len(r.waiting), copyBatch)]
	r.mu.Unlock()
	copied, left, err := each(batch, func(c rejected.Copy) error { return r.copyOne(ctx, c) })
	if err != nil {
		r.exists = false // it may have been deleted
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = r.waiting[len(batch):]
	if len(left) > 0 {
		r.waiting = slices.Concat(left, r.waiting) // keeps the order
	}
	for _, c := range copied {
		r.bytes -= len(c.Payload)
	}
	if len(copied) > 0 {
		r.broadcast()
	}
	return copied, err
}

// atOnce bounds the concurrent requests of each.
const atOnce = 32

// each calls f for every item, for several at once. It returns the items for which f succeeded
// and those for which it failed, both in their order, and the first error.
func each[T any](items []T, f func(T) error) (done, failed []T, err error) {
	errs := make([]error, len(items))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, item := range items {
		group.Go(func() error { errs[i] = f(item); return errs[i] })
	}
	err = group.Wait()
	for i, item := range items {
		if errs[i] == nil {
			done = append(done, item)
		} else {
			failed = append(failed, item)
		}
	}
	return done, failed, err
}

// ensureStream creates the stream of rejected events if it is missing.
func (r *rejecter) ensureStream(ctx context.Context) error {
	if r.exists {
		return nil
	}
	js := r.copies.JS
	if !js.Conn().IsConnected() {
		return leader.ErrNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, leader.RequestTimeout)
	defer cancel()
	_, err := js.Stream(ctx, r.copies.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, publish.RejectedStreamConfig(r.cfg.Replicas))
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // a replica was faster
		return fmt.Errorf("stream %s: %w", r.copies.Name, natserr.Explain(js.Conn(), err, jetstream.DefaultAPIPrefix+"STREAM."))
	}
	r.exists = true
	return nil
}

func (r *rejecter) copyOne(ctx context.Context, c rejected.Copy) error {
	js := r.copies.JS
	if !js.Conn().IsConnected() {
		return leader.ErrNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, leader.RequestTimeout)
	defer cancel()
	if err := failpoint.Hit("projector/before-copy"); err != nil {
		return err
	}
	if _, err := js.PublishMsg(ctx, c.Message(), jetstream.WithExpectStream(r.copies.Name)); err != nil {
		return natserr.Explain(js.Conn(), err, events.RejectedPrefix)
	}
	return failpoint.Hit("projector/after-copy")
}

// count updates Progress.Rejected: at once after this process made a copy, else with each poll. Any
// goroutine may call it.
func (r *rejecter) count(ctx context.Context) {
	select {
	case r.counting <- struct{}{}:
		defer func() { <-r.counting }()
	case <-ctx.Done():
		return
	}
	info, err := r.copies.Info(ctx)
	switch {
	case err == nil:
		r.tracker.update(func(s *Progress) { s.Rejected = info.State.Msgs })
	case errors.Is(err, jetstream.ErrStreamNotFound):
		r.tracker.update(func(s *Progress) { s.Rejected = 0 })
	}
}

// finish copies the remaining events, once, after run has ended.
func (r *rejecter) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), finishWithin)
	defer cancel()
	for ctx.Err() == nil && r.waits() {
		if batch, err := r.copyNext(ctx); err != nil || len(batch) == 0 {
			return
		}
	}
}
