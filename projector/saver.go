package projector

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"example.org/registry/readmodel"
)

// maxWaiting bounds the records that wait for the store. They are the model's own, so the bound is
// for what a store that fails for long would have to take at once.
const maxWaiting = 65_536

// saver hands the store what has been applied, later and together: of each subject the latest
// state, with the checkpoint and the digest of the moment.
type saver struct {
	cfg      Config
	log      *slog.Logger
	status   *status
	rejecter *rejecter
	wake     chan struct{} // holds one; the run loop looks again

	mu      sync.Mutex
	waiting map[readmodel.Key]readmodel.Record
	next    readmodel.Commit // checkpoint and digest of the latest batch; no records
	reached uint64           // what next has dealt with, also where its checkpoint is 0
	dirty   bool             // next has not been saved
	since   time.Time        // dirty since
	bulk    bool
	saving  int           // records in the transaction under way
	room    chan struct{} // closed when records have been saved

	// For flush.
	urgent int           // who waits for the store: nothing waits for its turn then
	kept   uint64        // the checkpoint that the store was given last
	failed error         // of the last attempt
	tried  chan struct{} // closed after the next attempt
}

func newSaver(cfg Config, s *status, r *rejecter, log *slog.Logger) *saver {
	return &saver{
		cfg: cfg, log: log, status: s, rejecter: r, wake: make(chan struct{}, 1),
		waiting: map[readmodel.Key]readmodel.Record{}, room: make(chan struct{}),
		kept: cfg.Saved.Sequence, tried: make(chan struct{}),
	}
}

// add takes over a batch that has been applied up to reached. While the store is too far behind
// it waits, so that nothing more is applied; the error is that of ctx.
func (s *saver) add(ctx context.Context, reached uint64, c readmodel.Commit, bulk bool) error {
	s.mu.Lock()
	for _, r := range c.Records {
		s.waiting[r.Key] = r
	}
	s.next = readmodel.Commit{Checkpoint: c.Checkpoint, Digest: c.Digest}
	s.reached, s.bulk = reached, bulk
	if !s.dirty {
		s.dirty, s.since = true, time.Now()
	}
	s.mu.Unlock()
	s.poke()
	return s.wait(ctx)
}

func (s *saver) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// wait waits for room.
func (s *saver) wait(ctx context.Context) error {
	for {
		s.mu.Lock()
		room, full := s.room, len(s.waiting)+s.saving > maxWaiting
		s.mu.Unlock()
		if !full {
			s.status.say(troubleBacklog, "")
			return nil
		}
		s.status.say(troubleBacklog, "Too much is waiting to be written to the store; nothing is applied until it has been.")
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
