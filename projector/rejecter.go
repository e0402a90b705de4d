package projector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/failpoint"
	"example.org/registry/events/natserr"
	"example.org/registry/events/publish"
	"example.org/registry/projector/leader"
	"example.org/registry/projector/rejected"
	"example.org/registry/readmodel"
)

const (
	// What may wait to be copied.
	maxRejections     = 4096
	maxRejectionBytes = 16 << 20

	copiesAtOnce = 16  // requests
	copyBatch    = 128 // copies between two looks at the subjects

	// finishWithin bounds the last attempt to copy, when the process ends.
	finishWithin = 2 * time.Second
)

// rejecter copies rejected events to their stream (events/CONTRACT.md#rejection), out of the way of the good ones.
type rejecter struct {
	cfg      Config
	log      *slog.Logger
	tracker  *tracker
	stream   leader.Stream // of the events
	copies   leader.Stream // of rejected events
	subjects *subjects
	epochs   chan string // holds one: the stream's epoch, once known

	// Owned by run, then by finish.
	epoch   string
	exists  bool // the stream of rejected events
	scanned bool // the subjects of what earlier processes copied have been examined

	counting sync.Mutex // held for a request, so that no answer replaces a newer one

	mu      sync.Mutex
	waiting []rejected.Copy // in stream order
	bytes   int
	changed chan struct{} // closed when waiting changes
}

func newRejecter(cfg Config, stream leader.Stream, t *tracker, log *slog.Logger) *rejecter {
	return &rejecter{
		cfg: cfg, log: log, tracker: t,
		stream: stream, copies: leader.Stream{JS: stream.JS, Name: events.RejectedStream},
		subjects: newSubjects(stream, t, cfg.PollEvery, log),
		epochs:   make(chan string, 1), changed: make(chan struct{}),
	}
}

// setEpoch says which stream the rejected events are of. Only the first call counts.
func (r *rejecter) setEpoch(epoch string) {
	select {
	case r.epochs <- epoch:
	default:
	}
}

// add adds rejected events, in stream order, and logs each. While too many wait to be copied it waits; its only error is
// that of ctx.
func (r *rejecter) add(ctx context.Context, batch []rejection) error {
	for _, c := range batch {
		if len(c.Payload) > events.MaxRejected {
			c.Payload, c.Truncated = bytes.Clone(c.Payload[:events.MaxRejected]), true
		}
		level := slog.LevelWarn
		if c.Sequence <= r.cfg.LoggedUpTo {
			level = slog.LevelDebug
		}
		r.log.Log(ctx, level, "event rejected", "seq", c.Sequence, "subject", c.subject, "reason", c.reason)
		if r.cfg.ReadOnly {
			continue
		}
		if err := r.push(ctx, c.Copy); err != nil {
			return err
		}
	}
	return nil
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

// broadcast wakes whoever waits for a change of what waits. r.mu is held.
func (r *rejecter) broadcast() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// valid notes subjects that have a valid event again.
func (r *rejecter) valid(records []readmodel.Record) {
	if r.subjects.none() {
		return
	}
	for _, record := range records {
		r.subjects.clear(record.Subject.String())
	}
}

// awaitCopies waits until every rejected event up to seq has been copied. When ctx has ended it does not wait, but says
// whether they have been.
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
		batch, err := r.copyNext(ctx)
		if err != nil {
			if ctx.Err() == nil && r.tracker.setTrouble(troubleRejects, "Rejected events cannot be copied: "+err.Error()+".") {
				r.log.Warn("rejected events cannot be copied; tried again", "error", err)
			}
			pause(ctx, r.cfg.RetryEvery)
			continue
		}
		r.tracker.setTrouble(troubleRejects, "")
		if len(batch) > 0 {
			r.count(ctx)
		}
		r.subjects.examineAll(ctx, batch)
		r.subjects.recheck(ctx)
		if len(batch) == 0 {
			r.idle(ctx)
		}
	}
}

// idle waits for something to copy, or until listed subjects are to be looked at again.
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

// copyNext copies the next of what waits, which need not be anything. The first time it has the subjects of what earlier
// processes copied examined before. After an error all of the batch is copied again: a copy replaces the one of the same
// event.
func (r *rejecter) copyNext(ctx context.Context) ([]rejected.Copy, error) {
	if err := r.ensureStream(ctx); err != nil {
		return nil, err
	}
	if !r.scanned {
		if err := r.scan(ctx); err != nil {
			return nil, err
		}
		r.scanned = true
	}
	r.mu.Lock()
	batch := r.waiting[:min(len(r.waiting), copyBatch)]
	r.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(copiesAtOnce)
	for _, c := range batch {
		group.Go(func() error { return r.copyOne(ctx, c) })
	}
	if err := group.Wait(); err != nil {
		r.exists = false // it may have been deleted
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = r.waiting[len(batch):]
	for _, c := range batch {
		r.bytes -= len(c.Payload)
	}
	if len(batch) > 0 {
		r.broadcast()
	}
	return batch, nil
}

// ensureStream creates the stream of rejected events when it is missing.
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

// scan examines the subjects of the copies that earlier processes made.
func (r *rejecter) scan(ctx context.Context) error {
	sequences, err := rejected.Sequences(ctx, r.copies.JS, r.epoch)
	if err != nil {
		return err
	}
	return r.subjects.examineCopied(ctx, sequences)
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
	c.Epoch = r.epoch
	if _, err := js.PublishMsg(ctx, c.Message(), jetstream.WithExpectStream(r.copies.Name)); err != nil {
		return natserr.Refusal(js.Conn(), err, events.RejectedPrefix)
	}
	return failpoint.Hit("projector/after-copy")
}

// count brings Progress.Rejected up to date: after a copy of our own at once, else with each poll. Any goroutine may
// call it.
func (r *rejecter) count(ctx context.Context) {
	r.counting.Lock()
	defer r.counting.Unlock()
	info, err := r.copies.Info(ctx)
	switch {
	case err == nil:
		r.tracker.update(func(s *Progress) { s.Rejected = info.State.Msgs })
	case errors.Is(err, jetstream.ErrStreamNotFound):
		r.tracker.update(func(s *Progress) { s.Rejected = 0 })
	}
}

// finish copies what is left, once, after run has ended.
func (r *rejecter) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), finishWithin)
	defer cancel()
	r.scanned = true // nobody reads the list any more
	for r.epoch != "" && ctx.Err() == nil {
		if batch, err := r.copyNext(ctx); err != nil || len(batch) == 0 {
			return
		}
	}
}
