package projector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel"
)

const (
	maxRejections     = 4096
	maxRejectionBytes = 16 << 20
	copiesAtOnce      = 16
	copyBatch         = 128
	// finishWithin bounds the last attempt to copy, when the process ends.
	finishWithin = 2 * time.Second
)

// rejecter copies rejected events to their stream (API contract, rejection), off the way of the
// good ones.
type rejecter struct {
	cfg      Config
	log      *slog.Logger
	status   *status
	js       jetstream.JetStream // set by Run
	subjects *subjects
	epochs   chan string // holds one: the stream's epoch, once known

	// Owned by run, then by finish.
	epoch  string
	exists bool // the stream of rejected events

	counting sync.Mutex // held for a question, so that no answer replaces a newer one

	mu      sync.Mutex
	waiting []rejection // in stream order
	bytes   int
	changed chan struct{} // closed when waiting changes
}

func newRejecter(cfg Config, s *status, log *slog.Logger) *rejecter {
	return &rejecter{
		cfg: cfg, log: log, status: s, subjects: newSubjects(s),
		epochs: make(chan string, 1), changed: make(chan struct{}),
	}
}

// begin says which stream the rejected events are of.
func (r *rejecter) begin(epoch string) {
	select {
	case r.epochs <- epoch:
	default: // it knows already
	}
}

// add takes over rejected events, in stream order, and logs each. When too many wait to be copied it
// waits; the error is that of ctx.
func (r *rejecter) add(ctx context.Context, rejected []rejection) error {
	for _, x := range rejected {
		if len(x.data) > events.MaxRejected {
			x.data = bytes.Clone(x.data[:events.MaxRejected+1]) // one more tells that it was longer
		}
		level := slog.LevelWarn
		if x.seq <= r.cfg.Known {
			level = slog.LevelDebug
		}
		r.log.Log(ctx, level, "event rejected", "seq", x.seq, "subject", x.subject, "reason", x.reason)
		if err := r.push(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

func (r *rejecter) push(ctx context.Context, x rejection) error {
	if r.cfg.ReadOnly {
		return nil
	}
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
	r.waiting = append(r.waiting, x)
	r.bytes += len(x.data)
	r.announce()
	r.status.update(func(p *Progress) { p.RejectedHere++ })
	return nil
}

// announce wakes whoever waits for a change. r.mu is held.
func (r *rejecter) announce() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// valid takes note of subjects that have a valid event again.
func (r *rejecter) valid(records []readmodel.Record) {
	if r.subjects.none() {
		return
	}
	for _, record := range records {
		r.subjects.clear(record.Key.Subject())
	}
}

// copied waits until every rejected event up to seq has been copied. When ctx has ended it does
// not wait, but says whether they have.
func (r *rejecter) copied(ctx context.Context, seq uint64) error {
	for {
		r.mu.Lock()
		done := len(r.waiting) == 0 || r.waiting[0].seq > seq
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
	scanned := false
	for ctx.Err() == nil {
		err := r.prepare(ctx)
		if err == nil && !scanned {
			err = r.subjects.scan(ctx, r)
			scanned = err == nil
		}
		var batch []rejection
		if err == nil {
			batch, err = r.copyNext(ctx)
		}
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

// prepare creates the stream of rejected events when it is missing.
func (r *rejecter) prepare(ctx context.Context) error {
	if r.exists {
		return nil
	}
	if !r.cfg.Conn.IsConnected() {
		return errAway
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := r.js.Stream(ctx, events.RejectedStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = r.js.CreateStream(ctx, events.RejectedStreamConfig(r.cfg.Replicas))
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // a replica was faster
		return fmt.Errorf("stream %s: %w", events.RejectedStream, events.Refusal(r.cfg.Conn, err, jetstream.DefaultAPIPrefix+"STREAM."))
	}
	r.exists = true
	return nil
}

// copyNext copies the first that wait. After an error all of them are copied again: a copy
// replaces the one of the same event.
func (r *rejecter) copyNext(ctx context.Context) ([]rejection, error) {
	r.mu.Lock()
	batch := r.waiting[:min(len(r.waiting), copyBatch)]
	r.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(copiesAtOnce)
	for _, x := range batch {
		group.Go(func() error { return r.copyOne(ctx, x) })
	}
	if err := group.Wait(); err != nil {
		r.exists = false // it may have been deleted
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = r.waiting[len(batch):]
	for _, x := range batch {
		r.bytes -= len(x.data)
	}
	if len(batch) > 0 {
		r.announce()
	}
	return batch, nil
}

func (r *rejecter) copyOne(ctx context.Context, x rejection) error {
	if !r.cfg.Conn.IsConnected() {
		return errAway
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := failpoint.Hit("projector/before-copy"); err != nil {
		return err
	}
	if _, err := r.js.PublishMsg(ctx, r.message(x), jetstream.WithExpectStream(events.RejectedStream)); err != nil {
		return events.Refusal(r.cfg.Conn, err, events.RejectedPrefix)
	}
	return failpoint.Hit("projector/after-copy")
}

// message is the copy of x. It has no message id: the stream keeps one message a subject, so
// the same copy again adds nothing, also after the duplicate window.
func (r *rejecter) message(x rejection) *nats.Msg {
	seq := strconv.FormatUint(x.seq, 10)
	m := &nats.Msg{
		Subject: events.RejectedPrefix + token(r.epoch) + "." + seq,
		Header: nats.Header{
			events.HeaderReason:   {x.reason},
			events.HeaderSequence: {seq},
			events.HeaderSubject:  {x.subject},
			events.HeaderTime:     {x.time.UTC().Format(time.RFC3339Nano)},
		},
		Data: x.data,
	}
	if len(x.data) > events.MaxRejected {
		m.Data = x.data[:events.MaxRejected]
		m.Header.Set(events.HeaderTruncated, "1")
	}
	return m
}

// token makes any epoch one token of a subject. Those that this program makes stay as they are.
func token(epoch string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case '0' <= r && r <= '9', 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z', r == '-', r == '_':
			return r
		}
		return '_'
	}, epoch)
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
