package projector

import (
	"bytes"
	"context"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

const (
	maxRejections     = 4096
	maxRejectionBytes = 16 << 20
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
	epoch   string
	exists  bool // the stream of rejected events
	scanned bool // the subjects of what earlier processes copied have been examined

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
